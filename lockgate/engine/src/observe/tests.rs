//! What is seen of member objects, kind by kind; what Works and bindings say of it is in [`said`].

mod custom;
mod said;

use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_733_161 + second).expect("within range")
}

fn live(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": "web", "namespace": "shop", "generation": 3,
            "annotations": {"resourcetemplate.karmada.io/generation": "2"},
        },
        "spec": spec,
        "status": status,
    })
}

/// Name, apiVersion, kind, spec, status; then the status that is kept, and the health.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    Value,
    Value,
    Health,
);

fn check(cases: Vec<Case>) {
    for (name, api_version, kind, spec, status, kept, health) in cases {
        let seen = observe(&live(api_version, kind, spec, status));
        assert_eq!(seen.status.unwrap_or(Value::Null), kept, "{kind}: {name}");
        assert_eq!(seen.health, health, "{kind}: {name}");
    }
}

use Health::{Healthy, Unhealthy};

#[test]
fn workloads() {
    let old_pods =
        json!({"observedGeneration": 3, "replicas": 5, "updatedReplicas": 4, "availableReplicas": 4});
    check(vec![
        (
            "no controller",
            "apps/v1",
            "Deployment",
            json!({"replicas": 4}),
            json!({}),
            json!({"generation": 3, "resourceTemplateGeneration": 2}),
            Unhealthy,
        ),
        (
            "ready; times are not kept, nor conditions of unknown types",
            "apps/v1",
            "Deployment",
            json!({"replicas": 4}),
            json!({
                "observedGeneration": 3, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 4,
                "availableReplicas": 4, "collisionCount": 1,
                "conditions": [
                    {"type": "Odd", "status": "True"},
                    {"type": "Available", "status": "True", "reason": "R", "message": "m",
                     "lastUpdateTime": "2026-11-15T08:59:21Z", "lastTransitionTime": "2026-11-15T08:59:21Z"},
                ],
            }),
            json!({
                "generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 4,
                "updatedReplicas": 4, "readyReplicas": 4, "availableReplicas": 4,
                "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m"}],
            }),
            Healthy,
        ),
        (
            "old generation",
            "apps/v1",
            "Deployment",
            json!({"replicas": 0}),
            json!({"observedGeneration": 2}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 2}),
            Unhealthy,
        ),
        (
            "not all updated",
            "apps/v1",
            "Deployment",
            json!({"replicas": 5}),
            old_pods.clone(),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 5,
                   "updatedReplicas": 4, "availableReplicas": 4}),
            Unhealthy,
        ),
        (
            "a partition is as far as it goes",
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
            json!({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 3,
                   "currentRevision": "a", "updateRevision": "b", "collisionCount": 0}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 3,
                   "updatedReplicas": 1, "availableReplicas": 3, "currentRevision": "a", "updateRevision": "b"}),
            Healthy,
        ),
        (
            "a partition beyond the last Pod, of which none is there",
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 3}}}),
            json!({"observedGeneration": 3, "replicas": 3, "availableReplicas": 0}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 3,
                   "availableReplicas": 0}),
            Unhealthy,
        ),
        (
            "updated but not available",
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 3}),
            json!({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 3,
                   "updatedReplicas": 3, "availableReplicas": 2}),
            Unhealthy,
        ),
        (
            "counts that are always there",
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 1}),
            json!({}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "replicas": 0, "availableReplicas": 0}),
            Unhealthy,
        ),
        (
            "enough",
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 2}),
            json!({"observedGeneration": 3, "replicas": 2, "availableReplicas": 2}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 2,
                   "availableReplicas": 2}),
            Healthy,
        ),
        (
            "too few",
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 2}),
            json!({"observedGeneration": 3, "replicas": 2, "availableReplicas": 1}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3, "replicas": 2,
                   "availableReplicas": 1}),
            Unhealthy,
        ),
        (
            "a node waits",
            "apps/v1",
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 3, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
                   "numberReady": 1, "updatedNumberScheduled": 2, "numberAvailable": 1}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3,
                   "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 1,
                   "numberMisscheduled": 0, "updatedNumberScheduled": 2, "numberAvailable": 1}),
            Unhealthy,
        ),
        (
            "no nodes",
            "apps/v1",
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 3}),
            json!({"generation": 3, "resourceTemplateGeneration": 2, "observedGeneration": 3,
                   "desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberReady": 0,
                   "numberMisscheduled": 0}),
            Healthy,
        ),
    ]);
}

#[test]
fn other_kinds() {
    let ready =
        |status: &str| json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}]});
    let address = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}});
    let balancer = json!({"type": "LoadBalancer"});
    check(vec![
        (
            "some fields",
            "batch/v1",
            "Job",
            json!({}),
            json!({"active": 0, "failed": 3, "ready": 0, "uncountedTerminatedPods": {}}),
            json!({"failed": 3}),
            Healthy,
        ),
        (
            "nothing yet",
            "batch/v1",
            "Job",
            json!({}),
            json!({}),
            Value::Null,
            Healthy,
        ),
        (
            "whole",
            "batch/v1",
            "CronJob",
            json!({}),
            json!({"lastScheduleTime": "2026-11-15T08:59:21Z"}),
            json!({"lastScheduleTime": "2026-11-15T08:59:21Z"}),
            Healthy,
        ),
        (
            "ready",
            "v1",
            "Pod",
            json!({}),
            ready("True"),
            ready("True"),
            Healthy,
        ),
        (
            "not ready",
            "v1",
            "Pod",
            json!({}),
            ready("False"),
            ready("False"),
            Unhealthy,
        ),
        (
            "ended well",
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Succeeded"}),
            json!({"phase": "Succeeded"}),
            Healthy,
        ),
        (
            "pending",
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Pending"}),
            json!({"phase": "Pending"}),
            Unhealthy,
        ),
        (
            "needs no balancer",
            "v1",
            "Service",
            json!({"type": "ClusterIP"}),
            json!({"loadBalancer": {}}),
            Value::Null,
            Healthy,
        ),
        (
            "no address",
            "v1",
            "Service",
            balancer.clone(),
            json!({"loadBalancer": {}, "conditions": []}),
            json!({"loadBalancer": {}}),
            Unhealthy,
        ),
        (
            "an address",
            "v1",
            "Service",
            balancer,
            address.clone(),
            address.clone(),
            Healthy,
        ),
        (
            "an address",
            "networking.k8s.io/v1",
            "Ingress",
            json!({}),
            address.clone(),
            address,
            Healthy,
        ),
        (
            "an empty address",
            "networking.k8s.io/v1",
            "Ingress",
            json!({}),
            json!({"loadBalancer": {"ingress": [{"hostname": ""}]}}),
            json!({"loadBalancer": {"ingress": [{"hostname": ""}]}}),
            Unhealthy,
        ),
        (
            "bound",
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Bound"}),
            json!({"phase": "Bound"}),
            Healthy,
        ),
        (
            "lost",
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Lost"}),
            json!({"phase": "Lost"}),
            Unhealthy,
        ),
        (
            "enough",
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3, "disruptionsAllowed": 0,
                   "observedGeneration": 3}),
            json!({"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3, "disruptionsAllowed": 0}),
            Healthy,
        ),
        (
            "too few",
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"currentHealthy": 1, "desiredHealthy": 2}),
            json!({"currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 0, "disruptionsAllowed": 0}),
            Unhealthy,
        ),
        (
            "counts only",
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({}),
            json!({"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [{}]}),
            json!({"currentReplicas": 2, "desiredReplicas": 3}),
            Healthy,
        ),
        (
            "any other kind, of the same name",
            "example.io/v1",
            "Deployment",
            json!({}),
            json!({"ready": false}),
            json!({"ready": false}),
            Healthy,
        ),
    ]);
}

#[test]
fn objects_without_a_usable_status() {
    for (object, health) in [
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}),
            Healthy,
        ),
        (
            json!({"apiVersion": "example.io/v1", "kind": "Odd", "status": "fine"}),
            Healthy,
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}}),
            Unhealthy,
        ),
        (json!(null), Healthy),
    ] {
        assert_eq!(observe(&object), Observed { status: None, health }, "{object}");
    }
}

#[test]
fn long_messages_are_cut() {
    let long = "é".repeat(5000);
    let condition = json!({"type": "Available", "status": "False", "reason": "R", "message": long});
    let object = live(
        "apps/v1",
        "Deployment",
        json!({}),
        json!({"conditions": [condition]}),
    );
    let status = observe(&object).status.expect("it has one");
    let kept = status["conditions"][0]["message"].as_str().expect("a text");
    assert_eq!(kept.chars().count(), 1024);
    assert!(applied(Err(&long), false, 1, at(0)).message.chars().count() < 4200);
}

#[test]
fn manifests_are_named_as_recorded() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-config", "namespace": "shop"}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}});
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": "Active"}});
    for (object, expected) in [
        (
            config,
            json!({"health": "Healthy", "identifier": {"kind": "ConfigMap", "name": "web-config", "namespace": "shop",
                   "ordinal": 0, "resource": "", "version": "v1"}}),
        ),
        (
            role,
            json!({"health": "Healthy", "identifier": {"group": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                   "name": "reader", "ordinal": 0, "resource": "", "version": "v1"}}),
        ),
        (
            space,
            json!({"health": "Healthy", "identifier": {"kind": "Namespace", "name": "shop", "ordinal": 0,
                   "resource": "", "version": "v1"}, "status": {"phase": "Active"}}),
        ),
    ] {
        let said = serde_json::to_value(manifest_status(&object, 0)).expect("it is plain data");
        assert_eq!(said, expected);
    }
}
