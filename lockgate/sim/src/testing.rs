//! Objects for the tests of decisions.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::{owner_reference, stamp};

/// The time, some seconds after the start of the test.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).expect("a time of this century")
}

fn workload(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    spec["template"] = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}], "restartPolicy": "Always"},
    });
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "generation": 1,
            "creationTimestamp": stamp(at(0)),
        },
        "spec": spec,
        "status": {},
    })
}

pub(crate) fn deployment(name: &str, replicas: i64) -> Value {
    let spec = json!({
        "replicas": replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    });
    workload("apps/v1", "Deployment", name, spec)
}

pub(crate) fn replica_set(name: &str, replicas: i64) -> Value {
    workload("apps/v1", "ReplicaSet", name, json!({"replicas": replicas}))
}

pub(crate) fn stateful_set(name: &str, replicas: i64) -> Value {
    let spec = json!({
        "replicas": replicas,
        "serviceName": name,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    });
    workload("apps/v1", "StatefulSet", name, spec)
}

pub(crate) fn daemon_set(name: &str) -> Value {
    let spec = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}});
    workload("apps/v1", "DaemonSet", name, spec)
}

pub(crate) fn job(name: &str, completions: i64, parallelism: i64) -> Value {
    let spec = json!({"completions": completions, "parallelism": parallelism, "backoffLimit": 1});
    let mut job = workload("batch/v1", "Job", name, spec);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

/// A Pod of a workload that was placed on a node.
pub(crate) fn pod(name: &str, owner: &Value) -> Value {
    let template = &owner["spec"]["template"];
    let mut spec = template["spec"].clone();
    spec["nodeName"] = json!("node-1");
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner_reference(owner)],
            "creationTimestamp": stamp(at(0)),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    })
}

/// The Pod, running and ready since a second.
pub(crate) fn ready(mut pod: Value, second: i64) -> Value {
    pod["status"] = json!({
        "phase": "Running",
        "podIP": "10.244.0.1",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(second))}],
    });
    pod
}

/// A node with room for `cpu` processors.
pub(crate) fn node(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "3"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}
