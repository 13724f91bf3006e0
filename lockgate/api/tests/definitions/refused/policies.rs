//! Policies that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

/// Selectors that can match nothing, for every kind that selects objects.
pub(crate) fn selectors() -> Vec<Case> {
    let of = |api_version: &str, kind: &str| json!([{"apiVersion": api_version, "kind": kind}]);
    let labelled = |labels: Value| json!([{"apiVersion": "v1", "kind": "Pod", "labelSelector": labels}]);
    let required = |key: &str, value: &str| {
        labelled(json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}))
    };
    let many: serde_json::Map<String, Value> = (0..65).map(|i| (format!("key-{i}"), json!("a"))).collect();
    const API_VERSION: &str = "spec.resourceSelectors[0].apiVersion";
    const KIND: &str = "spec.resourceSelectors[0].kind";
    const LABELS: &str = "spec.resourceSelectors[0].labelSelector.matchLabels";
    const KEYS: &str = "keys must be label keys";
    const EXPRESSION: &str = "spec.resourceSelectors[0].labelSelector.matchExpressions[0]";
    let cases = [
        (of("", "Pod"), API_VERSION),
        (of("a/b/c", "Pod"), API_VERSION),
        (of("/v1", "Pod"), API_VERSION),
        (of("apps/", "Deployment"), API_VERSION),
        (of("apps /v1", "Deployment"), API_VERSION),
        (of("Apps/v1", "Deployment"), API_VERSION),
        (of("a..b/v1", "Deployment"), API_VERSION),
        (of("apps/v1.2", "Deployment"), API_VERSION),
        (of("v1", ""), KIND),
        (of("v1", "*"), KIND),
        (of("v1", "Config Map"), KIND),
        (of("v1", "1Pod"), KIND),
        (of("v1", "Pod/status"), KIND),
        (labelled(json!({"matchLabels": {"a b": "c d"}})), LABELS),
        (
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "", "labelSelector": {"matchLabels": {"a b": "c"}}}]),
            KEYS,
        ),
        (labelled(json!({"matchLabels": {"app": "w b"}})), LABELS),
        (labelled(json!({"matchLabels": {"app": "a".repeat(64)}})), LABELS),
        (labelled(json!({"matchLabels": {"app": "-a"}})), LABELS),
        (labelled(json!({"matchLabels": many})), LABELS),
        (labelled(json!({"matchLabels": {"a b": "c"}})), KEYS),
        (labelled(json!({"matchLabels": {"": "c"}})), KEYS),
        (labelled(json!({"matchLabels": {"a/b/c": "c"}})), KEYS),
        (labelled(json!({"matchLabels": {"/a": "c"}})), KEYS),
        (labelled(json!({"matchLabels": {"A.b/c": "c"}})), KEYS),
        (labelled(json!({"matchLabels": {"a".repeat(64): "c"}})), KEYS),
        (
            labelled(json!({"matchLabels": {format!("{}/a", "d".repeat(316)): "c"}})),
            KEYS,
        ),
        (required("a b", "c"), EXPRESSION),
        (required("a", "c d"), EXPRESSION),
        (required("a", &"c".repeat(64)), EXPRESSION),
    ];
    let kinds = ["Propagation", "Override", "Rollout"];
    let all = kinds.iter().flat_map(|kind| {
        let case = |(selectors, field): &(Value, &'static str)| {
            (*kind, json!({"resourceSelectors": selectors}), *field)
        };
        cases.iter().map(case).collect::<Vec<Case>>()
    });
    all.collect()
}

pub(crate) fn policies() -> Vec<Case> {
    let deployment = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let failover =
        |application: Value| json!({"propagateDeps": true, "failover": {"application": application}});
    let preserved = |rule: Value| json!({"failover": {"cluster": {"statePreservation": {"rules": [rule]}}}});
    vec![
        (
            "Propagation",
            json!({"resourceSelectors": []}),
            "spec.resourceSelectors",
        ),
        (
            "Propagation",
            json!({"resourceSelectors": [{"apiVersion": "v1"}]}),
            "spec.resourceSelectors[0].kind",
        ),
        (
            "Propagation",
            json!({"resourceSelectors": [{"kind": "Pod"}]}),
            "spec.resourceSelectors[0].apiVersion",
        ),
        (
            "Propagation",
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "Near"}]}}]}),
            "spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator",
        ),
        (
            "Propagation",
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "In"}]}}]}),
            "spec.resourceSelectors[0].labelSelector.matchExpressions[0].values",
        ),
        (
            "Propagation",
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}]}),
            "spec.resourceSelectors[0].labelSelector.matchExpressions[0].values",
        ),
        ("Propagation", json!({"priority": "high"}), "spec.priority"),
        (
            "Propagation",
            json!({"priority": 2_147_483_648_i64}),
            "spec.priority",
        ),
        (
            "Propagation",
            json!({"preemption": "Sometimes"}),
            "spec.preemption",
        ),
        (
            "Propagation",
            json!({"preemption": "Always"}),
            "resourceSelectors[].name",
        ),
        (
            "Propagation",
            json!({"preemption": "Always", "resourceSelectors": [deployment("a"), deployment("")]}),
            "resourceSelectors[].name",
        ),
        (
            "ClusterPropagationPolicy",
            json!({"preemption": "Always", "resourceSelectors": [deployment("a")]}),
            "resourceSelectors[].namespace",
        ),
        (
            "ClusterPropagationPolicy",
            json!({"preemption": "Always", "resourceSelectors": [
                {"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": ""}]}),
            "resourceSelectors[].namespace",
        ),
        (
            "ClusterPropagationPolicy",
            json!({"preemption": "Always", "resourceSelectors": [
                {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "a"}]}),
            "resourceSelectors[].namespace",
        ),
        (
            "Propagation",
            json!({"conflictResolution": "Ask"}),
            "spec.conflictResolution",
        ),
        (
            "Propagation",
            json!({"activationPreference": "Eager"}),
            "spec.activationPreference",
        ),
        (
            "Propagation",
            json!({"suspension": {"dispatching": true, "suspendDispatching": true}}),
            "spec.suspension.suspendDispatching",
        ),
        (
            "Propagation",
            json!({"suspension": {"dispatchingOnClusters": {}, "suspendDispatchingOnClusters": {}}}),
            "spec.suspension.suspendDispatchingOnClusters",
        ),
        (
            "Propagation",
            json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Propagation",
            json!({"suspension": {"suspendDispatching": true, "suspendDispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Propagation",
            json!({"suspension": {"dispatching": true, "suspendDispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Propagation",
            json!({"schedulePriority": {"priorityClassName": "a"}}),
            "spec.schedulePriority.priorityClassSource",
        ),
        (
            "Propagation",
            json!({"schedulePriority": {"priorityClassSource": "KubePriorityClass"}}),
            "spec.schedulePriority.priorityClassName",
        ),
        (
            "Propagation",
            json!({"schedulePriority": {"priorityClassSource": "Pod", "priorityClassName": "a"}}),
            "spec.schedulePriority.priorityClassSource",
        ),
        (
            "Propagation",
            json!({"failover": {"application": {"decisionConditions": {}}}}),
            "spec.propagateDeps",
        ),
        (
            "Propagation",
            json!({"propagateDeps": false, "failover": {"application": {"decisionConditions": {}}}}),
            "spec.propagateDeps",
        ),
        (
            "Propagation",
            failover(json!({})),
            "spec.failover.application.decisionConditions",
        ),
        (
            "Propagation",
            failover(json!({"decisionConditions": {"tolerationSeconds": -1}})),
            "spec.failover.application.decisionConditions.tolerationSeconds",
        ),
        (
            "Propagation",
            failover(json!({"decisionConditions": {}, "purgeMode": "Soon"})),
            "spec.failover.application.purgeMode",
        ),
        (
            "Propagation",
            failover(json!({"decisionConditions": {}, "purgeMode": "Directly", "gracePeriodSeconds": 5})),
            "spec.failover.application.gracePeriodSeconds",
        ),
        (
            "Propagation",
            failover(json!({"decisionConditions": {}, "gracePeriodSeconds": 0})),
            "spec.failover.application.gracePeriodSeconds",
        ),
        (
            "Propagation",
            json!({"failover": {"cluster": {"purgeMode": "Never"}}}),
            "spec.failover.cluster.purgeMode",
        ),
        (
            "Propagation",
            preserved(json!({"aliasLabelName": "a b", "jsonPath": "{.a}"})),
            "spec.failover.cluster.statePreservation.rules[0].aliasLabelName",
        ),
        (
            "Propagation",
            preserved(json!({"aliasLabelName": "a"})),
            "spec.failover.cluster.statePreservation.rules[0].jsonPath",
        ),
    ]
}
