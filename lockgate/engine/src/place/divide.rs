//! How replicas are given out.
//!
//! Objects without replicas, and workloads of several components, go to every cluster that is chosen. `Duplicated` gives
//! every cluster all replicas; `Divided` shares them out, by weights that somebody wrote or by the room that clusters have.

use lockgate_api::binding::TargetCluster;
use lockgate_api::placement::{ReplicaScheduling, WeightPreference};
use lockgate_api::{BindingSpec, Cluster, Placement};

use super::dynamic::{self, Candidate, Mode};
use super::filter::Fit;
use super::room::{Needs, Room};
use super::webster::webster;
use super::{PlaceInput, RejectionReason, Rejections};
use crate::Gates;
use crate::selector::{CompiledAffinity, matches_cluster};

/// Whether a template has several parts with replicas of their own, which stay together.
fn has_parts(spec: &BindingSpec) -> bool {
    spec.components.len() > 1
}

/// Whether it matters that a cluster has room for all parts of a template.
pub(super) fn is_set(spec: &BindingSpec, gates: Gates) -> bool {
    gates.multiple_pod_templates && has_parts(spec) && spec.placement.is_some()
}

/// Whether it matters what clusters have room for.
pub fn asks_for_room(spec: &BindingSpec, gates: Gates) -> bool {
    is_dynamic(spec) || is_set(spec, gates)
}

/// Whether there are replicas to give out. A workload that is scaled to nothing and asks for nothing has none.
pub fn is_workload(spec: &BindingSpec) -> bool {
    !has_parts(spec) && (spec.replicas > 0 || spec.replica_requirements.is_some())
}

/// Whether replicas are shared out. No strategy means that every cluster gets all; one without a type means that they
/// are shared, as the schema's default says.
pub(super) fn is_divided(placement: &Placement) -> bool {
    placement
        .replica_scheduling
        .as_ref()
        .is_some_and(|scheduling| scheduling.replica_scheduling_type != "Duplicated")
}

/// Whether the weights say who gets what, so that spread constraints do not count.
pub(super) fn ignores_spread(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else {
        return false;
    };
    let listed = |weights: &WeightPreference| {
        !weights.static_weight_list.is_empty() && weights.dynamic_weight.is_empty()
    };
    is_divided(placement)
        && scheduling.replica_division_preference != "Aggregated"
        && scheduling.weight_preference.as_ref().is_none_or(listed)
}

/// Whether replicas are shared out by the room that clusters have.
pub fn is_dynamic(spec: &BindingSpec) -> bool {
    let Some(placement) = &spec.placement else {
        return false;
    };
    let by_room = |scheduling: &ReplicaScheduling| {
        scheduling.replica_division_preference == "Aggregated"
            || scheduling
                .weight_preference
                .as_ref()
                .is_some_and(|weights| !weights.dynamic_weight.is_empty())
    };
    is_workload(spec)
        && is_divided(placement)
        && spec.replicas > 0
        && placement.replica_scheduling.as_ref().is_some_and(by_room)
}

/// Asks each cluster for how many more replicas it has room.
pub(super) fn measure(input: &PlaceInput<'_>, needs: &Needs, fits: &mut [Fit<'_>]) {
    for fit in fits {
        fit.available = match input.rooms.and_then(|rooms| rooms.at(fit.index)) {
            Some(room) => room.replicas(needs),
            None => Room::of(fit.cluster).replicas(needs),
        };
    }
}

/// The clusters that have room for all parts of a template. One that has the template keeps it.
pub(super) fn roomy<'a>(
    input: &PlaceInput<'_>,
    needs: &Needs,
    fits: Vec<Fit<'a>>,
    rejections: &mut Rejections,
) -> Result<Vec<Fit<'a>>, String> {
    let (roomy, full): (Vec<_>, Vec<_>) = fits.into_iter().partition(|fit| fit.present || fit.available > 0);
    tell_room(input, needs, &full, rejections);
    if roomy.is_empty() {
        return Err("no cluster has room for all parts of the workload together".to_owned());
    }
    Ok(roomy)
}

/// Says for every cluster that fits what room it has: together it was not enough.
pub(super) fn tell_room(
    input: &PlaceInput<'_>,
    needs: &Needs,
    fits: &[Fit<'_>],
    rejections: &mut Rejections,
) {
    for fit in fits {
        let own;
        let room = match input.rooms.and_then(|rooms| rooms.at(fit.index)) {
            Some(room) => room,
            None => {
                own = Room::of(fit.cluster);
                &own
            }
        };
        let (message, help) = if room.is_known() {
            let more = if fit.previous > 0 { "more " } else { "" };
            let scarce = room.scarcest(needs);
            let message = if needs.is_set() {
                format!("it runs out of {scarce} before all parts of the workload have room")
            } else {
                let replicas = if fit.available == 1 { "replica" } else { "replicas" };
                format!(
                    "it has room for {} {more}{replicas}, and then runs out of {scarce}",
                    fit.available
                )
            };
            (
                message,
                "free resources there, or ask for fewer replicas or smaller ones",
            )
        } else {
            (
                "it has not said what it has room for".to_owned(),
                "wait until it is ready, and let the control plane list its nodes and pods",
            )
        };
        rejections.add(fit.cluster, fit.index, RejectionReason::NoRoom, message, help);
    }
}

/// What each of the chosen clusters gets, by name. Clusters that get no replica of a workload are not in it.
pub(super) fn divide(
    spec: &BindingSpec,
    placement: &Placement,
    chosen: &[Fit<'_>],
    fresh: bool,
) -> Result<Vec<TargetCluster>, String> {
    let target = |fit: &Fit<'_>, replicas| TargetCluster {
        name: fit.cluster.metadata.name.clone(),
        replicas,
    };
    let scheduling = match &placement.replica_scheduling {
        Some(scheduling) if is_divided(placement) && is_workload(spec) => scheduling,
        _ => {
            let replicas = if is_workload(spec) { spec.replicas } else { 0 };
            return Ok(chosen.iter().map(|fit| target(fit, replicas)).collect());
        }
    };
    if spec.replicas <= 0 {
        // Scaled to nothing: what is there stays, scaled to nothing, since no other cluster takes its place.
        let stays = chosen.iter().any(|fit| fit.present) || spec.clusters.is_empty();
        let stay = chosen.iter().filter(|fit| fit.present || !stays);
        return Ok(stay.map(|fit| target(fit, 0)).collect());
    }
    let shares: Vec<i64> = if is_dynamic(spec) {
        by_room(spec, scheduling, chosen, fresh)?
    } else {
        let shares = webster(spec.replicas, &weights(scheduling, chosen), &spec.resource.uid);
        shares.into_iter().map(|(_, share)| share).collect()
    };
    Ok(chosen
        .iter()
        .zip(shares)
        .filter(|(_, share)| *share > 0)
        .map(|(fit, share)| target(fit, share))
        .collect())
}

/// Shares by the room that clusters have.
fn by_room(
    spec: &BindingSpec,
    scheduling: &ReplicaScheduling,
    chosen: &[Fit<'_>],
    fresh: bool,
) -> Result<Vec<i64>, String> {
    let candidates: Vec<Candidate<'_>> = chosen
        .iter()
        .map(|fit| Candidate {
            name: &fit.cluster.metadata.name,
            tier: fit.tier,
            available: fit.available,
            previous: fit.previous,
        })
        .collect();
    let mode = Mode {
        aggregated: scheduling.replica_division_preference == "Aggregated",
        fresh,
    };
    dynamic::divide(spec.replicas, &candidates, mode, &spec.resource.uid).map_err(|short| {
        let dynamic::Short { wanted, room } = short;
        format!(
            "Clusters available replicas {room} are not enough to schedule: {wanted} {} to be placed.",
            if wanted == 1 { "replica is" } else { "replicas are" }
        )
    })
}

/// Why a chosen cluster got no replica, and what would help.
pub(super) fn why_none(spec: &BindingSpec, placement: &Placement, fit: &Fit<'_>) -> (String, &'static str) {
    let replicas = spec.replicas;
    if replicas <= 0 {
        return ("there are no replicas to give out".to_owned(), "scale it up");
    }
    if is_dynamic(spec) {
        return if fit.capacity() <= 0 {
            ("it has no room for a replica".to_owned(), "free resources there")
        } else if fit.tier > 0 {
            let why = "the groups before it have room for all replicas".to_owned();
            (why, "ask for more replicas")
        } else {
            let why = format!("all {replicas} replicas are on other clusters");
            (why, "ask for a rebalance with a WorkloadRebalancer")
        };
    }
    let listed = placement
        .replica_scheduling
        .as_ref()
        .and_then(|scheduling| scheduling.weight_preference.as_ref())
        .is_none_or(|weights| {
            weights
                .static_weight_list
                .iter()
                .any(|rule| rule.weight > 0 && matches_cluster(&rule.target_cluster, fit.cluster))
        });
    if listed {
        let why = format!("its share of {replicas} replicas comes to none");
        (why, "ask for more replicas, or give it more weight")
    } else {
        let why = "no static weight names it".to_owned();
        (why, "give it a weight in staticWeightList")
    }
}

/// The weight of each cluster is the largest of the rules that name it. If no rule names any, all weigh the same.
fn weights(scheduling: &ReplicaScheduling, chosen: &[Fit<'_>]) -> Vec<(String, i64)> {
    let rules: Vec<(CompiledAffinity, i64)> = scheduling
        .weight_preference
        .iter()
        .flat_map(|weights| &weights.static_weight_list)
        .map(|rule| (CompiledAffinity::new(&rule.target_cluster), rule.weight))
        .collect();
    let weight = |cluster: &Cluster| {
        let named = rules.iter().filter(|(rule, _)| rule.matches(cluster));
        named.map(|(_, weight)| *weight).max().unwrap_or(0)
    };
    let mut weights: Vec<(String, i64)> = chosen
        .iter()
        .map(|fit| (fit.cluster.metadata.name.clone(), weight(fit.cluster)))
        .collect();
    if weights.iter().all(|(_, weight)| *weight <= 0) {
        weights.iter_mut().for_each(|(_, weight)| *weight = 1);
    }
    weights
}
