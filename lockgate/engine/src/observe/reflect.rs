//! Which part of a member object's status the hub keeps.
//!
//! Workloads carry two numbers more: `generation`, the member object's own, and `resourceTemplateGeneration`, that of
//! the template it was rendered from. A status that differs only in times would be written again and again, so the
//! conditions of Deployments are kept without theirs.

use lockgate_api::keys;
use serde_json::{Map, Value, json};

use super::cut;
use super::kind::Kind;
use crate::object::{annotation, generation};

/// The longest message of a condition that is kept, in characters.
const MESSAGE: usize = 1024;
/// The conditions of a Deployment that are kept.
const CONDITIONS: [&str; 3] = ["Available", "Progressing", "ReplicaFailure"];

/// The fields that are kept of a kind's status.
struct Fields {
    /// Counts that are there even if they are 0.
    counts: &'static [&'static str],
    /// Fields that are there if they say something.
    others: &'static [&'static str],
}

fn fields(kind: Kind) -> Option<Fields> {
    let (counts, others): (&[&str], &[&str]) = match kind {
        Kind::Deployment => (
            &[],
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ],
        ),
        Kind::StatefulSet => (
            &["replicas", "availableReplicas"],
            &[
                "observedGeneration",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "currentRevision",
                "updateRevision",
            ],
        ),
        Kind::ReplicaSet => (
            &["replicas"],
            &[
                "observedGeneration",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
            ],
        ),
        Kind::DaemonSet => (
            &[
                "currentNumberScheduled",
                "desiredNumberScheduled",
                "numberMisscheduled",
                "numberReady",
            ],
            &[
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ],
        ),
        Kind::Job => (
            &[],
            &[
                "active",
                "succeeded",
                "failed",
                "conditions",
                "startTime",
                "completionTime",
            ],
        ),
        Kind::PodDisruptionBudget => (
            &[
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ],
            &["disruptedPods"],
        ),
        Kind::HorizontalPodAutoscaler => (&["desiredReplicas"], &["currentReplicas"]),
        Kind::Service
        | Kind::Ingress
        | Kind::CronJob
        | Kind::Pod
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::Other => return None,
    };
    Some(Fields { counts, others })
}

/// The part of the status that is kept; none if there is none.
pub(super) fn reflect(live: &Value) -> Option<Value> {
    let status = live.get("status")?.as_object()?;
    let kind = Kind::of(live);
    let kept = match (kind, fields(kind)) {
        (Kind::Service, _) => return service(live, status),
        (_, None) => status.clone(),
        (_, Some(fields)) => picked(status, &fields),
    };
    let kept = match kind {
        Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet | Kind::DaemonSet => {
            with_generations(live, status, kept)
        }
        _ => kept,
    };
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn picked(status: &Map<String, Value>, fields: &Fields) -> Map<String, Value> {
    let counts = fields.counts.iter().map(|field| {
        let value = status.get(*field).and_then(Value::as_i64).unwrap_or(0);
        ((*field).to_owned(), json!(value))
    });
    let others = fields.others.iter().filter_map(|field| {
        let value = status.get(*field).filter(|value| says_something(value))?;
        Some(((*field).to_owned(), value.clone()))
    });
    counts.chain(others).collect()
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) => true,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn with_generations(
    live: &Value,
    status: &Map<String, Value>,
    mut kept: Map<String, Value>,
) -> Map<String, Value> {
    let of_template: i64 = annotation(live, keys::TEMPLATE_GENERATION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    for (field, number) in [
        ("generation", generation(live)),
        ("resourceTemplateGeneration", of_template),
    ] {
        if number > 0 {
            kept.insert(field.to_owned(), json!(number));
        }
    }
    if Kind::of(live) == Kind::Deployment {
        let conditions: Vec<Value> = conditions(status).collect();
        if !conditions.is_empty() {
            kept.insert("conditions".to_owned(), Value::Array(conditions));
        }
    }
    kept
}

/// A Deployment's conditions, each type once, without times.
fn conditions(status: &Map<String, Value>) -> impl Iterator<Item = Value> {
    let all = status.get("conditions").and_then(Value::as_array);
    CONDITIONS.iter().filter_map(move |kind| {
        let condition = all?.iter().find(|condition| condition["type"] == *kind)?;
        let text = |field: &str| cut(condition[field].as_str().unwrap_or_default(), MESSAGE);
        Some(json!({
            "type": kind,
            "status": text("status"),
            "reason": text("reason"),
            "message": text("message"),
        }))
    })
}

/// Only a load balancer's status says something.
fn service(live: &Value, status: &Map<String, Value>) -> Option<Value> {
    if live["spec"]["type"] != "LoadBalancer" {
        return None;
    }
    let balancer = status.get("loadBalancer").cloned().unwrap_or_else(|| json!({}));
    Some(json!({ "loadBalancer": balancer }))
}
