//! Placements, sets and clusters of OCM that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

pub(crate) fn placements() -> Vec<Case> {
    let groups = |value: Value| json!({"decisionStrategy": {"groupStrategy": value}});
    let group = |name: &str| {
        json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [
            {"groupName": name, "groupClusterSelector": {}}]}}})
    };
    let prioritizer = |value: Value| json!({"prioritizerPolicy": {"configurations": [value]}});
    let spread = |value: Value| json!({"spreadPolicy": {"spreadConstraints": [value]}});
    let toleration = |value: Value| json!({"tolerations": [value]});
    let cases: Vec<(Value, &'static str)> = vec![
        (json!({"numberOfClusters": -1}), "spec.numberOfClusters"),
        (json!({"numberOfClusters": "2"}), "spec.numberOfClusters"),
        (
            groups(json!({"clustersPerDecisionGroup": 0})),
            "clustersPerDecisionGroup",
        ),
        (
            groups(json!({"clustersPerDecisionGroup": -3})),
            "clustersPerDecisionGroup",
        ),
        (
            groups(json!({"clustersPerDecisionGroup": "0%"})),
            "clustersPerDecisionGroup",
        ),
        (
            groups(json!({"clustersPerDecisionGroup": "101%"})),
            "clustersPerDecisionGroup",
        ),
        (
            groups(json!({"clustersPerDecisionGroup": "some"})),
            "clustersPerDecisionGroup",
        ),
        (group("g"), "decisionGroups[0].groupName"),
        (group("-g-"), "decisionGroups[0].groupName"),
        (group(&"g".repeat(64)), "decisionGroups[0].groupName"),
        (
            groups(json!({"decisionGroups": [{"groupName": "canary"}]})),
            "decisionGroups[0].groupClusterSelector",
        ),
        (
            json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "Exist"}]}}}]}),
            "operator",
        ),
        (
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {
                "celExpressions": ["a".repeat(4097)]}}}]}),
            "celExpressions[0]",
        ),
        (prioritizer(json!({"weight": 11})), "configurations[0].weight"),
        (prioritizer(json!({"weight": -11})), "configurations[0].weight"),
        (
            prioritizer(json!({"scoreCoordinate": {"type": "Else"}})),
            "configurations[0].scoreCoordinate.type",
        ),
        (
            prioritizer(json!({"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "a"}}})),
            "configurations[0].scoreCoordinate.addOn.scoreName",
        ),
        (
            toleration(json!({"operator": "Equal"})),
            "spec.tolerations[0].operator",
        ),
        (toleration(json!({})), "spec.tolerations[0].operator"),
        (
            toleration(json!({"key": "a", "operator": "Exists", "value": "b"})),
            "spec.tolerations[0].value",
        ),
        (
            toleration(json!({"key": "a b", "operator": "Exists"})),
            "spec.tolerations[0].key",
        ),
        (
            toleration(json!({"key": "a", "effect": "NoSchedule"})),
            "spec.tolerations[0].effect",
        ),
        (spread(json!({"topologyKey": "a"})), "topologyKeyType"),
        (
            spread(json!({"topologyKey": "a", "topologyKeyType": "Label", "maxSkew": 0})),
            "maxSkew",
        ),
        (json!({"sortBy": "Age"}), "spec.sortBy"),
        (json!({"scoreRateLimit": "1d"}), "spec.scoreRateLimit"),
    ];
    let case = |(spec, field): (Value, &'static str)| ("Placement", spec, field);
    cases.into_iter().map(case).collect()
}

pub(crate) fn clusters() -> Vec<Case> {
    vec![
        (
            "ManagedCluster",
            json!({"managedClusterClientConfigs": [{"url": "http://a:80"}]}),
            "spec.managedClusterClientConfigs[0].url",
        ),
        (
            "ManagedCluster",
            json!({"taints": [{"key": "a"}]}),
            "spec.taints[0].effect",
        ),
        (
            "ManagedCluster",
            json!({"taints": [{"key": "a", "effect": "NoSchedule"}]}),
            "spec.taints[0].effect",
        ),
        (
            "ManagedCluster",
            json!({"taints": [{"key": "a", "effect": "NoSelect", "value": "v".repeat(1025)}]}),
            "spec.taints[0].value",
        ),
        (
            "ManagedClusterSet",
            json!({"clusterSelector": {"selectorType": "LegacyClusterSetLabel"}}),
            "spec.clusterSelector.selectorType",
        ),
        (
            "ManagedClusterSetBinding",
            json!({"clusterSet": "other"}),
            "spec.clusterSet",
        ),
        (
            "ManagedClusterSetBinding",
            json!({"clusterSet": ""}),
            "spec.clusterSet",
        ),
        (
            "ManagedClusterSetBinding",
            json!({"clusterSet": null}),
            "spec.clusterSet",
        ),
    ]
}
