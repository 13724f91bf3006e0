//! Rollout policies that are refused. Each is one step away from one that is accepted.

use serde_json::json;

use super::Case;

pub(crate) fn rollouts() -> Vec<Case> {
    vec![
        (
            "Rollout",
            json!({"resourceSelectors": []}),
            "spec.resourceSelectors",
        ),
        (
            "Rollout",
            json!({"resourceSelectors": [{"apiVersion": "v1"}]}),
            "spec.resourceSelectors[0].kind",
        ),
        (
            "Rollout",
            json!({"resourceSelectors": [{"kind": "Pod"}]}),
            "spec.resourceSelectors[0].apiVersion",
        ),
        // One with a namespace is about that namespace alone.
        (
            "RolloutPolicy",
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "namespace": "other"}]}),
            "spec.resourceSelectors[].namespace",
        ),
        (
            "Rollout",
            json!({"suspension": {"dispatching": true, "suspendDispatching": true}}),
            "spec.suspension.suspendDispatching",
        ),
        (
            "Rollout",
            json!({"suspension": {"dispatchingOnClusters": {}, "suspendDispatchingOnClusters": {}}}),
            "spec.suspension.suspendDispatchingOnClusters",
        ),
        (
            "Rollout",
            json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Rollout",
            json!({"suspension": {"suspendDispatching": true, "suspendDispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Rollout",
            json!({"suspension": {"dispatching": true, "suspendDispatchingOnClusters": {"clusterNames": ["a"]}}}),
            "spec.suspension",
        ),
        (
            "Rollout",
            json!({"strategy": {"type": "All", "decisionGroups": [{
                "groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"a b": "c"}}}}]}}),
            "spec.strategy.decisionGroups[0].groupClusterSelector.labelSelector.matchLabels",
        ),
        (
            "Rollout",
            json!({"suspension": {"dispatching": "yes"}}),
            "spec.suspension.dispatching",
        ),
        (
            "Rollout",
            json!({"suspension": {"reason": "a".repeat(1025)}}),
            "spec.suspension.reason",
        ),
        (
            "Rollout",
            json!({"suspension": {"reason": 7}}),
            "spec.suspension.reason",
        ),
    ]
}
