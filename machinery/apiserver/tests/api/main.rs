//! The API server from outside, through its service and without a socket.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

mod admission;
mod bad_input;
mod cascade;
mod definitions;
mod durability;
mod events;
mod harness;
mod limits;
mod lists;
mod security;
mod watches;
mod writes;
