//! What a Placement of OCM selects: clusters of the sets that are bound in its namespace, in groups.
//!
//! [`sets`] says which clusters there are to choose from, [`rules`] reads a placement, [`predicates`] and [`taints`] filter,
//! [`prioritize`] prefers, [`decide()`] puts it together, [`publish`] brings decisions there without a gap, and [`tell`] says
//! what became of it. [`explain`] says why, for each cluster. [`mirror`] makes a ManagedCluster of a Cluster.
//!
//! What always holds: every cluster has its reason; a placement that cannot be read keeps what it decided last; a cluster
//! that only stopped answering stays decided; deciding again with the same inputs decides the same.

pub mod candidate;
pub mod decide;
pub mod explain;
pub mod mirror;
pub mod predicates;
pub mod prioritize;
pub mod publish;
pub mod rules;
pub mod sets;
pub mod taints;
pub mod tell;

#[cfg(test)]
mod tests;

pub use candidate::Candidate;
pub use decide::{Decided, Input, Kept, Outcome, Verdict, decide};
pub use publish::{Published, Step, steps};
pub use rules::{Misconfigured, Rules};
pub use sets::{Choice, Membership};
