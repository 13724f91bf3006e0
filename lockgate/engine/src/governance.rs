//! Policies of Open Cluster Management on the hub: what the replica of a root policy is on each cluster, and what they come to.
//!
//! [`selection`] says through which bindings a root reaches which clusters, in which groups; [`replica`] makes its replicas, and
//! [`revision`] says which content one holds and whether a report is about it; [`rollout`] decides who enforces now, by the
//! rollout engine that every change goes through ([`crate::gate::run`]); [`mod@retained`] says how clusters are of which nobody knows
//! whether they are chosen; [`tell`] says what it comes to.
//!
//! What always holds:
//!
//! - with a strategy that takes turns, a cluster enforces new content only once every replica has that content, as `inform`;
//! - what is released is the root's own action exactly as it is written, also where none is;
//! - a cluster has succeeded when every template was evaluated after its release, for that content and that action;
//! - what cannot be followed moves nothing: no replica is made, changed or removed.

pub mod replica;
pub mod retained;
pub mod revision;
pub mod rollout;
pub mod selection;
pub mod tell;

#[cfg(test)]
mod tests;

pub use retained::{Retained, retained};
pub use rollout::{Known, Manner, RootInput, RootPlan, Standing, plan};
pub use selection::{Chosen, Selection, Sources, select};
