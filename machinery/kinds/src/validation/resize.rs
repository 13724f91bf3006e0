//! The resize of a pod: cpu and memory of its containers, within what the pod was made for.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{meta, pod};
use crate::Gvk;
use crate::access::{entries, is_empty, items, same, text};
use crate::strategy::quality_of_service;

/// What can be resized.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// A change through the subresource.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    meta::update_known(Gvk::new("", "v1", "Pod"), new, old, report);
    pod::whole(new, report);
    if let Some(why) = unable(old) {
        *report = Report::default();
        report.forbidden_nowhere(why);
        return;
    }
    let path = FieldPath::new("spec");
    let class = match text(&old["status"]["qosClass"]) {
        "" => quality_of_service(&old["spec"]),
        class => class,
    };
    if class != quality_of_service(&new["spec"]) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        report.invalid(&path, &class.into(), detail);
    }
    if !same_containers(new, old, "containers", report)
        || !same_containers(new, old, "initContainers", report)
    {
        return;
    }
    let mut undone = new["spec"].clone();
    for (index, before) in items(&old["spec"]["containers"]).iter().enumerate() {
        let now = &mut undone["containers"][index];
        amounts(now, before, &path.child("containers").index(index), report);
    }
    for (index, before) in items(&old["spec"]["initContainers"]).iter().enumerate() {
        let now = &mut undone["initContainers"][index];
        if text(&before["restartPolicy"]) == "Always" {
            amounts(now, before, &path.child("initContainers").index(index), report);
        } else if !same(&now["resources"], &before["resources"]) {
            report.forbidden(&path, "resources for non-sidecar init containers are immutable");
            now["resources"] = before["resources"].clone();
        }
    }
    if !same(&undone, &old["spec"]) {
        report.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

/// Why a pod can never be resized.
fn unable(pod: &Value) -> Option<&'static str> {
    if pod::is_mirror(pod) {
        Some("static pods cannot be resized")
    } else if text(&pod["spec"]["os"]["name"]) == "windows" {
        Some("windows pods cannot be resized")
    } else if !is_empty(&pod["spec"]["resources"]) {
        Some(
            "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled \
             feature gate is disabled",
        )
    } else {
        None
    }
}

/// Whether the containers are those that were there, in the same order.
fn same_containers(new: &Value, old: &Value, key: &str, report: &mut Report) -> bool {
    let path = FieldPath::new("spec").child(key);
    let (now, before) = (items(&new["spec"][key]), items(&old["spec"][key]));
    if now.len() != before.len() {
        let what = if key == "containers" {
            "containers"
        } else {
            "initContainers"
        };
        report.forbidden(&path, format!("{what} may not be added or removed on resize"));
        return false;
    }
    let found = report.len();
    for (index, (now, before)) in now.iter().zip(before).enumerate() {
        if now["name"] != before["name"] {
            let at = path.index(index).child("name");
            report.forbidden(&at, format!("{key} may not be renamed or reordered on resize"));
        }
    }
    report.len() == found
}

/// Refuses amounts that are taken away, and puts back those that may change.
fn amounts(now: &mut Value, before: &Value, path: &FieldPath, report: &mut Report) {
    let path = path.child("resources");
    for (key, what) in [("requests", "requests"), ("limits", "limits")] {
        let gone = RESIZABLE
            .iter()
            .any(|name| !before["resources"][key][*name].is_null() && now["resources"][key][*name].is_null());
        if gone {
            report.forbidden(&path.child(key), format!("resource {what} cannot be removed"));
        }
        put_back(now, before, key);
    }
}

/// The amounts that may change, as they were.
fn put_back(now: &mut Value, before: &Value, key: &str) {
    let mut list: serde_json::Map<String, Value> = entries(&now["resources"][key])
        .filter(|(name, _)| !RESIZABLE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for name in RESIZABLE {
        if let Some(value) = before["resources"][key].get(name) {
            list.insert(name.to_owned(), value.clone());
        }
    }
    let Some(resources) = now["resources"].as_object_mut() else {
        return;
    };
    if list.is_empty() {
        resources.remove(key);
    } else {
        resources.insert(key.to_owned(), Value::Object(list));
    }
}
