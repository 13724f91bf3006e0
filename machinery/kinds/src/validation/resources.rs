//! Amounts of resources: names, signs, and that requests stay within limits.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::amount;
use super::report::Report;
use super::rules;
use crate::access::{entries, text};

const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether the name is one of the server's own.
fn native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn extended(name: &str) -> bool {
    !native(name)
        && !name.starts_with("requests.")
        && rules::qualified_name(&format!("requests.{name}")).is_empty()
}

fn overcommit(name: &str) -> bool {
    native(name) && !name.starts_with("hugepages-")
}

/// A name of a resource anywhere.
fn name(name: &str, path: &FieldPath, report: &mut Report) {
    let messages = rules::qualified_name(name);
    if !messages.is_empty() {
        report.messages(path, name, messages);
    } else if !name.contains('/') && !STANDARD.contains(&name) && !name.contains("hugepages-") {
        report.invalid(
            path,
            &name.into(),
            "must be a standard resource type or fully qualified",
        );
    }
}

/// A name of a resource that a quota can limit.
pub(super) fn quota_name(value: &str, path: &FieldPath, report: &mut Report) {
    name(value, path, report);
    let known = STANDARD.contains(&value) && value != "storage";
    if !value.contains('/') && !known && !value.contains("hugepages-") {
        report.invalid(path, &value.into(), "must be a standard resource for quota");
    }
}

fn container_name(value: &str, path: &FieldPath, report: &mut Report) {
    name(value, path, report);
    if !value.contains('/') {
        if !matches!(value, "cpu" | "memory" | "ephemeral-storage") && !value.starts_with("hugepages-") {
            report.invalid(path, &value.into(), "must be a standard resource for containers");
        }
    } else if !native(value) && !extended(value) {
        report.invalid(
            path,
            &value.into(),
            "doesn't follow extended resource name standard",
        );
    }
}

/// An amount: not negative, and whole where things are counted.
pub(super) fn quantity(resource: &str, value: &Value, path: &FieldPath, report: &mut Report) {
    let Some(amount) = amount::parse(text(value)) else {
        return;
    };
    if amount.is_negative() {
        report.invalid(path, value, "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&resource) || extended(resource)) && !amount::is_whole(&amount) {
        report.invalid(path, value, "must be an integer");
    }
}

/// `limits` and `requests` of a container.
pub(super) fn container(resources: &Value, path: &FieldPath, report: &mut Report) {
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    for (resource, value) in entries(limits) {
        let path = limits_path.key(resource);
        container_name(resource, &path, report);
        quantity(resource, value, &path, report);
    }
    for (resource, value) in entries(requests) {
        let path = requests_path.key(resource);
        container_name(resource, &path, report);
        quantity(resource, value, &path, report);
        let limit = &limits[resource];
        if limit.is_null() {
            if !overcommit(resource) {
                report.required(&limits_path, "Limit must be set for non overcommitable resources");
            }
            continue;
        }
        let order = amount::compare(text(value), text(limit));
        let shown = text(limit);
        if order != std::cmp::Ordering::Equal && !overcommit(resource) {
            report.invalid(
                &requests_path,
                value,
                format!("must be equal to {resource} limit of {shown}"),
            );
        } else if order == std::cmp::Ordering::Greater {
            report.invalid(
                &requests_path,
                value,
                format!("must be less than or equal to {resource} limit of {shown}"),
            );
        }
    }
    let has = |prefix: &str| {
        entries(limits)
            .chain(entries(requests))
            .any(|(resource, _)| resource.as_str().starts_with(prefix))
    };
    if has("hugepages-") && !has("cpu") && !has("memory") {
        report.forbidden(path, "HugePages require cpu or memory");
    }
}
