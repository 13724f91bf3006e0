//! The smaller kinds of the core group.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{meta, resources, rules};
use crate::access::{entries, items, text};

/// A Namespace.
pub(super) fn namespace(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec").child("finalizers");
    for finalizer in items(&object["spec"]["finalizers"]) {
        report.qualified_name(&path, text(finalizer));
        meta::standard_finalizer(text(finalizer), &path, report);
    }
}

/// The finalizers of a Namespace, one by one: where they are changed, each fault is told with its place.
pub(super) fn namespace_finalizers(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec").child("finalizers");
    for (index, finalizer) in items(&object["spec"]["finalizers"]).iter().enumerate() {
        let path = path.index(index);
        report.qualified_name(&path, text(finalizer));
        meta::standard_finalizer(text(finalizer), &path, report);
    }
}

/// A ResourceQuota.
pub(super) fn quota(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    for (resource, value) in entries(&spec["hard"]) {
        let at = path.child("hard").key(resource);
        resources::quota_name(resource, &at, report);
        resources::quantity(resource, value, &at, report);
    }
    for scope in items(&spec["scopes"]) {
        const SCOPES: [&str; 7] = [
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ];
        if !SCOPES.contains(&text(scope)) {
            report.invalid(&path.child("scopes"), &spec["scopes"], "unsupported scope");
        }
    }
    if let Some(old) = old {
        report.immutable(&path.child("scopes"), &spec["scopes"], &old["spec"]["scopes"]);
    }
}

/// A LimitRange.
pub(super) fn limit_range(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec").child("limits");
    let mut kinds = std::collections::BTreeSet::new();
    for (index, limit) in items(&object["spec"]["limits"]).iter().enumerate() {
        let path = path.index(index);
        let kind = text(&limit["type"]);
        report.messages(&path.child("type"), kind, rules::qualified_name(kind));
        if !kinds.insert(kind) {
            report.duplicate(&path.child("type"), &kind.into());
        }
        for key in ["min", "max", "default", "defaultRequest"] {
            if kind == "Pod" && key.starts_with("default") && !limit[key].is_null() {
                report.forbidden(&path.child(key), "may not be specified when `type` is 'Pod'");
                continue;
            }
            for (resource, value) in entries(&limit[key]) {
                let at = path.child(key).key(resource);
                resources::quantity(resource, value, &at, report);
            }
        }
        for (low, high, blamed) in ORDER {
            bounded(limit, low, high, blamed, &path, report);
        }
    }
}

/// What is not above what, in the server's words, and at which field it says so (with whose value).
type Named = (&'static str, &'static str);
const ORDER: [(Named, Named, (&str, &str)); 6] = [
    (("min", "min"), ("max", "max"), ("min", "min")),
    (
        ("min", "min"),
        ("defaultRequest", "default request"),
        ("defaultRequest", "defaultRequest"),
    ),
    (
        ("defaultRequest", "default request"),
        ("max", "max"),
        ("defaultRequest", "defaultRequest"),
    ),
    (
        ("defaultRequest", "default request"),
        ("default", "default limit"),
        ("defaultRequest", "defaultRequest"),
    ),
    (("min", "min"), ("default", "default"), ("default", "min")),
    (("default", "default"), ("max", "max"), ("default", "max")),
];

fn bounded(
    limit: &Value,
    low: Named,
    high: Named,
    blamed: (&str, &str),
    path: &FieldPath,
    report: &mut Report,
) {
    for (resource, value) in entries(&limit[low.0]) {
        let bound = &limit[high.0][resource];
        if bound.is_null() || super::amount::compare(text(value), text(bound)) != std::cmp::Ordering::Greater
        {
            continue;
        }
        let detail = format!(
            "{} value {} is greater than {} value {}",
            low.1,
            text(value),
            high.1,
            text(bound)
        );
        report.invalid(
            &path.child(blamed.0).key(resource),
            &limit[blamed.1][resource],
            detail,
        );
    }
}

/// Endpoints.
pub(super) fn endpoints(object: &Value, report: &mut Report) {
    for (index, subset) in items(&object["subsets"]).iter().enumerate() {
        let path = FieldPath::new("subsets").index(index);
        if items(&subset["addresses"]).is_empty() && items(&subset["notReadyAddresses"]).is_empty() {
            report.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in ["addresses", "notReadyAddresses"] {
            for (index, address) in items(&subset[key]).iter().enumerate() {
                let at = path.child(key).index(index).child("ip");
                let ip = text(&address["ip"]);
                report.messages(&at, ip, rules::ip(ip));
                report.messages(&at, ip, rules::endpoint_ip(ip));
            }
        }
        let ports = items(&subset["ports"]);
        for (index, port) in ports.iter().enumerate() {
            let path = path.child("ports").index(index);
            if ports.len() > 1 && text(&port["name"]).is_empty() {
                report.required(&path.child("name"), "");
            } else if !text(&port["name"]).is_empty() {
                report.dns_label(&path.child("name"), &port["name"]);
            }
            report.port(&path.child("port"), &port["port"]);
            report.choice(
                &path.child("protocol"),
                &port["protocol"],
                &["SCTP", "TCP", "UDP"],
            );
        }
    }
}

/// A Node.
pub(super) fn node(object: &Value, report: &mut Report) {
    // The server says `metadata` here.
    let path = FieldPath::new("metadata").child("taints");
    let mut seen = std::collections::BTreeSet::new();
    for (index, taint) in items(&object["spec"]["taints"]).iter().enumerate() {
        let path = path.index(index);
        report.qualified_name(&path.child("key"), text(&taint["key"]));
        let value = text(&taint["value"]);
        let messages = rules::label_value(value);
        if !messages.is_empty() {
            report.invalid(&path.child("value"), &value.into(), messages.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        report.choice(&path.child("effect"), &taint["effect"], &effects);
        if !seen.insert((text(&taint["key"]), text(&taint["effect"]))) {
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":null}}: taints must be unique by key and effect pair",
                Value::from(text(&taint["key"])),
                Value::from(value),
                Value::from(text(&taint["effect"]))
            );
            report.duplicate_shown(&path, &shown);
        }
    }
}
