//! The hub's links against the embedded API server, in process and over TLS, with faults.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

#[macro_use]
mod harness;

mod follows;
