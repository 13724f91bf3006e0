//! Whether a member object does what it should. Kinds without a rule say so by the conditions that are customary, and are
//! healthy if they do not.

use serde_json::Value;

use super::kind::Kind;
use super::{Health, condition, count, is_true};
use crate::object::generation;

/// The health of a live member object.
pub(super) fn health(live: &Value) -> Health {
    let status = &live["status"];
    let healthy = match Kind::of(live) {
        Kind::Deployment => is_seen(live) && is_rolled_out(status, wanted(live)),
        Kind::StatefulSet => {
            is_seen(live)
                && is_rolled_out(status, wanted(live) - partition(live))
                // What the partition leaves as it was must be there all the same.
                && count(status, "availableReplicas") >= wanted(live)
        }
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
        Kind::Job | Kind::CronJob | Kind::PersistentVolume | Kind::HorizontalPodAutoscaler => true,
        Kind::Other => return by_conditions(live),
    };
    if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}

/// Whether there is a rule for how objects of a kind are. Of the others people know only what they say themselves.
pub fn has_rule(group: &str, kind: &str) -> bool {
    !matches!(
        Kind::named(group, kind),
        Kind::Job | Kind::CronJob | Kind::PersistentVolume | Kind::HorizontalPodAutoscaler | Kind::Other
    )
}

/// What an object says of itself: its controller has seen it, nothing has failed for good, and it is ready or available.
fn by_conditions(live: &Value) -> Health {
    let status = &live["status"];
    let behind = |said: &Value| {
        said.get("observedGeneration")
            .and_then(Value::as_i64)
            .is_some_and(|seen| seen < generation(live))
    };
    if is_true(status, "Failed") || is_true(status, "Stalled") || behind(status) {
        return Health::Unhealthy;
    }
    let said = condition(status, "Ready").or_else(|| condition(status, "Available"));
    match said.map(|said| (behind(said), said["status"].as_str())) {
        None | Some((false, Some("True"))) => Health::Healthy,
        Some((_, Some("Unknown"))) => Health::Unknown,
        Some(_) => Health::Unhealthy,
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
