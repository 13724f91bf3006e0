//! Whether a member object does what it should. Kinds without a rule are healthy.

use serde_json::Value;

use super::kind::Kind;
use super::{Health, count, is_true};
use crate::object::generation;

/// The health of a live member object.
pub(super) fn health(live: &Value) -> Health {
    let status = &live["status"];
    let healthy = match Kind::of(live) {
        Kind::Deployment => is_seen(live) && is_rolled_out(status, wanted(live)),
        Kind::StatefulSet => is_seen(live) && is_rolled_out(status, wanted(live) - partition(live)),
        Kind::ReplicaSet => is_seen(live) && count(status, "availableReplicas") >= wanted(live),
        Kind::DaemonSet => {
            let updated = count(status, "updatedNumberScheduled");
            is_seen(live)
                && updated >= count(status, "desiredNumberScheduled")
                && count(status, "numberAvailable") >= updated
        }
        Kind::Pod => match status["phase"].as_str() {
            Some("Succeeded") => true,
            Some("Running") => is_true(status, "Ready"),
            _ => false,
        },
        Kind::Service => live["spec"]["type"] != "LoadBalancer" || is_reachable(status),
        Kind::Ingress => is_reachable(status),
        Kind::PersistentVolumeClaim => status["phase"] == "Bound",
        Kind::PodDisruptionBudget => count(status, "currentHealthy") >= count(status, "desiredHealthy"),
        Kind::Job | Kind::CronJob | Kind::PersistentVolume | Kind::HorizontalPodAutoscaler | Kind::Other => {
            true
        }
    };
    if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}

/// Whether the status speaks of the object as it is.
fn is_seen(live: &Value) -> bool {
    count(&live["status"], "observedGeneration") == generation(live)
}

fn wanted(live: &Value) -> i64 {
    live["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// How many Pods of a StatefulSet are told to stay as they were. A rollout that stops there is not a failed one.
fn partition(live: &Value) -> i64 {
    live["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
        .as_i64()
        .unwrap_or(0)
}

fn is_rolled_out(status: &Value, wanted: i64) -> bool {
    let updated = count(status, "updatedReplicas");
    updated >= wanted && count(status, "availableReplicas") >= updated
}

/// Whether a load balancer has an address.
fn is_reachable(status: &Value) -> bool {
    let filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    status["loadBalancer"]["ingress"].as_array().is_some_and(|all| {
        all.iter()
            .any(|one| filled(&one["ip"]) || filled(&one["hostname"]))
    })
}
