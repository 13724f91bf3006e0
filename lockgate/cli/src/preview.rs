//! Where a template would go if it were placed now, decided from the objects of the hub as the controllers decide.

use std::sync::Arc;

use lockgate_api::{Binding, Cluster};
use lockgate_engine::Gates;
use lockgate_engine::place::{self, LastPlaced, Neighbour, Neighbours, PlaceInput, Placed};

/// Where a binding would go, of all bindings, and on these clusters, sorted by name.
pub(crate) fn placed(binding: &Binding, all: &[Binding], clusters: &[Arc<Cluster>]) -> Placed {
    let last = LastPlaced::of(binding);
    let neighbours = neighbours(binding, all);
    place::preview(&PlaceInput {
        spec: &binding.spec,
        applied_placement: None,
        observed_affinity: &last.affinity,
        last_scheduled: last.at,
        rebalanced: last.rebalanced,
        clusters,
        rooms: None,
        neighbours: neighbours.as_ref(),
        gates: Gates::default(),
    })
}

/// Where the other workloads of a binding's groups are.
fn neighbours(binding: &Binding, all: &[Binding]) -> Option<Neighbours> {
    let groups = binding.spec.workload_affinity_groups.as_ref()?;
    let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
    let others = all
        .iter()
        .filter(|other| other.metadata.namespace == *namespace && other.metadata.name != *name);
    let others: Vec<Neighbour> = others.filter_map(|other| Neighbour::of(&other.spec)).collect();
    Some(Neighbours::among(groups, &others))
}
