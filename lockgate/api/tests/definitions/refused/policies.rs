//! Policies that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

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
