//! Placements that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

pub(crate) fn placements() -> Vec<Case> {
    let placement = |field: &str, value: Value| json!({"placement": {field: value}});
    let aggregated = json!({"replicaDivisionPreference": "Aggregated"});
    let with_overflow = |scheduling: Value, term: Value| json!({"placement": {"replicaScheduling": scheduling, "clusterAffinities": [term]}});
    let field_selector = |requirement: Value| {
        placement(
            "clusterAffinity",
            json!({"fieldSelector": {"matchExpressions": [requirement]}}),
        )
    };
    let weights = |weight: Value| {
        placement(
            "replicaScheduling",
            json!({"weightPreference": {"staticWeightList": [weight]}}),
        )
    };
    let labels: serde_json::Map<String, Value> = (0..33).map(|i| (format!("key-{i}"), json!("a"))).collect();
    let long_name = format!("{}/a", "d".repeat(32));
    let cases: Vec<(Value, &'static str)> = vec![
        (
            json!({"placement": {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}}),
            "spec.placement.clusterAffinities",
        ),
        (
            field_selector(json!({"key": "name", "operator": "In", "values": ["a"]})),
            "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].key",
        ),
        (
            field_selector(json!({"key": "zone", "operator": "Exists", "values": ["a"]})),
            "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].operator",
        ),
        (
            field_selector(json!({"key": "zone", "operator": "In", "values": []})),
            "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].values",
        ),
        (
            field_selector(json!({"key": "zone", "operator": "In"})),
            "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].values",
        ),
        (
            placement(
                "clusterAffinity",
                json!({"labelSelector": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}),
            ),
            "spec.placement.clusterAffinity.labelSelector.matchExpressions[0].key",
        ),
        (
            placement(
                "clusterAffinity",
                json!({"labelSelector": {"matchLabels": {"a b": "c"}}}),
            ),
            "spec.placement.clusterAffinity.labelSelector.matchLabels",
        ),
        (
            placement(
                "clusterAffinity",
                json!({"labelSelector": {"matchLabels": labels}}),
            ),
            "spec.placement.clusterAffinity.labelSelector.matchLabels",
        ),
        (
            placement(
                "clusterAffinity",
                json!({"labelSelector": {"matchLabels": {"a": "c d"}}}),
            ),
            "spec.placement.clusterAffinity.labelSelector.matchLabels",
        ),
        (
            placement(
                "clusterAffinity",
                json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c d"]}]}}),
            ),
            "spec.placement.clusterAffinity.labelSelector.matchExpressions[0].values[1]",
        ),
        (
            placement(
                "clusterAffinities",
                json!([{"affinityName": "a", "labelSelector": {"matchLabels": {"a b": "c"}}}]),
            ),
            "spec.placement.clusterAffinities[0].labelSelector.matchLabels",
        ),
        (
            weights(json!({"weight": 1, "targetCluster": {"labelSelector": {"matchLabels": {"a b": "c"}}}})),
            "staticWeightList[0].targetCluster.labelSelector.matchLabels",
        ),
        (
            placement("clusterAffinities", json!([{}])),
            "spec.placement.clusterAffinities[0].affinityName",
        ),
        (
            placement("clusterAffinities", json!([{"affinityName": ""}])),
            "spec.placement.clusterAffinities[0].affinityName",
        ),
        (
            placement("clusterAffinities", json!([{"affinityName": "a b"}])),
            "spec.placement.clusterAffinities[0].affinityName",
        ),
        (
            placement("clusterAffinities", json!([{"affinityName": long_name}])),
            "spec.placement.clusterAffinities[0].affinityName",
        ),
        (
            placement(
                "clusterAffinities",
                json!([{"affinityName": "a"}, {"affinityName": "b"}, {"affinityName": "a"}]),
            ),
            "spec.placement.clusterAffinities",
        ),
        (
            placement(
                "clusterAffinities",
                json!([{"affinityName": "a", "fieldSelector": {"matchExpressions": [
                {"key": "name", "operator": "In", "values": ["a"]}]}}]),
            ),
            "spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0].key",
        ),
        (
            placement(
                "clusterAffinities",
                json!([{"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [{"affinityName": "b"}]}]),
            ),
            "overflowAffinities",
        ),
        (
            with_overflow(
                json!({"replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Aggregated"}),
                json!({"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [{"affinityName": "b"}]}),
            ),
            "overflowAffinities",
        ),
        (
            with_overflow(
                json!({"replicaDivisionPreference": "Weighted"}),
                json!({"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [{"affinityName": "b"}]}),
            ),
            "overflowAffinities",
        ),
        (
            with_overflow(
                aggregated.clone(),
                json!({"affinityName": "a", "overflowAffinities": [{"affinityName": "b"}]}),
            ),
            "spec.placement.clusterAffinities[0].overflowAffinities",
        ),
        (
            with_overflow(
                aggregated.clone(),
                json!({"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [{"affinityName": "a"}]}),
            ),
            "spec.placement.clusterAffinities[0].overflowAffinities",
        ),
        (
            with_overflow(
                aggregated,
                json!({"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [
                {"affinityName": "b"}, {"affinityName": "b"}]}),
            ),
            "spec.placement.clusterAffinities[0].overflowAffinities",
        ),
        (
            placement(
                "clusterTolerations",
                json!([{"key": "a", "operator": "Lt", "value": "1"}]),
            ),
            "spec.placement.clusterTolerations[0].operator",
        ),
        (
            placement(
                "clusterTolerations",
                json!([{"key": "a", "operator": "Gt", "value": "1"}]),
            ),
            "spec.placement.clusterTolerations[0].operator",
        ),
        (
            placement("spreadConstraints", json!([{"spreadByField": "city"}])),
            "spec.placement.spreadConstraints[0].spreadByField",
        ),
        (
            placement(
                "spreadConstraints",
                json!([{"spreadByField": "cluster", "spreadByLabel": "a"}]),
            ),
            "spec.placement.spreadConstraints[0].spreadByLabel",
        ),
        (
            placement("spreadConstraints", json!([{"minGroups": -1}])),
            "spec.placement.spreadConstraints[0].minGroups",
        ),
        (
            placement("spreadConstraints", json!([{"minGroups": 1.5}])),
            "spec.placement.spreadConstraints[0].minGroups",
        ),
        (
            placement("spreadConstraints", json!([{"minGroups": 1e30}])),
            "spec.placement.spreadConstraints[0].minGroups",
        ),
        (
            placement("spreadConstraints", json!([{"maxGroups": -1}])),
            "spec.placement.spreadConstraints[0].maxGroups",
        ),
        (
            placement("spreadConstraints", json!([{"minGroups": 3, "maxGroups": 2}])),
            "spec.placement.spreadConstraints[0].maxGroups",
        ),
        (
            placement(
                "spreadConstraints",
                json!([{"spreadByField": "cluster"}, {"spreadByField": "cluster"}]),
            ),
            "spec.placement.spreadConstraints",
        ),
        (
            placement("spreadConstraints", json!([{"spreadByField": "cluster"}, {}])),
            "spec.placement.spreadConstraints",
        ),
        (
            placement("spreadConstraints", json!([{"spreadByField": "region"}])),
            "spec.placement.spreadConstraints",
        ),
        (
            placement(
                "spreadConstraints",
                json!([{"spreadByField": "region"}, {"spreadByLabel": "a"}]),
            ),
            "spec.placement.spreadConstraints",
        ),
        (
            placement("replicaScheduling", json!({"replicaSchedulingType": "Even"})),
            "spec.placement.replicaScheduling.replicaSchedulingType",
        ),
        (
            placement("replicaScheduling", json!({"replicaDivisionPreference": "Even"})),
            "spec.placement.replicaScheduling.replicaDivisionPreference",
        ),
        (
            weights(json!({"targetCluster": {}, "weight": 0})),
            "spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight",
        ),
        (
            weights(json!({"weight": 1})),
            "spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster",
        ),
        (
            weights(
                json!({"weight": 1, "targetCluster": {"fieldSelector": {"matchExpressions": [
                {"key": "name", "operator": "In", "values": ["a"]}]}}}),
            ),
            "staticWeightList[0].targetCluster.fieldSelector.matchExpressions[0].key",
        ),
        (
            placement(
                "replicaScheduling",
                json!({"weightPreference": {"dynamicWeight": "Free"}}),
            ),
            "spec.placement.replicaScheduling.weightPreference.dynamicWeight",
        ),
        (
            placement(
                "workloadAffinity",
                json!({"affinity": {"groupByLabelKey": "a b"}}),
            ),
            "spec.placement.workloadAffinity.affinity.groupByLabelKey",
        ),
        (
            placement("workloadAffinity", json!({"antiAffinity": {}})),
            "spec.placement.workloadAffinity.antiAffinity.groupByLabelKey",
        ),
        (
            placement(
                "workloadAffinity",
                json!({"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "a"}}),
            ),
            "spec.placement.workloadAffinity.antiAffinity.groupByLabelKey",
        ),
    ];
    cases
        .into_iter()
        .map(|(spec, field)| ("Propagation", spec, field))
        .collect()
}

/// Copies of placements say anything, and not any number of it.
pub(crate) fn copies() -> Vec<Case> {
    let many = |count: usize, item: Value| Value::from(vec![item; count]);
    let exists = json!({"key": "a", "operator": "Exists"});
    [
        (
            json!({"placement": {"clusterAffinity": {"labelSelector": {"matchExpressions": many(65, exists)}}}}),
            "spec.placement.clusterAffinity.labelSelector.matchExpressions",
        ),
        (
            json!({"placement": {"clusterAffinities": many(65, json!({"affinityName": "a"}))}}),
            "spec.placement.clusterAffinities",
        ),
    ]
    .map(|(spec, field)| ("Binding", spec, field))
    .into()
}
