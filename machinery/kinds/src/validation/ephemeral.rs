//! Ephemeral containers, which are added to a pod that runs and never change.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{container, meta, pod, volume};
use crate::Gvk;
use crate::access::{is_empty, items, same, text};

/// What a container that nobody may rely on cannot have, in the order in which it is reported.
const FORBIDDEN: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// The ephemeral containers of a pod.
pub(super) fn containers(spec: &Value, volumes: &volume::Known<'_>, path: &FieldPath, report: &mut Report) {
    let others: BTreeSet<&str> = items(&spec["containers"])
        .iter()
        .chain(items(&spec["initContainers"]))
        .map(|other| text(&other["name"]))
        .collect();
    let mut names = others.clone();
    for (index, one) in items(&spec["ephemeralContainers"]).iter().enumerate() {
        let path = path.index(index);
        container::common(one, volumes, &path, report);
        let image = text(&one["image"]);
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            report.invalid(&path.child("image"), &image.into(), detail);
        }
        let name = text(&one["name"]);
        if !names.insert(name) {
            report.duplicate(&path.child("name"), &name.into());
        }
        let target = text(&one["targetContainerName"]);
        if !target.is_empty() && !others.contains(target) {
            report.not_found(&path.child("targetContainerName"), &target.into());
        }
        let refusal = "cannot be set for an Ephemeral Container";
        for key in FORBIDDEN {
            if !is_empty(&one[key]) {
                report.forbidden(&path.child(key), refusal);
            }
        }
        for (index, mount) in items(&one["volumeMounts"]).iter().enumerate() {
            for key in ["subPath", "subPathExpr"] {
                if !text(&mount[key]).is_empty() {
                    let at = path.child("volumeMounts").index(index).child(key);
                    report.forbidden(&at, refusal);
                }
            }
        }
    }
}

/// A change through the subresource: containers are added, and nothing else.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    meta::update_known(Gvk::new("", "v1", "Pod"), new, old, report);
    pod::whole(new, report);
    if pod::is_mirror(old) {
        *report = Report::default();
        report.forbidden_nowhere("static pods do not support ephemeral containers");
        return;
    }
    let path = FieldPath::from("spec.ephemeralContainers");
    for before in items(&old["spec"]["ephemeralContainers"]) {
        let name = text(&before["name"]);
        let now = items(&new["spec"]["ephemeralContainers"])
            .iter()
            .find(|container| container["name"] == before["name"]);
        let what = match now {
            None => "removed",
            Some(now) if !same(now, before) => "changed",
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers \"{name}\" may not be {what}\n");
        report.forbidden(&path, detail);
    }
}
