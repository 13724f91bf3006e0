//! How replicas are given out.
//!
//! Objects without replicas, and workloads of several components, go to every cluster that is chosen. `Duplicated` gives
//! every cluster all replicas; `Divided` shares them out by weights.

use lockgate_api::binding::TargetCluster;
use lockgate_api::placement::{ReplicaScheduling, WeightPreference};
use lockgate_api::{BindingSpec, Cluster, Placement};

use super::filter::Fit;
use super::webster::webster;
use crate::selector::{CompiledAffinity, matches_cluster};

/// Whether there are replicas to give out. A workload that is scaled to nothing and asks for nothing has none.
pub(super) fn is_workload(spec: &BindingSpec) -> bool {
    spec.components.len() <= 1 && (spec.replicas > 0 || spec.replica_requirements.is_some())
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

/// Whether the placement's strategy can be followed; if not, why.
pub(super) fn supported(spec: &BindingSpec, placement: &Placement) -> Result<(), String> {
    let Some(scheduling) = &placement.replica_scheduling else {
        return Ok(());
    };
    if !is_workload(spec) || !is_divided(placement) || spec.replicas <= 0 {
        return Ok(());
    }
    let instead = "use static weights or Duplicated";
    if scheduling.replica_division_preference == "Aggregated" {
        return Err(format!(
            "replicaDivisionPreference Aggregated is not supported yet: {instead}"
        ));
    }
    let dynamic = scheduling
        .weight_preference
        .as_ref()
        .map(|weights| weights.dynamic_weight.as_str());
    match dynamic.unwrap_or_default() {
        "" => Ok(()),
        dynamic => Err(format!("dynamicWeight {dynamic} is not supported yet: {instead}")),
    }
}

/// What each of the chosen clusters gets, by name. Clusters that get no replica of a workload are not in it.
pub(super) fn divide(spec: &BindingSpec, placement: &Placement, chosen: &[Fit<'_>]) -> Vec<TargetCluster> {
    let target = |fit: &Fit<'_>, replicas| TargetCluster {
        name: fit.cluster.metadata.name.clone(),
        replicas,
    };
    let scheduling = match &placement.replica_scheduling {
        Some(scheduling) if is_divided(placement) && is_workload(spec) => scheduling,
        _ => {
            let replicas = if is_workload(spec) { spec.replicas } else { 0 };
            return chosen.iter().map(|fit| target(fit, replicas)).collect();
        }
    };
    if spec.replicas <= 0 {
        // Scaled to nothing: what is there stays, scaled to nothing, since no other cluster takes its place.
        let stays = chosen.iter().any(|fit| fit.present) || spec.clusters.is_empty();
        let stay = chosen.iter().filter(|fit| fit.present || !stays);
        return stay.map(|fit| target(fit, 0)).collect();
    }
    webster(spec.replicas, &weights(scheduling, chosen), &spec.resource.uid)
        .into_iter()
        .filter(|(_, replicas)| *replicas > 0)
        .map(|(name, replicas)| TargetCluster { name, replicas })
        .collect()
}

/// Why a chosen cluster got no replica.
pub(super) fn why_none(spec: &BindingSpec, placement: &Placement, cluster: &Cluster) -> String {
    let listed = placement
        .replica_scheduling
        .as_ref()
        .and_then(|scheduling| scheduling.weight_preference.as_ref())
        .is_none_or(|weights| {
            weights
                .static_weight_list
                .iter()
                .any(|rule| rule.weight > 0 && matches_cluster(&rule.target_cluster, cluster))
        });
    match (spec.replicas, listed) {
        (..=0, _) => "there are no replicas to give out".to_owned(),
        (_, false) => "no static weight names it".to_owned(),
        (replicas, true) => format!("its share of {replicas} replicas comes to none"),
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
