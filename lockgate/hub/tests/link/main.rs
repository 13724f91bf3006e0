//! The hub's links against the embedded API server, in process and over TLS, with faults; and against a real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

#[macro_use]
mod harness;

mod discovers;
mod elects;
mod errors;
mod events;
mod faults;
mod follows;
mod outages;
mod real;
