//! Members that join, are probed, fail, recover and leave, on embedded API servers.

mod harness;
mod joins;
mod leaves;
mod probes;
mod real;
