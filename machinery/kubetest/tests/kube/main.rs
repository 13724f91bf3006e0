//! kube-rs as a client of the API server. Every test runs twice: in process, and over TLS on loopback.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

#[macro_use]
mod harness;

mod access;
mod conditions;
mod controllers;
mod crud;
mod definitions;
mod dynamic;
mod errors;
mod events;
mod finalizers;
mod leases;
mod lists;
mod metadata;
mod outages;
mod patches;
mod subresources;
mod watchers;
