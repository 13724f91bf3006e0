//! Members that join, are probed, fail, recover and leave, on embedded API servers and a real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

mod harness;
mod joins;
mod leaves;
mod probes;
mod real;
