//! Volumes of pods, and how containers mount them.

use std::collections::{BTreeMap, BTreeSet};

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::env;
use super::report::Report;
use crate::access::{is_empty, items, text};

/// The sound volumes of a pod, by name.
pub(super) type Known<'a> = BTreeMap<&'a str, &'a Value>;

const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// The volumes of a pod; `extra` are volumes that come from elsewhere, such as claim templates.
pub(super) fn volumes<'a>(
    spec: &'a Value,
    extra: &[&'a str],
    path: &FieldPath,
    report: &mut Report,
) -> Known<'a> {
    let mut known: Known<'a> = extra.iter().map(|name| (*name, &Value::Null)).collect();
    for (index, volume) in items(&spec["volumes"]).iter().enumerate() {
        let name = text(&volume["name"]);
        if extra.contains(&name) {
            continue;
        }
        let path = path.index(index);
        let mut found = Report::default();
        source(volume, &path, &mut found);
        found.required_label(&path.child("name"), &volume["name"]);
        if known.contains_key(name) {
            found.duplicate(&path.child("name"), &name.into());
        }
        if found.len() == 0 {
            known.insert(name, volume);
        } else {
            report.extend(found);
        }
    }
    known
}

fn source(volume: &Value, path: &FieldPath, report: &mut Report) {
    let mut seen = false;
    for key in SOURCES {
        let source = &volume[key];
        if source.is_null() {
            continue;
        }
        let path = path.child(key);
        if seen {
            report.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        seen = true;
        match key {
            "emptyDir" => size_limit(source, &path, report),
            "hostPath" => host_path(source, &path, report),
            "secret" => keys(source, "secretName", &path, report),
            "configMap" => keys(source, "name", &path, report),
            "persistentVolumeClaim" if text(&source["claimName"]).is_empty() => {
                report.required(&path.child("claimName"), "");
            }
            "nfs" => nfs(source, &path, report),
            "downwardAPI" => downward(source, true, &path, report),
            "projected" => projected(source, &path, report),
            "csi" if text(&source["driver"]).is_empty() => {
                report.required(&path.child("driver"), "");
            }
            "ephemeral" if source["volumeClaimTemplate"].is_null() => {
                report.required(&path.child("volumeClaimTemplate"), "");
            }
            "image" => {
                let policies = ["Always", "IfNotPresent", "Never"];
                report.choice(&path.child("pullPolicy"), &source["pullPolicy"], &policies);
            }
            _ => {}
        }
    }
    if !seen {
        report.required(path, "must specify a volume type");
    }
}

fn size_limit(source: &Value, path: &FieldPath, report: &mut Report) {
    if text(&source["sizeLimit"]).starts_with('-') {
        report.forbidden(
            &path.child("sizeLimit"),
            "SizeLimit field must be a valid resource quantity",
        );
    }
}

/// A path on the node.
pub(super) fn host_path(source: &Value, path: &FieldPath, report: &mut Report) {
    if text(&source["path"]).is_empty() {
        report.required(&path.child("path"), "");
        return;
    }
    no_backsteps(text(&source["path"]), &path.child("path"), report);
    let kinds = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    report.optional_choice(&path.child("type"), &source["type"], &kinds);
}

/// A network file system.
pub(super) fn nfs(source: &Value, path: &FieldPath, report: &mut Report) {
    for key in ["server", "path"] {
        if text(&source[key]).is_empty() {
            report.required(&path.child(key), "");
        }
    }
    if !text(&source["path"]).starts_with('/') {
        report.invalid(
            &path.child("path"),
            &text(&source["path"]).into(),
            "must be an absolute path",
        );
    }
}

fn mode(value: &Value, path: &FieldPath, report: &mut Report) {
    if value.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        report.invalid(path, value, MODE);
    }
}

fn keys(source: &Value, name: &str, path: &FieldPath, report: &mut Report) {
    if text(&source[name]).is_empty() {
        report.required(&path.child(name), "");
    }
    mode(&source["defaultMode"], &path.child("defaultMode"), report);
    key_paths(source, path, report);
}

fn key_paths(source: &Value, path: &FieldPath, report: &mut Report) {
    for (index, item) in items(&source["items"]).iter().enumerate() {
        let path = path.child("items").index(index);
        for key in ["key", "path"] {
            if text(&item[key]).is_empty() {
                report.required(&path.child(key), "");
            }
        }
        local_path(text(&item["path"]), &path.child("path"), report);
        mode(&item["mode"], &path.child("mode"), report);
    }
}

/// A relative path that stays inside and does not begin with two dots.
fn local_path(target: &str, path: &FieldPath, report: &mut Report) {
    descending(target, path, report);
    if target.starts_with("..") && !target.starts_with("../") {
        report.invalid(path, &target.into(), "must not start with '..'");
    }
}

fn descending(target: &str, path: &FieldPath, report: &mut Report) {
    if target.starts_with('/') {
        report.invalid(path, &target.into(), "must be a relative path");
    }
    no_backsteps(target, path, report);
}

fn no_backsteps(target: &str, path: &FieldPath, report: &mut Report) {
    if target.split('/').any(|part| part == "..") {
        report.invalid(path, &target.into(), "must not contain '..'");
    }
}

fn downward(source: &Value, with_mode: bool, path: &FieldPath, report: &mut Report) {
    const FIELDS: [&str; 5] = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    if with_mode {
        mode(&source["defaultMode"], &path.child("defaultMode"), report);
    }
    for (index, item) in items(&source["items"]).iter().enumerate() {
        // The server leaves out the position of the file here.
        let at = if with_mode {
            path.clone()
        } else {
            path.child("items").index(index)
        };
        if text(&item["path"]).is_empty() {
            report.required(&at.child("path"), "");
        }
        local_path(text(&item["path"]), &at.child("path"), report);
        let (field, resource) = (&item["fieldRef"], &item["resourceFieldRef"]);
        if !field.is_null() {
            env::field(field, &FIELDS, &at.child("fieldRef"), report);
            if !resource.is_null() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                report.invalid(&at, &"resource".into(), detail);
            }
        } else if !resource.is_null() {
            env::resource_field(resource, true, &at.child("resourceFieldRef"), report);
        } else {
            report.required(
                &at.child("fieldRef"),
                "one of fieldRef and resourceFieldRef is required",
            );
        }
        mode(&item["mode"], &at.child("mode"), report);
    }
}

fn projected(source: &Value, path: &FieldPath, report: &mut Report) {
    mode(&source["defaultMode"], &path.child("defaultMode"), report);
    for (index, part) in items(&source["sources"]).iter().enumerate() {
        let path = path.child("sources").index(index);
        let mut count = 0;
        for key in [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ] {
            if part[key].is_null() {
                continue;
            }
            count += 1;
            let path = path.child(key);
            if count > 1 {
                report.forbidden(&path, "may not specify more than 1 volume type per source");
                continue;
            }
            match key {
                "secret" | "configMap" => {
                    if text(&part[key]["name"]).is_empty() {
                        report.required(&path.child("name"), "");
                    }
                    key_paths(&part[key], &path, report);
                }
                "downwardAPI" => downward(&part[key], false, &path, report),
                "serviceAccountToken" => token(&part[key], &path, report),
                _ => {}
            }
        }
    }
}

fn token(source: &Value, path: &FieldPath, report: &mut Report) {
    let seconds = &source["expirationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
        report.invalid(
            &path.child("expirationSeconds"),
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    } else if seconds.as_i64().is_some_and(|seconds| seconds > 1 << 32) {
        report.invalid(
            &path.child("expirationSeconds"),
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    if text(&source["path"]).is_empty() {
        report.required(&path.child("path"), "");
    } else {
        local_path(text(&source["path"]), &path.child("path"), report);
    }
}

/// `volumeMounts` and `volumeDevices` of a container.
pub(super) fn mounts(container: &Value, known: &Known<'_>, path: &FieldPath, report: &mut Report) {
    let at = path.child("volumeMounts");
    let mut paths = BTreeSet::new();
    for (index, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        let path = at.index(index);
        let (name, target) = (text(&mount["name"]), text(&mount["mountPath"]));
        if name.is_empty() {
            report.required(&path.child("name"), "");
        }
        if !known.contains_key(name) {
            report.not_found(&path.child("name"), &name.into());
        }
        if target.is_empty() {
            report.required(&path.child("mountPath"), "");
        }
        if !paths.insert(target) {
            report.invalid(&path.child("mountPath"), &target.into(), "must be unique");
        }
        // The server leaves out the position of the mount in these.
        for key in ["subPath", "subPathExpr"] {
            if !text(&mount[key]).is_empty() {
                descending(text(&mount[key]), &at.child(key), report);
            }
        }
        if !is_empty(&mount["subPath"]) && !is_empty(&mount["subPathExpr"]) {
            let detail = "subPathExpr and subPath are mutually exclusive";
            report.invalid(&path.child("subPathExpr"), &mount["subPathExpr"], detail);
        }
        let kinds = ["Bidirectional", "HostToContainer", "None"];
        report.optional_choice(&at.child("mountPropagation"), &mount["mountPropagation"], &kinds);
    }
    for (index, device) in items(&container["volumeDevices"]).iter().enumerate() {
        let path = path.child("volumeDevices").index(index);
        let name = text(&device["name"]);
        if name.is_empty() {
            report.required(&path.child("name"), "");
        }
        if !known.contains_key(name) {
            report.not_found(&path.child("name"), &name.into());
        }
        if text(&device["devicePath"]).is_empty() {
            report.required(&path.child("devicePath"), "");
        }
    }
}
