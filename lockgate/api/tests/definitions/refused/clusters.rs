//! Clusters, bindings and Works that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

pub(crate) fn clusters() -> Vec<Case> {
    let range = |min: Value, max: Value| json!([{"name": "cpu", "min": min, "max": max}]);
    let models = |models: &[(i64, Value)]| {
        let models: Vec<Value> = models
            .iter()
            .map(|(grade, ranges)| json!({"grade": grade, "ranges": ranges}))
            .collect();
        json!({"resourceModels": models})
    };
    let end = || json!("9223372036854775807");
    let cases: Vec<(Value, &'static str)> = vec![
        (json!({"syncMode": "Both"}), "spec.syncMode"),
        (json!({"syncMode": null}), "spec.syncMode"),
        (json!({"apiEndpoint": "member1:6443"}), "spec.apiEndpoint"),
        (json!({"apiEndpoint": "https://"}), "spec.apiEndpoint"),
        (
            json!({"apiEndpoint": "https://user@member1:6443"}),
            "spec.apiEndpoint",
        ),
        (
            json!({"apiEndpoint": "https://member1:6443?a=b"}),
            "spec.apiEndpoint",
        ),
        (
            json!({"apiEndpoint": "https://member1:6443/#a"}),
            "spec.apiEndpoint",
        ),
        (json!({"proxyURL": "ftp://proxy"}), "spec.proxyURL"),
        (json!({"secretRef": {"name": "a"}}), "spec.secretRef.namespace"),
        (
            json!({"secretRef": {"namespace": "a", "name": ""}}),
            "spec.secretRef.name",
        ),
        (
            json!({"impersonatorSecretRef": {"namespace": "a"}}),
            "spec.impersonatorSecretRef.name",
        ),
        (json!({"provider": "a b"}), "spec.provider"),
        (json!({"region": "a".repeat(64)}), "spec.region"),
        (json!({"zones": ["a", "-b"]}), "spec.zones[1]"),
        (json!({"zone": "-a"}), "spec.zone"),
        (json!({"zone": "a", "zones": ["b"]}), "spec.zone"),
        (json!({"taints": [{"key": "a"}]}), "spec.taints[0].effect"),
        (
            json!({"taints": [{"key": "a", "effect": "Never"}]}),
            "spec.taints[0].effect",
        ),
        (
            json!({"taints": [{"key": "a b", "effect": "NoSchedule"}]}),
            "spec.taints[0].key",
        ),
        (
            json!({"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]}),
            "spec.taints",
        ),
        (
            models(&[(1, range(json!(0), end()))]),
            "spec.resourceModels[].grade",
        ),
        (
            models(&[(0, range(json!(0), json!(1))), (0, range(json!(1), end()))]),
            "spec.resourceModels[].grade",
        ),
        (
            models(&[(0, range(json!("a lot"), end()))]),
            "spec.resourceModels[0].ranges[0].min",
        ),
        (
            models(&[(0, range(json!(1), end()))]),
            "spec.resourceModels[0].ranges[].min must be 0",
        ),
        (
            models(&[(0, range(json!(0), json!("1Gi")))]),
            "max must be 9223372036854775807",
        ),
        (
            models(&[(0, range(json!(0), json!("0")))]),
            "max must be greater than min",
        ),
        (
            models(&[(0, range(json!(0), json!(1))), (1, range(json!(2), end()))]),
            "min must be the max of the grade before",
        ),
        (
            models(&[
                (0, range(json!(0), json!(1))),
                (1, json!([{"name": "memory", "min": 1, "max": end()}])),
            ]),
            "must name the same resources",
        ),
    ];
    cases
        .into_iter()
        .map(|(spec, field)| ("Cluster", spec, field))
        .collect()
}

pub(crate) fn others() -> Vec<Case> {
    let task = |field: &str, value: Value| {
        let mut task = json!({"fromCluster": "a", "producer": "b", "reason": "C"});
        task[field] = value;
        json!({"gracefulEvictionTasks": [task]})
    };
    vec![
        (
            "Binding",
            json!({"resource": {"apiVersion": "v1", "kind": "Pod"}}),
            "spec.resource.name",
        ),
        (
            "Binding",
            json!({"conflictResolution": "Ask"}),
            "spec.conflictResolution",
        ),
        (
            "Binding",
            json!({"clusters": [{"replicas": 1}]}),
            "spec.clusters[0].name",
        ),
        (
            "Binding",
            json!({"components": [{"name": "a".repeat(33), "replicas": 1}]}),
            "spec.components[0].name",
        ),
        (
            "Binding",
            task("reason", json!("not a word")),
            "spec.gracefulEvictionTasks[0].reason",
        ),
        (
            "Binding",
            task("reason", json!("a".repeat(33))),
            "spec.gracefulEvictionTasks[0].reason",
        ),
        (
            "Binding",
            task("message", json!("a".repeat(1025))),
            "spec.gracefulEvictionTasks[0].message",
        ),
        (
            "Binding",
            task("creationTimestamp", json!("now")),
            "spec.gracefulEvictionTasks[0].creationTimestamp",
        ),
        (
            "Binding",
            json!({"rescheduleTriggeredAt": "now"}),
            "spec.rescheduleTriggeredAt",
        ),
        (
            "Work",
            json!({"workload": {"manifests": ["xxx"]}}),
            "spec.workload.manifests[0]",
        ),
        (
            "Work",
            json!({"workload": {"manifests": [{"metadata": {"name": "a"}}]}}),
            "spec.workload.manifests[0].apiVersion",
        ),
        (
            "Work",
            json!({"suspendDispatching": "yes"}),
            "spec.suspendDispatching",
        ),
    ]
}
