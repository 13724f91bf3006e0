//! The gate station: which clusters get their new manifest now, which keep what they have, which are withdrawn, and why.
//!
//! What is suspended is not sent, and removals wait for the new copies. Which clusters go first is decided by [`rollout`]:
//! [`grouping`] cuts a selection into [`groups`], [`rules`] reads a strategy, [`standing`] says how far each cluster is, and
//! a [`decision`] says for each where it is, with its [`reason`]. [`simulate`] plays all that forward. For one template a
//! [`run`] does it, from the [`record`] on its binding and what its Works say; a [`revision`] is what one can go back to.

pub mod decision;
pub mod grouping;
pub mod groups;
pub mod reason;
pub mod record;
pub mod revision;
pub mod rollout;
pub mod rules;
pub mod run;
pub mod simulate;
pub mod standing;

mod copies;
mod rollouts;
mod strategy;
mod suspension;

pub use copies::{divides, lacks};
pub use rollouts::{RolloutIndex, is_about};
pub use strategy::{FollowError, Followed, ranked};
pub use suspension::{
    CLUSTERS_KNOWN, HeldBy, Holds, Marks, Referrer, ReleaseInput, clusters_known, extent, is_everywhere,
    named, rollout_status, suspended_by,
};

use std::collections::BTreeSet;

use lockgate_api::BindingSpec;
use lockgate_api::policy::Suspension;

use crate::dependencies::is_unplaced;
use crate::gates::Gates;

/// What one cluster may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// Its Work takes the new manifest, and is sent.
    Send,
    /// Its Work takes the new manifest for people to read; the member is not written.
    Suspended(Vec<HeldBy>),
}

/// What happens to the clusters that are no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Their Works are deleted now.
    Remove,
    /// They stay until these clusters have their copies.
    WaitFor(Vec<String>),
    /// They stay, for no other cluster is wanted in their place.
    Hold,
}

/// Whether a cluster's Work is sent.
pub fn release(holds: &Holds<'_>, cluster: &str) -> Release {
    let held = holds.on(cluster);
    if held.is_empty() {
        Release::Send
    } else {
        Release::Suspended(held)
    }
}

/// Whether a binding's suspension covers a cluster.
pub fn is_suspended(suspension: Option<&Suspension>, cluster: &str) -> bool {
    suspension.is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension
                .dispatching_on_clusters
                .as_ref()
                .is_some_and(|clusters| clusters.cluster_names.iter().any(|name| name == cluster))
    })
}

/// The clusters that a binding is to be in: its own, and those of the bindings that need it.
pub fn wanted(spec: &BindingSpec) -> BTreeSet<&str> {
    let required = spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
    let targets = spec.clusters.iter().chain(required);
    targets.map(|target| target.name.as_str()).collect()
}

/// Whether the clusters that are no longer wanted may go: when every wanted cluster has its copy. `missing` are the wanted
/// clusters whose copies are not there yet.
///
/// A binding that wants no cluster at all removes nothing: nothing fits, or nothing was placed yet. Only the gate
/// `NoClusterFitRemoves` lets it. One that was there for others alone goes with the last of them.
pub fn removal(spec: &BindingSpec, missing: &BTreeSet<String>, gates: Gates) -> Removal {
    if wanted(spec).is_empty() && !is_unplaced(spec) && !gates.no_cluster_fit_removes {
        Removal::Hold
    } else if missing.is_empty() {
        Removal::Remove
    } else {
        Removal::WaitFor(missing.iter().cloned().collect())
    }
}

/// What becomes of the replicas of one cluster, where nobody says in which order anything goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// It is to have fewer.
    Fewer,
    /// It is to have more, or its first copy.
    More,
    /// Neither; and whether it [`lacks`] its copy, or replicas that it was told of before.
    Still {
        /// Whether it does.
        lacks: bool,
    },
}

/// Whether fewer replicas wait, as removals do: somebody else gets more, or has not got what it was given before. Fewer
/// replicas alone wait for nobody, and neither do those that go to no other cluster.
pub fn fewer_wait(motions: impl IntoIterator<Item = Motion>) -> bool {
    let (mut fewer, mut adds) = (false, false);
    for motion in motions {
        match motion {
            Motion::Fewer => fewer = true,
            Motion::More | Motion::Still { lacks: true } => adds = true,
            Motion::Still { lacks: false } => {}
        }
    }
    fewer && adds
}

#[cfg(test)]
mod tests;
