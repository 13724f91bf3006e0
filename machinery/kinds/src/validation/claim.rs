//! Persistent volumes and claims.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::amount;
use super::report::Report;
use super::{resources, selector, volume};
use crate::access::{is_empty, items, object_at, same, text};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

fn access_modes(spec: &Value, missing: &str, path: &FieldPath, report: &mut Report) {
    let path = path.child("accessModes");
    let modes = items(&spec["accessModes"]);
    if modes.is_empty() {
        report.required(&path, missing);
    }
    for mode in modes {
        report.optional_choice(&path, mode, &MODES);
    }
    let alone = modes.iter().any(|mode| text(mode) == "ReadWriteOncePod");
    if alone && modes.iter().any(|mode| MODES[..3].contains(&text(mode))) {
        report.forbidden(&path, "may not use ReadWriteOncePod with other access modes");
    }
}

/// The spec of a claim, also of one in a StatefulSet.
pub(super) fn spec(spec: &Value, path: &FieldPath, report: &mut Report) {
    access_modes(spec, "at least 1 access mode is required", path, report);
    selector::check(&spec["selector"], &path.child("selector"), report);
    let storage = &spec["resources"]["requests"]["storage"];
    let at = path.child("resources").key("storage");
    match amount::parse(text(storage)) {
        _ if storage.is_null() => report.required(&at, ""),
        Some(amount) if amount.is_negative() || amount.is_zero() => {
            report.invalid(&at, storage, "must be greater than zero");
        }
        _ => resources::quantity("storage", storage, &at, report),
    }
    report.optional_subdomain(&path.child("storageClassName"), &spec["storageClassName"]);
    report.optional_choice(
        &path.child("volumeMode"),
        &spec["volumeMode"],
        &["Block", "Filesystem"],
    );
    let source = &spec["dataSource"];
    if !source.is_null() {
        let path = path.child("dataSource");
        for key in ["name", "kind"] {
            if text(&source[key]).is_empty() {
                report.required(&path.child(key), "");
            }
        }
    }
    report.optional_subdomain(
        &path.child("volumeAttributesClassName"),
        &spec["volumeAttributesClassName"],
    );
}

/// A PersistentVolumeClaim.
pub(super) fn claim(object: &Value, report: &mut Report) {
    spec(&object["spec"], &FieldPath::new("spec"), report);
}

/// A PersistentVolumeClaim that changes: a bound one may grow.
pub(super) fn claim_update(new: &Value, old: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let bound = text(&new["status"]["phase"]) == "Bound";
    let unnamed = is_empty(&old["spec"]["volumeName"]);
    let unclassed = old["spec"]["storageClassName"].is_null();
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if bound
            && let Some(requests) = spec
                .get_mut("resources")
                .and_then(|all| object_at(all, "requests"))
        {
            requests.remove("storage");
        }
        if let Some(spec) = spec.as_object_mut() {
            if bound {
                spec.remove("volumeAttributesClassName");
            }
            if unnamed {
                spec.remove("volumeName");
            }
            if unclassed {
                spec.remove("storageClassName");
            }
        }
        spec
    };
    if !same(&fixed(new), &fixed(old)) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        report.forbidden(&path, detail);
    }
    let size = |object: &Value| text(&object["spec"]["resources"]["requests"]["storage"]).to_owned();
    // Shrinking is good only to recover from an expansion that failed.
    let capacity = text(&old["status"]["capacity"]["storage"]);
    let capacity = if capacity.is_empty() { "0" } else { capacity };
    if amount::compare(&size(new), &size(old)) == std::cmp::Ordering::Less
        && amount::compare(&size(new), capacity) != std::cmp::Ordering::Greater
    {
        let at = path.child("resources").child("requests").child("storage");
        report.forbidden(&at, "field can not be less than status.capacity");
    }
    // The server leaves out `spec` here.
    report.immutable(
        &FieldPath::new("volumeMode"),
        &new["spec"]["volumeMode"],
        &old["spec"]["volumeMode"],
    );
}

const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// A PersistentVolume.
pub(super) fn volume(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    access_modes(spec, "", &path, report);
    let capacity = path.child("capacity");
    if is_empty(&spec["capacity"]) {
        report.required(&capacity, "");
    }
    let only_storage = spec["capacity"]
        .as_object()
        .is_some_and(|all| all.len() == 1 && all.contains_key("storage"));
    if !only_storage {
        let shown = if spec["capacity"].is_null() {
            "null".to_owned()
        } else {
            spec["capacity"].to_string()
        };
        report.not_supported_shown(&capacity, &shown, &["storage"]);
    }
    for (resource, value) in crate::access::entries(&spec["capacity"]) {
        let at = capacity.key(resource);
        if amount::parse(text(value)).is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            report.invalid(&at, value, "must be greater than zero");
        }
    }
    let policies = ["Delete", "Recycle", "Retain"];
    report.optional_choice(
        &path.child("persistentVolumeReclaimPolicy"),
        &spec["persistentVolumeReclaimPolicy"],
        &policies,
    );
    let mut seen = false;
    for key in SOURCES {
        if spec[key].is_null() {
            continue;
        }
        let path = path.child(key);
        if seen {
            report.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        seen = true;
        match key {
            "hostPath" => volume::host_path(&spec[key], &path, report),
            "nfs" => volume::nfs(&spec[key], &path, report),
            "local" if text(&spec[key]["path"]).is_empty() => report.required(&path.child("path"), ""),
            "local" if spec["nodeAffinity"].is_null() => {
                report.required(
                    &FieldPath::new("spec").child("nodeAffinity"),
                    "Local volume requires node affinity",
                );
            }
            "csi" => {
                for field in ["driver", "volumeHandle"] {
                    if text(&spec[key][field]).is_empty() {
                        report.required(&path.child(field), "");
                    }
                }
            }
            _ => {}
        }
    }
    if !seen {
        report.required(&path, "must specify a volume type");
    }
    report.optional_subdomain(&path.child("storageClassName"), &spec["storageClassName"]);
    report.optional_choice(
        &path.child("volumeMode"),
        &spec["volumeMode"],
        &["Block", "Filesystem"],
    );
}

/// A PersistentVolume that changes.
pub(super) fn volume_update(new: &Value, old: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let source = |object: &Value| -> Value {
        let spec = &object["spec"];
        SOURCES
            .iter()
            .map(|key| ((*key).to_owned(), spec[*key].clone()))
            .collect()
    };
    if !same(&source(new), &source(old)) {
        report.forbidden(
            &path.child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        );
    }
    report.immutable(
        &FieldPath::new("volumeMode"),
        &new["spec"]["volumeMode"],
        &old["spec"]["volumeMode"],
    );
}
