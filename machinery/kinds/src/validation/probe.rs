//! Probes and lifecycle handlers of containers.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use crate::access::{is_empty, items, text};

/// The lifecycle and the three probes of a container.
pub(super) fn all(container: &Value, path: &FieldPath, report: &mut Report) {
    let lifecycle = path.child("lifecycle");
    for key in ["postStart", "preStop"] {
        let hook = &container["lifecycle"][key];
        if !hook.is_null() {
            handler(hook, &lifecycle.child(key), report);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[key];
        if probe.is_null() {
            continue;
        }
        let path = path.child(key);
        one(probe, &path, report);
        if key == "readinessProbe" {
            if !probe["terminationGracePeriodSeconds"].is_null() {
                let value = &probe["terminationGracePeriodSeconds"];
                let detail = "must not be set for readinessProbes";
                report.invalid(&path.child("terminationGracePeriodSeconds"), value, detail);
            }
        } else if probe["successThreshold"].as_i64() != Some(1) {
            report.invalid(
                &path.child("successThreshold"),
                &probe["successThreshold"],
                "must be 1",
            );
        }
    }
}

fn one(probe: &Value, path: &FieldPath, report: &mut Report) {
    handler(probe, path, report);
    for key in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        report.nonnegative(&path.child(key), &probe[key]);
    }
    let grace = &probe["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        report.invalid(
            &path.child("terminationGracePeriodSeconds"),
            grace,
            "must be greater than 0",
        );
    }
}

fn handler(handler: &Value, path: &FieldPath, report: &mut Report) {
    let mut found = false;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = &handler[key];
        if action.is_null() {
            continue;
        }
        let path = path.child(key);
        if found {
            report.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match key {
            "exec" if items(&action["command"]).is_empty() => report.required(&path.child("command"), ""),
            "httpGet" => http_get(action, &path, report),
            "tcpSocket" | "grpc" => report.port_or_name(&path.child("port"), &action["port"]),
            _ => {}
        }
    }
    if !found {
        report.required(path, "must specify a handler type");
    }
}

fn http_get(action: &Value, path: &FieldPath, report: &mut Report) {
    if is_empty(&action["path"]) {
        report.required(&path.child("path"), "");
    }
    report.port_or_name(&path.child("port"), &action["port"]);
    report.optional_choice(
        &path.child("scheme"),
        &text(&action["scheme"]).into(),
        &["HTTP", "HTTPS"],
    );
    for header in items(&action["httpHeaders"]) {
        let name = text(&header["name"]);
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' \
                          (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            report.invalid(&path.child("httpHeaders"), &name.into(), detail);
        }
    }
}
