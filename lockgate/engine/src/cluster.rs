//! Member clusters: when they count as ready, which taints follow, which kinds they serve, and what must still happen
//! before one has left.
//!
//! What always holds: a cluster that was never ready becomes ready with its first good answer; one that was ready stays so
//! through a short outage; what a member could not tell is kept as it was; and a member that left keeps its objects unless
//! somebody asked in so many words that they go.

mod capacity;
mod difference;
mod enablements;
mod fingerprint;
mod health;
mod models;
mod taint_policy;
mod taints;
mod unjoin;

pub(crate) use capacity::counted;
pub use capacity::{CAPACITY_KNOWN, Capacity};
pub use difference::Difference;
pub use enablements::{COMPLETE_ENABLEMENTS, Collected, Served, collect};
pub use fingerprint::fingerprint;
pub use health::{Probe, READY, Streak, Thresholds, health, pull_not_served, was_ever_ready};
pub use models::Models;
pub use taint_policy::policy_taints;
pub use taints::taints;
pub use unjoin::{Leaving, Remains, Step, Workloads, leaving, next_step};
