//! The metadata of every object.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::{IMMUTABLE, Report};
use super::{names, rules, shown};
use crate::Gvk;
use crate::access::{entries, is_empty, items, same, text};

/// All annotations of an object together, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// The metadata of an object that is created, or that is checked in full on update.
pub(super) fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value, report: &mut Report) {
    whole(
        namespaced,
        object,
        |name, prefix| names::check(gvk, object, name, prefix),
        report,
    );
    if knows_finalizers(gvk) {
        known_finalizers(&object["metadata"], &FieldPath::new("metadata"), report);
    }
}

/// What the server checks of every changed object, whatever its kind; a name need only fit into a path.
pub(super) fn generic_update(namespaced: bool, new: &Value, old: &Value, report: &mut Report) {
    whole(namespaced, new, rules::path_segment, report);
    update(new, old, report);
}

fn whole(namespaced: bool, object: &Value, check: impl Fn(&str, bool) -> Vec<String>, report: &mut Report) {
    let path = FieldPath::new("metadata");
    let meta = &object["metadata"];
    let generate = text(&meta["generateName"]);
    if !generate.is_empty() {
        report.messages(&path.child("generateName"), generate, check(generate, true));
    }
    match text(&meta["name"]) {
        "" => report.required(&path.child("name"), "name or generateName is required"),
        name => report.messages(&path.child("name"), name, check(name, false)),
    }
    match (namespaced, text(&meta["namespace"])) {
        (true, "") => report.required(&path.child("namespace"), ""),
        (true, namespace) => {
            report.messages(&path.child("namespace"), namespace, rules::dns_label(namespace))
        }
        (false, "") => {}
        (false, _) => report.forbidden(&path.child("namespace"), "not allowed on this type"),
    }
    report.nonnegative(&path.child("generation"), &meta["generation"]);
    common(meta, &path, report);
}

/// The built-in kinds take short finalizer names only if these are the server's own.
fn knows_finalizers(gvk: Gvk<'_>) -> bool {
    const LENIENT: [&str; 4] = [
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "admissionregistration.k8s.io",
        "node.k8s.io",
    ];
    crate::catalog::catalog().find(gvk).is_some() && !LENIENT.contains(&gvk.group)
}

/// The change of an object's metadata, as a built-in kind checks it.
pub(super) fn update_known(gvk: Gvk<'_>, new: &Value, old: &Value, report: &mut Report) {
    update(new, old, report);
    if knows_finalizers(gvk) {
        known_finalizers(&new["metadata"], &FieldPath::new("metadata"), report);
    }
}

fn known_finalizers(meta: &Value, path: &FieldPath, report: &mut Report) {
    for (index, finalizer) in items(&meta["finalizers"]).iter().enumerate() {
        standard_finalizer(text(finalizer), &path.child("finalizers").index(index), report);
    }
}

/// The change of an object's metadata.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    let path = FieldPath::new("metadata");
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if !is_empty(&old["deletionTimestamp"]) {
        no_new_finalizers(new, old, &path.child("finalizers"), report);
    }
    if text(&new["resourceVersion"]).is_empty() {
        report.invalid(
            &path.child("resourceVersion"),
            &"".into(),
            "must be specified for an update",
        );
    }
    let (now, before) = (number(&new["generation"]), number(&old["generation"]));
    if now < before {
        report.invalid(&path.child("generation"), &now.into(), "must not be decremented");
    }
    for key in ["name", "namespace", "uid"] {
        report.immutable_text(&path.child(key), &new[key], &old[key]);
    }
    for key in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if !same(&new[key], &old[key]) {
            report.invalid(&path.child(key), &new[key], IMMUTABLE);
        }
    }
    common(new, &path, report);
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn common(meta: &Value, path: &FieldPath, report: &mut Report) {
    report.labels(&path.child("labels"), &meta["labels"]);
    annotations(&meta["annotations"], &path.child("annotations"), report);
    owners(&meta["ownerReferences"], &path.child("ownerReferences"), report);
    finalizers(&meta["finalizers"], &path.child("finalizers"), report);
    managed_fields(&meta["managedFields"], &path.child("managedFields"), report);
}

/// Annotations: keys like labels in any case, and a limit on their total size.
pub(super) fn annotations(annotations: &Value, path: &FieldPath, report: &mut Report) {
    let mut size = 0;
    for (key, value) in entries(annotations) {
        size += key.len() + text(value).len();
        report.messages(path, key, rules::qualified_name(&key.to_lowercase()));
    }
    if size > ANNOTATIONS_MAX {
        report.too_long(path, ANNOTATIONS_MAX);
    }
}

fn owners(owners: &Value, path: &FieldPath, report: &mut Report) {
    let mut controller: Option<String> = None;
    for owner in items(owners) {
        let version = text(&owner["apiVersion"]);
        let kind = text(&owner["kind"]);
        if version.rsplit('/').next().is_none_or(str::is_empty) {
            report.invalid(
                &path.child("apiVersion"),
                &version.into(),
                "version must not be empty",
            );
        }
        for key in ["kind", "name", "uid"] {
            if text(&owner[key]).is_empty() {
                report.invalid(&path.child(key), &"".into(), "must not be empty");
            }
        }
        if version == "v1" && kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            report.invalid_shown(path, &shown::owner(owner), detail);
        }
        if owner["controller"] == Value::Bool(true) {
            let this = format!("{kind}/{}", text(&owner["name"]));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let all: Vec<String> = items(owners).iter().map(shown::owner).collect();
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    report.invalid_shown(path, &format!("[{}]", all.join(",")), &detail);
                }
            }
        }
    }
}

fn finalizers(finalizers: &Value, path: &FieldPath, report: &mut Report) {
    for finalizer in items(finalizers) {
        report.qualified_name(path, text(finalizer));
    }
    let has = |name: &str| items(finalizers).iter().any(|finalizer| text(finalizer) == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        report.invalid(path, finalizers, detail);
    }
}

/// A finalizer is qualified, or one of the few short names.
pub(super) fn standard_finalizer(name: &str, path: &FieldPath, report: &mut Report) {
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        report.invalid(path, &name.into(), detail);
    }
}

fn no_new_finalizers(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    let before: BTreeSet<&str> = items(&old["finalizers"]).iter().map(text).collect();
    let added: BTreeSet<&str> = items(&new["finalizers"])
        .iter()
        .map(text)
        .filter(|f| !before.contains(f))
        .collect();
    if !added.is_empty() {
        let names: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let listed = format!("[]string{{{}}}", names.join(", "));
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
        );
        report.forbidden(path, detail);
    }
}

fn managed_fields(entries: &Value, path: &FieldPath, report: &mut Report) {
    for (index, entry) in items(entries).iter().enumerate() {
        let path = path.index(index);
        if !matches!(text(&entry["operation"]), "Apply" | "Update") {
            let operation = text(&entry["operation"]).into();
            report.invalid(
                &path.child("operation"),
                &operation,
                "must be `Apply` or `Update`",
            );
        }
        if !matches!(text(&entry["fieldsType"]), "" | "FieldsV1") {
            report.invalid(
                &path.child("fieldsType"),
                &entry["fieldsType"],
                "must be `FieldsV1`",
            );
        }
        if text(&entry["manager"]).len() > 128 {
            report.too_long(&path.child("manager"), 128);
        }
        if text(&entry["subresource"]).len() > 256 {
            report.too_long(&path.child("subresource"), 256);
        }
    }
}
