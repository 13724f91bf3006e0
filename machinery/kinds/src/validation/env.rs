//! Environment variables of containers, and references to keys and fields.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{items, text};

/// The fields of a pod that an environment variable can take.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The resources of a container that a variable or file can take.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The list `env`.
pub(super) fn variables(list: &Value, path: &FieldPath, report: &mut Report) {
    for (index, variable) in items(list).iter().enumerate() {
        let path = path.index(index);
        match text(&variable["name"]) {
            "" => report.required(&path.child("name"), ""),
            name => report.messages(&path.child("name"), name, rules::env_name(name)),
        }
        value_from(variable, &path.child("valueFrom"), report);
    }
}

fn value_from(variable: &Value, path: &FieldPath, report: &mut Report) {
    let from = &variable["valueFrom"];
    if from.is_null() {
        return;
    }
    let mut sources = 0;
    if !from["fieldRef"].is_null() {
        sources += 1;
        field(&from["fieldRef"], &FIELDS, &path.child("fieldRef"), report);
    }
    if !from["resourceFieldRef"].is_null() {
        sources += 1;
        resource_field(
            &from["resourceFieldRef"],
            false,
            &path.child("resourceFieldRef"),
            report,
        );
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if !from[key].is_null() {
            sources += 1;
            key_ref(&from[key], &path.child(key), report);
        }
    }
    if !from["fileKeyRef"].is_null() {
        sources += 1;
    }
    let empty = "".into();
    if sources == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        report.invalid(path, &empty, detail);
    } else if !text(&variable["value"]).is_empty() {
        report.invalid(path, &empty, "may not be specified when `value` is not empty");
    } else if sources > 1 {
        report.invalid(
            path,
            &empty,
            "may not have more than one field specified at a time",
        );
    }
}

fn key_ref(reference: &Value, path: &FieldPath, report: &mut Report) {
    report.dns_subdomain(&path.child("name"), &text(&reference["name"]).into());
    match text(&reference["key"]) {
        "" => report.required(&path.child("key"), ""),
        key => report.messages(&path.child("key"), key, rules::config_key(key)),
    }
}

/// A reference to a field of the pod.
pub(super) fn field(reference: &Value, allowed: &[&str], path: &FieldPath, report: &mut Report) {
    if text(&reference["apiVersion"]).is_empty() {
        report.required(&path.child("apiVersion"), "");
        return;
    }
    let at = path.child("fieldPath");
    let name = text(&reference["fieldPath"]);
    if name.is_empty() {
        report.required(&at, "");
        return;
    }
    let subscripted = name.strip_suffix("']").and_then(|name| name.split_once("['"));
    match subscripted {
        Some(("metadata.annotations", key)) => report.qualified_name(path, &key.to_lowercase()),
        Some(("metadata.labels", key)) => report.qualified_name(path, key),
        Some((other, _)) => {
            report.invalid(
                &at,
                &name.into(),
                format!("error converting fieldPath: field label does not support subscript: {other}"),
            );
        }
        None if known_field(name) => {
            if !allowed.contains(&name) {
                report.not_supported(&at, &name.into(), allowed);
            }
        }
        None => {
            report.invalid(
                &at,
                &name.into(),
                format!("error converting fieldPath: field label not supported: {name}"),
            );
        }
    }
}

fn known_field(name: &str) -> bool {
    const MORE: [&str; 5] = [
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    ];
    FIELDS.contains(&name) || MORE.contains(&name)
}

/// A reference to a resource of a container.
pub(super) fn resource_field(reference: &Value, volume: bool, path: &FieldPath, report: &mut Report) {
    let name = text(&reference["resource"]);
    if volume && text(&reference["containerName"]).is_empty() {
        report.required(&path.child("containerName"), "");
    } else if name.is_empty() {
        report.required(&path.child("resource"), "");
    } else if !RESOURCES.contains(&name)
        && !name.starts_with("limits.hugepages-")
        && !name.starts_with("requests.hugepages-")
    {
        report.not_supported(&path.child("resource"), &name.into(), &RESOURCES);
    }
}

/// The list `envFrom`.
pub(super) fn sources(list: &Value, path: &FieldPath, report: &mut Report) {
    for (index, source) in items(list).iter().enumerate() {
        let at = path.index(index);
        let prefix = text(&source["prefix"]);
        if !prefix.is_empty() {
            report.messages(&at.child("prefix"), prefix, rules::env_name(prefix));
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            if source[key].is_null() {
                continue;
            }
            count += 1;
            let at = at.child(key).child("name");
            match text(&source[key]["name"]) {
                "" => report.required(&at, ""),
                name => report.messages(&at, name, rules::dns_subdomain(name)),
            }
        }
        // The server names the whole list here.
        if count == 0 {
            report.invalid(
                path,
                &"".into(),
                "must specify one of: `configMapRef` or `secretRef`",
            );
        } else if count > 1 {
            report.invalid(
                path,
                &"".into(),
                "may not have more than one field specified at a time",
            );
        }
    }
}
