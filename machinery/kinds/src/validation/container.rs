//! Containers of a pod.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{env, probe, resources, rules, volume};
use crate::access::{is_empty, items, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The regular containers: at least one.
pub(super) fn regular(spec: &Value, volumes: &volume::Known<'_>, path: &FieldPath, report: &mut Report) {
    let containers = items(&spec["containers"]);
    if containers.is_empty() {
        report.required(path, "");
        return;
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        common(container, volumes, &path, report);
        let name = text(&container["name"]);
        if !names.insert(name) {
            report.duplicate(&path.child("name"), &name.into());
        }
        probe::all(container, &path, report);
        restart_policy(container, &path, report);
    }
    host_ports(containers, path, report);
}

/// The init containers, whose names differ from those of the regular ones.
pub(super) fn init(spec: &Value, volumes: &volume::Known<'_>, path: &FieldPath, report: &mut Report) {
    let mut names: BTreeSet<&str> = items(&spec["containers"])
        .iter()
        .map(|other| text(&other["name"]))
        .collect();
    for (index, container) in items(&spec["initContainers"]).iter().enumerate() {
        let at = path.index(index);
        common(container, volumes, &at, report);
        restart_policy(container, &at, report);
        let name = text(&container["name"]);
        if names.contains(name) {
            report.duplicate(&at.child("name"), &name.into());
        } else if !name.is_empty() {
            names.insert(name);
        }
        host_ports(std::slice::from_ref(container), path, report);
        if text(&container["restartPolicy"]) == "Always" {
            probe::all(container, &at, report);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if !container[key].is_null() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    report.forbidden(&at.child(key), detail);
                }
            }
        }
    }
}

pub(super) fn common(container: &Value, volumes: &volume::Known<'_>, path: &FieldPath, report: &mut Report) {
    report.required_label(&path.child("name"), &container["name"]);
    if text(&container["image"]).is_empty() {
        report.required(&path.child("image"), "");
    }
    let policies = ["File", "FallbackToLogsOnError"];
    report.choice(
        &path.child("terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &policies,
    );
    ports(container, &path.child("ports"), report);
    env::variables(&container["env"], &path.child("env"), report);
    env::sources(&container["envFrom"], &path.child("envFrom"), report);
    volume::mounts(container, volumes, path, report);
    let policies = ["Always", "IfNotPresent", "Never"];
    report.choice(
        &path.child("imagePullPolicy"),
        &container["imagePullPolicy"],
        &policies,
    );
    resources::container(&container["resources"], &path.child("resources"), report);
    security(
        &container["securityContext"],
        &path.child("securityContext"),
        report,
    );
}

fn ports(container: &Value, path: &FieldPath, report: &mut Report) {
    let mut names = BTreeSet::new();
    for (index, port) in items(&container["ports"]).iter().enumerate() {
        let path = path.index(index);
        let name = text(&port["name"]);
        if !name.is_empty() {
            let messages = rules::port_name(name);
            if !messages.is_empty() {
                report.messages(&path.child("name"), name, messages);
            } else if !names.insert(name) {
                report.duplicate(&path.child("name"), &name.into());
            }
        }
        if port["containerPort"].as_i64().unwrap_or_default() == 0 {
            report.required(&path.child("containerPort"), "");
        } else {
            report.port(&path.child("containerPort"), &port["containerPort"]);
        }
        if port["hostPort"].as_i64().unwrap_or_default() != 0 {
            report.port(&path.child("hostPort"), &port["hostPort"]);
        }
        report.choice(&path.child("protocol"), &port["protocol"], &PROTOCOLS);
    }
}

fn host_ports(containers: &[Value], path: &FieldPath, report: &mut Report) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index).child("ports");
        for (index, port) in items(&container["ports"]).iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", text(&port["protocol"]), text(&port["hostIP"]));
            if !taken.insert(key.clone()) {
                report.duplicate(&path.index(index).child("hostPort"), &key.into());
            }
        }
    }
}

fn restart_policy(container: &Value, path: &FieldPath, report: &mut Report) {
    let rules = items(&container["restartPolicyRules"]);
    let at = path.child("restartPolicy");
    if container["restartPolicy"].is_null() {
        if !rules.is_empty() {
            report.required(&at, "must specify restartPolicy when restart rules are used");
        }
    } else {
        report.optional_choice(
            &at,
            &container["restartPolicy"],
            &["Always", "Never", "OnFailure"],
        );
    }
}

fn security(context: &Value, path: &FieldPath, report: &mut Report) {
    if is_empty(context) {
        return;
    }
    for key in ["runAsUser", "runAsGroup"] {
        id(&context[key], &path.child(key), report);
    }
    let privileged = context["privileged"] == Value::Bool(true);
    if privileged && context["allowPrivilegeEscalation"] == Value::Bool(false) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        report.invalid_shown(path, &context.to_string(), detail);
    }
}

/// A Unix user or group id.
pub(super) fn id(value: &Value, path: &FieldPath, report: &mut Report) {
    if value
        .as_i64()
        .is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id))
    {
        report.invalid(path, value, "must be between 0 and 2147483647, inclusive");
    }
}
