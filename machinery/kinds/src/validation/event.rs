//! Events of both groups, and endpoint slices.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{is_empty, items, text};

/// The two shapes of an event name the same things differently.
struct Shape {
    object: &'static str,
    reporter: &'static str,
    message: &'static str,
}

const CORE: Shape = Shape {
    object: "involvedObject",
    reporter: "reportingComponent",
    message: "message",
};
const EVENTS: Shape = Shape {
    object: "regarding",
    reporter: "reportingController",
    message: "note",
};

/// An Event, in the shape of the core group or in that of events.k8s.io.
pub(super) fn event(object: &Value, core: bool, report: &mut Report) {
    let shape = if core { CORE } else { EVENTS };
    common(object, &shape, report);
    if core {
        return;
    }
    series(object, report);
    if is_empty(&object["eventTime"]) {
        report.required(&FieldPath::new("eventTime"), "");
    }
    let kind = text(&object["type"]);
    let empty: Value = "".into();
    if !matches!(kind, "Normal" | "Warning") {
        report.invalid(
            &FieldPath::new("type"),
            &empty,
            format!("has invalid value: {kind}"),
        );
    }
    // Reported by the names they have in the core group.
    let unset = [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ];
    for (key, shown) in unset {
        if !is_empty(&object[key]) && object[key].as_i64() != Some(0) {
            report.invalid(&FieldPath::new(shown), &empty, "needs to be unset");
        }
    }
}

fn common(object: &Value, shape: &Shape, report: &mut Report) {
    let namespace = text(&object["metadata"]["namespace"]);
    let about = text(&object[shape.object]["namespace"]);
    let at = FieldPath::new("involvedObject").child("namespace");
    let mismatch = "does not match event.namespace";
    if is_empty(&object["eventTime"]) {
        let fits = if about.is_empty() {
            matches!(namespace, "" | "default")
        } else {
            namespace == about
        };
        if !fits {
            report.invalid(&at, &about.into(), mismatch);
        }
    } else {
        if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
            report.invalid(&at, &about.into(), mismatch);
        }
        let reporter = text(&object[shape.reporter]);
        let path = FieldPath::new(shape.reporter);
        if reporter.is_empty() {
            report.required(&path, "");
        }
        report.qualified_name(&path, reporter);
        for key in ["reportingInstance", "action", "reason"] {
            if text(&object[key]).is_empty() {
                report.required(&FieldPath::new(key), "");
            }
            at_most(text(&object[key]), 128, &FieldPath::new(key), report);
        }
        at_most(
            text(&object[shape.message]),
            1024,
            &FieldPath::new("message"),
            report,
        );
    }
    report.messages(
        &FieldPath::new("namespace"),
        namespace,
        rules::dns_subdomain(namespace),
    );
}

fn at_most(value: &str, max: usize, path: &FieldPath, report: &mut Report) {
    if value.len() > max {
        report.invalid(path, &"".into(), format!("can have at most {max} characters"));
    }
}

fn series(object: &Value, report: &mut Report) {
    let series = &object["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        report.invalid(
            &FieldPath::new("series.count"),
            &"".into(),
            "should be at least 2",
        );
    }
    if is_empty(&series["lastObservedTime"]) {
        report.required(&FieldPath::new("series.lastObservedTime"), "");
    }
}

/// An Event of events.k8s.io that changes: all but its series is fixed.
pub(super) fn event_update(new: &Value, old: &Value, report: &mut Report) {
    common(new, &EVENTS, report);
    if new["series"] != old["series"] {
        series(new, report);
    }
    let fixed = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (key, shown) in fixed {
        report.immutable(&FieldPath::new(shown), &new[key], &old[key]);
    }
}

/// An EndpointSlice.
pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>, report: &mut Report) {
    let kinds = ["FQDN", "IPv4", "IPv6"];
    report.choice(&FieldPath::new("addressType"), &object["addressType"], &kinds);
    slice_ports(object, report);
    let unchanged = old.is_some_and(|old| old["endpoints"] == object["endpoints"]);
    if !unchanged {
        slice_endpoints(object, report);
    }
    if let Some(old) = old {
        report.immutable_text(
            &FieldPath::new("addressType"),
            &object["addressType"],
            &old["addressType"],
        );
    }
}

fn slice_ports(object: &Value, report: &mut Report) {
    let path = FieldPath::new("ports");
    let ports = items(&object["ports"]);
    if ports.len() > 20_000 {
        report.too_many(&path, ports.len(), 20_000);
        return;
    }
    let mut names = std::collections::BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(&port["name"]);
        if !name.is_empty() {
            report.dns_label(&path.child("name"), &port["name"]);
        }
        if !names.insert(name) {
            report.duplicate(&path.child("name"), &name.into());
        }
        report.choice(
            &path.child("protocol"),
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
        );
        if !port["appProtocol"].is_null() {
            report.qualified_name(&path.child("appProtocol"), text(&port["appProtocol"]));
        }
    }
}

fn slice_endpoints(object: &Value, report: &mut Report) {
    let path = FieldPath::new("endpoints");
    let endpoints = items(&object["endpoints"]);
    if endpoints.len() > 1000 {
        report.too_many(&path, endpoints.len(), 1000);
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        let at = path.child("addresses");
        let addresses = items(&endpoint["addresses"]);
        if addresses.is_empty() {
            report.required(&at, "must contain at least 1 address");
        } else if addresses.len() > 100 {
            report.too_many(&at, addresses.len(), 100);
        }
        for (index, address) in addresses.iter().enumerate() {
            let value = text(address);
            if text(&object["addressType"]) == "FQDN" {
                report.messages(&at.index(index), value, rules::dns_subdomain(value));
                continue;
            }
            let messages = rules::ip(value);
            if messages.is_empty() {
                let family = text(&object["addressType"]);
                if value.contains(':') != (family == "IPv6") && matches!(family, "IPv4" | "IPv6") {
                    report.invalid(&at, address, format!("must be an {family} address"));
                }
                report.messages(&at.index(index), value, rules::endpoint_ip(value));
            } else {
                report.messages(&at.index(index), value, messages);
            }
        }
        if !endpoint["nodeName"].is_null() {
            report.dns_subdomain(&path.child("nodeName"), &endpoint["nodeName"]);
        }
        if !endpoint["hostname"].is_null() {
            report.dns_label(&path.child("hostname"), &endpoint["hostname"]);
        }
    }
}
