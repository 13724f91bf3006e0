//! The API server from outside, through its service; without a socket, but for what is about connections.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

mod admission;
mod audit;
mod bad_input;
mod cascade;
mod definitions;
mod durability;
mod events;
mod harness;
mod limits;
mod lists;
mod races;
mod security;
mod tls;
mod watches;
mod writes;
