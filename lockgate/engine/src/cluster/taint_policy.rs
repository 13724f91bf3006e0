//! The taints that ClusterTaintPolicies put on a cluster and take off it again, by its conditions; and since when a taint is
//! there that makes workloads leave.

use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::cluster::Taint;
use lockgate_api::taint_policy::MatchCondition;
use lockgate_api::{Cluster, ClusterTaintPolicy, Condition};

use super::enablements::seconds;
use crate::selector::matches_cluster;

/// The taints that a cluster should carry by these policies, or `None` if it carries them already. The oldest policy comes
/// first, so that the newest has the last word. A taint that makes workloads leave gets its time if it has none: tolerations
/// count from there.
pub fn policy_taints(
    cluster: &Cluster,
    policies: &[Arc<ClusterTaintPolicy>],
    now: Timestamp,
) -> Option<Vec<Taint>> {
    let mut next = cluster.spec.taints.clone();
    let mut order: Vec<&Arc<ClusterTaintPolicy>> = policies.iter().collect();
    order.sort_by_key(|policy| {
        let metadata = &policy.metadata;
        (&metadata.creation_timestamp, &metadata.name)
    });
    for policy in order {
        let spec = &policy.spec;
        let targeted = spec
            .target_clusters
            .as_ref()
            .is_none_or(|affinity| matches_cluster(affinity, cluster));
        if policy.metadata.deleting() || !targeted {
            continue;
        }
        let conditions = &cluster.status.conditions;
        let add = matches(&spec.add_on_conditions, conditions);
        let remove = matches(&spec.remove_on_conditions, conditions);
        for wanted in &spec.taints {
            let same = |taint: &Taint| taint.key == wanted.key && taint.effect == wanted.effect;
            if add && !next.iter().any(same) {
                next.push(Taint {
                    key: wanted.key.clone(),
                    value: wanted.value.clone(),
                    effect: wanted.effect.clone(),
                    time_added: Some(seconds(now)),
                });
            }
            if remove {
                next.retain(|taint| !same(taint));
            }
        }
    }
    for taint in &mut next {
        if taint.effect == "NoExecute" && taint.time_added.is_none() {
            taint.time_added = Some(seconds(now));
        }
    }
    (next != cluster.spec.taints).then_some(next)
}

/// Whether all match; none match nothing. A condition that is not there matches nothing either.
fn matches(wanted: &[MatchCondition], conditions: &[Condition]) -> bool {
    !wanted.is_empty()
        && wanted.iter().all(|wanted| {
            Condition::find(conditions, &wanted.condition_type).is_some_and(|condition| {
                let listed = wanted.status_values.contains(&condition.status);
                match wanted.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    _ => false,
                }
            })
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, created: &str, spec: Value) -> Arc<ClusterTaintPolicy> {
        let policy = json!({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec});
        Arc::new(serde_json::from_value(policy).unwrap())
    }

    #[test]
    fn taints_follow_conditions() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let when = |kind: &str, operator: &str, values: &[&str]| json!([{"conditionType": kind, "operator": operator, "statusValues": values}]);
        let taint = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
        let here =
            json!({"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
        let usual = json!({
            "addOnConditions": when("Ready", "NotIn", &["True"]),
            "removeOnConditions": when("Ready", "In", &["True"]), "taints": taint,
        });
        let elsewhere = json!({
            "targetClusters": {"clusterNames": ["other"]},
            "addOnConditions": when("Ready", "NotIn", &["True"]), "taints": taint,
        });
        let silent = json!({"addOnConditions": when("Disk", "NotIn", &["True"]), "taints": taint});
        let never = json!({"taints": taint});
        let other = json!({"key": "x", "effect": "NoSchedule"});
        // The policy, the status of Ready, the taints before, and after; null is no change.
        let table = [
            (&usual, "False", json!([]), json!([here])),
            (&usual, "Unknown", json!([other]), json!([other, here])),
            (&usual, "False", json!([here]), json!(null)),
            (&usual, "True", json!([here, other]), json!([other])),
            (&usual, "True", json!([]), json!(null)),
            (&elsewhere, "False", json!([]), json!(null)),
            (&silent, "False", json!([]), json!(null)),
            (&never, "False", json!([]), json!(null)),
            // Whoever sets a taint that makes workloads leave may leave out since when.
            (
                &never,
                "True",
                json!([{"key": "k", "value": "v", "effect": "NoExecute"}]),
                json!([here]),
            ),
        ];
        for (spec, ready, before, after) in table {
            let cluster = json!({
                "metadata": {"name": "m"}, "spec": {"taints": before},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            let cluster: Cluster = serde_json::from_value(cluster).unwrap();
            let policies = [policy("p", "2025-01-01T00:00:00Z", spec.clone())];
            let next = policy_taints(&cluster, &policies, now);
            let expected: Option<Vec<Taint>> = serde_json::from_value(after.clone()).unwrap();
            assert_eq!(next, expected, "{spec} with Ready {ready} and {before}");
        }
    }

    #[test]
    fn the_newest_policy_has_the_last_word() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let always = json!([{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}]);
        let taint = json!([{"key": "k", "effect": "NoSchedule"}]);
        let add = |name, created| policy(name, created, json!({"addOnConditions": always, "taints": taint}));
        let remove = |name, created| {
            policy(
                name,
                created,
                json!({"removeOnConditions": always, "taints": taint}),
            )
        };
        let cluster = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let (old, new) = ("2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z");
        assert_eq!(
            policy_taints(&cluster, &[remove("b", new), add("a", old)], now),
            None
        );
        let both = [add("a", new), remove("b", old)];
        assert_eq!(
            policy_taints(&cluster, &both, now).map(|taints| taints.len()),
            Some(1)
        );
    }
}
