//! When a binding is placed anew.
//!
//! Objects without replicas, and workloads of which every cluster gets all replicas, follow every change of the fleet.
//! Divided workloads do not: their replicas move only if something about the binding changed, or a cluster is gone.

use std::fmt;

use jiff::Timestamp;
use lockgate_api::Placement;

use super::{PlaceInput, divide};

/// Why a binding is placed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The placement differs from the one that was last placed.
    PlacementChanged,
    /// The replicas differ from those that were given out.
    ReplicasChanged,
    /// A rebalance was asked for.
    RebalanceAsked,
    /// It follows every change of the fleet.
    FollowsFleet,
    /// A cluster that it goes to is gone, or going, or must be left.
    ClusterGone,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PlacementChanged => "the placement changed",
            Self::ReplicasChanged => "the number of replicas changed",
            Self::RebalanceAsked => "a rebalance was asked for",
            Self::FollowsFleet => {
                "its replicas are not divided, so that it follows every change of the fleet"
            }
            Self::ClusterGone => "a cluster that it goes to is gone, or going",
        })
    }
}

/// Why a binding is placed anew; `None` if it is not: nothing changed, placing is suspended, or it has no placement.
pub fn trigger(input: &PlaceInput<'_>) -> Option<Trigger> {
    let spec = input.spec;
    let placement = spec.placement.as_ref()?;
    if spec
        .suspension
        .as_ref()
        .and_then(|suspension| suspension.scheduling)
        == Some(true)
    {
        return None;
    }
    let changed = input
        .applied_placement
        .is_none_or(|applied| placement_changed(placement, applied, input.observed_affinity));
    if changed {
        return Some(Trigger::PlacementChanged);
    }
    let divided = divide::is_workload(spec) && divide::is_divided(placement);
    let given_out = spec
        .clusters
        .iter()
        .map(|target| i128::from(target.replicas))
        .sum::<i128>();
    if divided && given_out != i128::from(spec.replicas) {
        return Some(Trigger::ReplicasChanged);
    }
    if rebalance_asked(input) {
        return Some(Trigger::RebalanceAsked);
    }
    if !divided {
        return Some(Trigger::FollowsFleet);
    }
    let gone = |name: &str| {
        let found = input
            .clusters
            .binary_search_by(|cluster| cluster.metadata.name.as_str().cmp(name));
        found.map_or(true, |index| input.clusters[index].metadata.deleting())
    };
    let left = |name: &str| {
        let mut tasks = spec.graceful_eviction_tasks.iter();
        tasks.any(|task| task.from_cluster == name)
    };
    // A cluster that went while nobody looked is as gone as one that is going, or one that is to be left.
    let any_gone = spec
        .clusters
        .iter()
        .any(|target| gone(&target.name) || left(&target.name));
    any_gone.then_some(Trigger::ClusterGone)
}

/// Whether a rebalance was asked for that was not followed yet. Where nobody noted which one was, the time counts at which
/// the binding was last placed, in whole seconds as both are stored.
pub(super) fn rebalance_asked(input: &PlaceInput<'_>) -> bool {
    let asked = input.spec.reschedule_triggered_at.as_deref();
    let Some(asked) = asked.and_then(|time| time.parse::<Timestamp>().ok()) else {
        return false;
    };
    match (input.rebalanced, input.last_scheduled) {
        (Some(followed), _) => asked > followed,
        (None, Some(last)) => asked.as_second() > last.as_second(),
        (None, None) => false,
    }
}

/// Of the groups of clusters only the one in use counts: a further group at the end changes nothing.
fn placement_changed(placement: &Placement, applied: &Placement, observed: &str) -> bool {
    let same = placement.cluster_affinity == applied.cluster_affinity
        && placement.cluster_tolerations == applied.cluster_tolerations
        && placement.spread_constraints == applied.spread_constraints
        && placement.replica_scheduling == applied.replica_scheduling;
    if !same {
        return true;
    }
    if placement.cluster_affinities == applied.cluster_affinities {
        return false;
    }
    let in_use = |placement: &Placement| {
        let mut terms = placement.cluster_affinities.iter();
        terms.find(|term| term.affinity_name == observed).cloned()
    };
    let now = in_use(placement);
    now.is_none() || now != in_use(applied)
}
