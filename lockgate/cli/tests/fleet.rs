//! `lockgate controller` on real servers: a hub and three members, each a kube-apiserver of its own, on one etcd.
//!
//! The servers come from `real/get`. Where they are missing the tests say so on stderr, check nothing, and pass.
//! No controller-manager runs here: nothing collects garbage, empties namespaces or makes replicas.
//! What the servers were asked is read from their audit logs, so that "was not written" is their word and not ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say where it is"
)]

#[path = "fleet/api.rs"]
mod api;
#[path = "fleet/control.rs"]
mod control;
#[path = "fleet/election.rs"]
mod election;
#[path = "fleet/journey.rs"]
mod journey;
#[path = "fleet/kills.rs"]
mod kills;
#[path = "kubectl/program.rs"]
mod program;
#[path = "fleet/servers.rs"]
mod servers;

/// One fleet at a time: a lease must not run out because the machine is busy with other servers.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
