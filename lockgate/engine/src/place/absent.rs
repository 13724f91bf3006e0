//! Clusters that a placement names and that nobody joined: one that is still to come, or a slip of the pen. Nothing would
//! ever be said of them otherwise, as everything else is said of clusters that are there.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_api::{Cluster, Placement};

use super::{Rejection, RejectionReason};

/// The clusters that a placement names in any of its groups and that do not exist, by name.
pub(super) fn absent(placement: &Placement, clusters: &[Arc<Cluster>]) -> Vec<Rejection> {
    let groups = placement.cluster_affinities.iter().flat_map(|term| {
        let overflow = term.overflow_affinities.iter().map(|term| &term.affinity);
        std::iter::once(&term.affinity).chain(overflow)
    });
    let exists = |name: &String| {
        clusters
            .binary_search_by(|cluster| cluster.metadata.name.cmp(name))
            .is_ok()
    };
    let affinities = placement.cluster_affinity.iter().chain(groups);
    let named: BTreeSet<&String> = affinities
        .flat_map(|affinity| &affinity.cluster_names)
        .filter(|name| !exists(name))
        .collect();
    let told = named.into_iter().map(|cluster| Rejection {
        cluster: cluster.clone(),
        reason: RejectionReason::Absent,
        message: "the placement names it, and there is no cluster of that name".to_owned(),
        help: "join it, or correct the name",
    });
    told.collect()
}
