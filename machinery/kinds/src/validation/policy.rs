//! Disruption budgets, priority classes, leases and storage classes.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{counts, rules, selector};
use crate::access::{entries, same, text};

/// A PodDisruptionBudget.
pub(super) fn budget(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        // Inside the server the fields of the spec have no JSON names.
        let policy = if spec["unhealthyPodEvictionPolicy"].is_null() {
            Value::Null
        } else {
            spec["unhealthyPodEvictionPolicy"].clone()
        };
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{policy}}}",
            spec["minAvailable"],
            super::shown::selector(&spec["selector"]),
            spec["maxUnavailable"]
        );
        report.invalid_shown(
            &path,
            &shown,
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
    for key in ["minAvailable", "maxUnavailable"] {
        if !spec[key].is_null() {
            counts::number_or_percent(&spec[key], &path.child(key), report);
            counts::at_most_all(&spec[key], &path.child(key), report);
        }
    }
    selector::check(&spec["selector"], &path.child("selector"), report);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    report.optional_choice(
        &path.child("unhealthyPodEvictionPolicy"),
        &spec["unhealthyPodEvictionPolicy"],
        &policies,
    );
}

/// The highest priority that users may define.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// A PriorityClass.
pub(super) fn priority_class(object: &Value, report: &mut Report) {
    let name = text(&object["metadata"]["name"]);
    let value = object["value"].as_i64().unwrap_or_default();
    if name.starts_with("system-") {
        let known = match name {
            "system-node-critical" => Some(2_000_001_000),
            "system-cluster-critical" => Some(2_000_000_000),
            _ => None,
        };
        let problem = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some(right) if right != value => Some(format!("value of {name} PriorityClass must be {right}")),
            Some(_) if object["globalDefault"] == Value::Bool(true) => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let at = FieldPath::new("metadata").child("name");
            let detail =
                "priority class names with 'system-' prefix are reserved for system use only. error: ";
            report.forbidden(&at, format!("{detail}{problem}"));
        }
    } else if value > USER_PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        report.forbidden(&FieldPath::new("value"), detail);
    }
    let policies = ["PreemptLowerPriority", "Never"];
    report.optional_choice(
        &FieldPath::new("preemptionPolicy"),
        &object["preemptionPolicy"],
        &policies,
    );
}

/// A PriorityClass that changes.
pub(super) fn priority_class_update(new: &Value, old: &Value, report: &mut Report) {
    if new["value"].as_i64().unwrap_or_default() != old["value"].as_i64().unwrap_or_default() {
        report.forbidden(&FieldPath::new("value"), "may not be changed in an update.");
    }
    report.immutable(
        &FieldPath::new("preemptionPolicy"),
        &new["preemptionPolicy"],
        &old["preemptionPolicy"],
    );
}

/// A Lease.
pub(super) fn lease(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let seconds = &spec["leaseDurationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
        report.invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    report.nonnegative(&path.child("leaseTransitions"), &spec["leaseTransitions"]);
}

/// A StorageClass.
pub(super) fn storage_class(object: &Value, report: &mut Report) {
    let path = FieldPath::new("provisioner");
    match text(&object["provisioner"]) {
        "" => report.required(&path, ""),
        name => {
            let lower = name.to_lowercase();
            report.messages(&path, &lower, rules::qualified_name(&lower));
        }
    }
    let path = FieldPath::new("parameters");
    let count = entries(&object["parameters"]).count();
    if count > 512 {
        report.too_long(&path, 512);
    } else {
        let mut size = 0;
        for (key, value) in entries(&object["parameters"]) {
            if key.is_empty() {
                report.invalid(&path, &"".into(), "field can not be empty.");
            }
            size += key.len() + text(value).len();
        }
        if size > 256 * 1024 {
            report.too_long(&path, 256 * 1024);
        }
    }
    report.optional_choice(
        &FieldPath::new("reclaimPolicy"),
        &object["reclaimPolicy"],
        &["Delete", "Retain"],
    );
    let modes = ["Immediate", "WaitForFirstConsumer"];
    report.choice(
        &FieldPath::new("volumeBindingMode"),
        &object["volumeBindingMode"],
        &modes,
    );
}

/// A StorageClass that changes.
pub(super) fn storage_class_update(new: &Value, old: &Value, report: &mut Report) {
    for key in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(&new[key], &old[key]) {
            report.forbidden(&FieldPath::new(key), format!("updates to {key} are forbidden."));
        }
    }
    let key = "volumeBindingMode";
    report.immutable(&FieldPath::new(key), &new[key], &old[key]);
}
