//! What clients may not write into a status.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::Gvk;
use crate::access::{items, text};

/// The status of a built-in kind.
pub(super) fn status(gvk: Gvk<'_>, object: &Value, report: &mut Report) {
    let path = FieldPath::new("status");
    let status = &object["status"];
    match (gvk.group, gvk.kind) {
        ("apps", "Deployment") => {
            const COUNTS: [&str; 6] = [
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ];
            counts(status, &COUNTS, &path, report);
            let of_all = ["updatedReplicas", "readyReplicas", "availableReplicas"];
            replicas(status, &of_all, "readyReplicas", &path, report);
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            const COUNTS: [&str; 5] = [
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
            ];
            counts(status, &COUNTS, &path, report);
            let of_all = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
            replicas(status, &of_all, "readyReplicas", &path, report);
        }
        ("apps", "StatefulSet") => {
            const COUNTS: [&str; 6] = [
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
            ];
            counts(status, &COUNTS, &path, report);
            let of_all = [
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ];
            replicas(status, &of_all, "status.readyReplicas", &path, report);
        }
        ("apps", "DaemonSet") => {
            const COUNTS: [&str; 8] = [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ];
            counts(status, &COUNTS, &path, report);
        }
        ("policy", "PodDisruptionBudget") => {
            let all = [
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ];
            counts(status, &all, &path, report);
        }
        ("flowcontrol.apiserver.k8s.io", _) => super::flows::conditions(object, report),
        ("autoscaling", _) => counts(status, &["currentReplicas", "desiredReplicas"], &path, report),
        ("", "Service") => balancer(object, &path.child("loadBalancer").child("ingress"), report),
        _ => {}
    }
}

fn counts(status: &Value, keys: &[&str], path: &FieldPath, report: &mut Report) {
    for key in keys {
        report.nonnegative(&path.child(key), &status[*key]);
    }
}

/// No part is larger than the whole, and what is available is ready.
fn replicas(status: &Value, parts: &[&str], ready: &str, path: &FieldPath, report: &mut Report) {
    let number = |key: &str| status[key].as_i64().unwrap_or_default();
    for key in parts {
        if number(key) > number("replicas") {
            report.invalid(
                &path.child(key),
                &status[*key],
                "cannot be greater than status.replicas",
            );
        }
    }
    if number("availableReplicas") > number("readyReplicas") {
        let at = path.child("availableReplicas");
        report.invalid(
            &at,
            &status["availableReplicas"],
            format!("cannot be greater than {ready}"),
        );
    }
}

fn balancer(service: &Value, path: &FieldPath, report: &mut Report) {
    let ingress = items(&service["status"]["loadBalancer"]["ingress"]);
    if text(&service["spec"]["type"]) != "LoadBalancer" && !ingress.is_empty() {
        report.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    for (index, one) in ingress.iter().enumerate() {
        let path = path.index(index);
        let ip = text(&one["ip"]);
        if !ip.is_empty() {
            report.messages(&path.child("ip"), ip, rules::ip(ip));
            if one["ipMode"].is_null() {
                report.required(&path.child("ipMode"), "must be specified when `ip` is set");
            }
            report.optional_choice(&path.child("ipMode"), &one["ipMode"], &["Proxy", "VIP"]);
        } else if !one["ipMode"].is_null() {
            report.forbidden(&path.child("ipMode"), "may not be specified when `ip` is not set");
        }
        report.optional_subdomain(&path.child("hostname"), &one["hostname"]);
    }
}
