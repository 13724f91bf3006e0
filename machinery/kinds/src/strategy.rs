//! What the server changes in an object before it checks and keeps it.
//!
//! Clients cannot write the status with the spec, nor the spec with the status, nor their own generation. Times,
//! names and uids are the caller's: they must be set before [`prepare_create`].

use serde_json::{Map, Value, json};

use crate::access::{Object, is_empty, make, object_at, same, text, with};
use crate::catalog::catalog;
use crate::{Gvk, defaults};

mod allocation;
mod certificates;
mod devices;
mod job;
mod pod;
mod qos;
#[cfg(test)]
mod tests;

pub use allocation::allocate_service;
pub use certificates::{identify, prepare_approval, time_conditions};
pub use pod::{prepare_ephemeral_containers, prepare_resize};
pub(crate) use qos::class as quality_of_service;

/// When `metadata.generation` rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationRule {
    /// Never: the kind has no generation.
    None,
    /// It is 1 for ever.
    Fixed,
    /// With changes of the spec.
    Spec,
    /// With changes of the spec, but new objects have none.
    SpecLater,
    /// With changes of the spec or of annotations.
    SpecAndAnnotations,
    /// With changes of this field.
    Field(&'static str),
    /// With changes of anything but metadata, and of labels.
    ContentAndLabels,
}

impl GenerationRule {
    /// Whether objects have a generation.
    pub fn counts(self) -> bool {
        self != Self::None
    }
}

/// When the generation of objects of this kind rises.
pub fn generation_rule(gvk: Gvk<'_>) -> GenerationRule {
    match (gvk.group, gvk.kind) {
        ("apps", "Deployment") => GenerationRule::SpecAndAnnotations,
        ("scheduling.k8s.io", "PriorityClass") => GenerationRule::Fixed,
        ("storage.k8s.io", "CSIDriver") => GenerationRule::SpecLater,
        ("discovery.k8s.io", "EndpointSlice") => GenerationRule::ContentAndLabels,
        ("", "PodTemplate") => GenerationRule::Field("template"),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => GenerationRule::Field("webhooks"),
        ("", "Pod" | "ReplicationController")
        | ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job" | "CronJob")
        | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
        | ("policy", "PodDisruptionBudget")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("flowcontrol.apiserver.k8s.io", "FlowSchema" | "PriorityLevelConfiguration")
        | ("resource.k8s.io", "DeviceClass" | "ResourceSlice")
        | (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding",
        ) => GenerationRule::Spec,
        _ => GenerationRule::None,
    }
}

/// Whether an update may leave out `metadata.resourceVersion`.
pub fn allows_unconditional_update(gvk: Gvk<'_>) -> bool {
    !matches!(
        (gvk.group, gvk.kind),
        (
            "admissionregistration.k8s.io" | "apiextensions.k8s.io" | "coordination.k8s.io",
            _
        ) | ("policy", "PodDisruptionBudget")
            | ("node.k8s.io", "RuntimeClass")
            | (
                "storage.k8s.io",
                "CSIDriver" | "CSINode" | "CSIStorageCapacity" | "VolumeAttachment"
            )
    )
}

/// Whether an update of what does not exist creates it.
pub fn allows_create_on_update(gvk: Gvk<'_>) -> bool {
    matches!(
        (gvk.group, gvk.kind),
        ("", "Service" | "Endpoints" | "Event" | "LimitRange")
            | ("events.k8s.io", "Event")
            | ("coordination.k8s.io", "Lease")
            | ("node.k8s.io", "RuntimeClass")
            | ("rbac.authorization.k8s.io", _)
    )
}

/// A new object: its status is the initial one, its generation 1. `metadata.uid` and the name must be set.
pub fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let cluster_wide = catalog().find(gvk).is_some_and(|entry| !entry.namespaced);
    make(fields, "metadata", |meta| {
        if cluster_wide {
            meta.remove("namespace");
        }
        meta.remove("deletionTimestamp");
        meta.remove("deletionGracePeriodSeconds");
        match generation_rule(gvk) {
            GenerationRule::None | GenerationRule::SpecLater => {}
            _ => {
                meta.insert("generation".to_owned(), 1.into());
            }
        }
    });
    if writes_status_apart(gvk) {
        fields.remove("status");
    }
    match (gvk.group, gvk.kind) {
        ("", "Pod") => qos::initial_status(fields),
        ("", "Namespace") => namespace(fields),
        ("", "ServiceAccount") => clean_secret_references(fields),
        ("", "Service") => allocation::normalise(fields),
        ("", "PersistentVolumeClaim") => data_sources(fields),
        ("", "PersistentVolume") => volume_status(fields),
        ("batch", "Job") => job::generate_selector(fields),
        ("apps", "DaemonSet") => template_generation(fields, 1),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => stored_versions(fields),
        _ => {}
    }
    drop_unused(gvk, fields);
    // The empty status has its own defaults.
    defaults::apply(gvk.group, gvk.version, gvk.kind, object);
}

/// Drops what belongs to features that a server has off unless told otherwise.
fn drop_unused(gvk: Gvk<'_>, fields: &mut Object) {
    match (gvk.group, gvk.kind) {
        ("resource.k8s.io", "ResourceClaim") => with(fields, "spec", devices::drop_of_claim),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            with(fields, "spec", |template| {
                with(template, "spec", devices::drop_of_claim)
            });
        }
        ("resource.k8s.io", "ResourceSlice") => with(fields, "spec", devices::drop_of_slice),
        ("resource.k8s.io", "DeviceClass") => with(fields, "spec", |spec| {
            spec.remove("extendedResourceName");
        }),
        _ => {}
    }
}

/// Whether reads of a kind leave out something of what may be stored.
pub fn hides(gvk: Gvk<'_>) -> bool {
    (gvk.group, gvk.kind) == ("", "Service")
}

/// Takes out of a stored object what reads leave out.
pub fn hide(gvk: Gvk<'_>, object: &mut Value) {
    if hides(gvk)
        && let Some(fields) = object.as_object_mut()
    {
        allocation::hide_policy(fields);
    }
}

/// Whether a create drops the status that the client sent. Nodes register themselves with theirs.
fn writes_status_apart(gvk: Gvk<'_>) -> bool {
    if matches!(
        (gvk.group, gvk.kind),
        ("", "Node") | ("networking.k8s.io", "ServiceCIDR")
    ) {
        return false;
    }
    catalog().find(gvk).is_some_and(|entry| entry.has_status())
}

/// A changed object: its status and server-written metadata stay, its generation follows its rule.
pub fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    let Some(fields) = new.as_object_mut() else { return };
    if catalog().find(gvk).is_some_and(|entry| entry.has_status())
        && (gvk.group, gvk.kind) != ("networking.k8s.io", "ServiceCIDR")
    {
        copy(fields, old, "status");
    }
    match (gvk.group, gvk.kind) {
        ("", "Namespace") => {
            let finalizers = old["spec"]["finalizers"].clone();
            make(fields, "spec", |spec| put(spec, "finalizers", finalizers));
        }
        // A request is what was signed: it cannot become another one.
        ("certificates.k8s.io", "CertificateSigningRequest") => copy(fields, old, "spec"),
        ("", "Service") => allocation::keep_allocated(fields, old),
        ("", "ServiceAccount") => clean_secret_references(fields),
        ("", "PersistentVolumeClaim") => data_sources(fields),
        ("", "Secret") if fields.get("type").is_none_or(is_empty) => copy(fields, old, "type"),
        ("apps", "DaemonSet") => {
            let before = daemon_generation(old);
            let changed = fields
                .get("spec")
                .is_some_and(|spec| !same(&spec["template"], &old["spec"]["template"]));
            template_generation(fields, if changed { before + 1 } else { before });
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => stored_versions(fields),
        _ => {}
    }
    drop_unused(gvk, fields);
    keep_metadata(new, old);
    let generation = old["metadata"]["generation"].as_i64();
    let raised = raises_generation(gvk, new, old);
    if let Some(meta) = object_at(new, "metadata") {
        match (generation, raised) {
            (now, true) => put(meta, "generation", (now.unwrap_or_default() + 1).into()),
            (Some(now), false) => put(meta, "generation", now.into()),
            (None, false) => {
                meta.remove("generation");
            }
        }
    }
}

fn raises_generation(gvk: Gvk<'_>, new: &Value, old: &Value) -> bool {
    let differs = |key: &str| !same(&new[key], &old[key]);
    let meta_differs = |key: &str| !same(&new["metadata"][key], &old["metadata"][key]);
    match generation_rule(gvk) {
        GenerationRule::None | GenerationRule::Fixed => false,
        GenerationRule::Spec | GenerationRule::SpecLater => differs("spec"),
        GenerationRule::SpecAndAnnotations => differs("spec") || meta_differs("annotations"),
        GenerationRule::Field(key) => differs(key),
        GenerationRule::ContentAndLabels => {
            ["addressType", "endpoints", "ports"]
                .iter()
                .any(|key| differs(key))
                || meta_differs("labels")
        }
    }
}

/// What an update cannot change, whatever the client sends.
fn keep_metadata(new: &mut Value, old: &Value) {
    let before = &old["metadata"];
    let Some(fields) = new.as_object_mut() else { return };
    make(fields, "metadata", |meta| {
        if meta.get("uid").is_none_or(is_empty) {
            copy(meta, before, "uid");
        }
        for key in ["creationTimestamp", "deletionTimestamp"] {
            if !is_empty(&before[key]) {
                copy(meta, before, key);
            }
        }
        if !meta.contains_key("deletionGracePeriodSeconds") {
            copy(meta, before, "deletionGracePeriodSeconds");
        }
    });
}

/// A change through the status subresource: everything but the status and some metadata stays.
pub fn prepare_status_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    let before = &old["metadata"];
    let Some(fields) = new.as_object_mut() else { return };
    let kept: Vec<String> = old
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .chain(fields.keys().cloned())
        .filter(|key| !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind"))
        .collect();
    for key in kept {
        copy(fields, old, &key);
    }
    make(fields, "metadata", |meta| {
        let fixed: &[&str] = match (gvk.group, gvk.kind) {
            ("apps", "Deployment") => &["labels"],
            ("", "Pod") => &["ownerReferences"],
            // Kinds that were made later keep all metadata.
            (
                "admissionregistration.k8s.io" | "networking.k8s.io",
                "ValidatingAdmissionPolicy" | "ServiceCIDR",
            )
            | ("storage.k8s.io", "VolumeAttachment")
            | ("resource.k8s.io", "ResourceClaim")
            | ("flowcontrol.apiserver.k8s.io", _) => {
                &["labels", "annotations", "finalizers", "ownerReferences"]
            }
            _ => &[],
        };
        for key in fixed {
            copy(meta, before, key);
        }
        copy(meta, before, "generation");
    });
    match (gvk.group, gvk.kind) {
        ("", "Pod") => make(fields, "status", |status| {
            if status.get("qosClass").is_none_or(is_empty) {
                copy(status, &old["status"], "qosClass");
            }
            // A Pod has several addresses nowadays, and older clients tell one.
            let address = status.get("podIP").map(text).unwrap_or_default().to_owned();
            if !address.is_empty() && status.get("podIPs").is_none_or(is_empty) {
                status.insert("podIPs".to_owned(), json!([{"ip": address}]));
            }
        }),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::keep_decisions(fields, old),
        ("resource.k8s.io", "ResourceClaim") => {
            with(fields, "status", |status| devices::drop_of_status(status, old));
        }
        ("", "PersistentVolume") => {
            let times = "lastPhaseTransitionTime";
            let same_phase = fields
                .get("status")
                .is_some_and(|now| now["phase"] == old["status"]["phase"]);
            if same_phase {
                make(fields, "status", |status| {
                    if !status.contains_key(times) {
                        copy(status, &old["status"], times);
                    }
                });
            }
        }
        _ => {}
    }
    keep_metadata(new, old);
}

fn copy(target: &mut Object, source: &Value, key: &str) {
    put(target, key, source[key].clone());
}

/// Sets a field; null stands for its absence.
fn put(target: &mut Object, key: &str, value: Value) {
    if value.is_null() {
        target.remove(key);
    } else {
        target.insert(key.to_owned(), value);
    }
}

fn namespace(fields: &mut Object) {
    make(fields, "spec", |spec| {
        let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
        if let Value::Array(list) = finalizers
            && !list.iter().any(|finalizer| text(finalizer) == "kubernetes")
        {
            list.push("kubernetes".into());
        }
    });
    fields.insert("status".to_owned(), json!({"phase": "Active"}));
}

/// A service account names its secrets by name alone.
fn clean_secret_references(fields: &mut Object) {
    crate::access::each(fields, "secrets", |secret| secret.retain(|key, _| key == "name"));
}

/// `dataSource` and `dataSourceRef` are one thing with two names.
fn data_sources(fields: &mut Object) {
    make(fields, "spec", |spec| {
        let source = spec.get("dataSource").cloned();
        let reference = spec.get("dataSourceRef").cloned();
        match (source, reference) {
            (Some(source), None) => put(spec, "dataSourceRef", source),
            (None, Some(reference)) if reference["namespace"].is_null() => {
                let group = text(&reference["apiGroup"]);
                let kind = text(&reference["kind"]);
                let known = matches!(
                    (group, kind),
                    ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
                );
                if known {
                    put(spec, "dataSource", reference);
                }
            }
            _ => {}
        }
    });
}

fn volume_status(fields: &mut Object) {
    let now = fields
        .get("metadata")
        .map(|meta| meta["creationTimestamp"].clone())
        .unwrap_or_default();
    let mut status = Map::new();
    put(&mut status, "lastPhaseTransitionTime", now);
    put(&mut status, "phase", "Pending".into());
    fields.insert("status".to_owned(), Value::Object(status));
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn daemon_generation(object: &Value) -> i64 {
    text(&object["metadata"]["annotations"][TEMPLATE_GENERATION])
        .parse()
        .unwrap_or(1)
}

/// A daemon set shows the generation of its template in an annotation.
fn template_generation(fields: &mut Object, generation: i64) {
    make(fields, "metadata", |meta| {
        make(meta, "annotations", |annotations| {
            put(annotations, TEMPLATE_GENERATION, generation.to_string().into());
        });
    });
}

/// The version that objects are now stored in is one that may still be found in storage.
fn stored_versions(fields: &mut Object) {
    let versions = fields
        .get("spec")
        .map(|spec| spec["versions"].clone())
        .unwrap_or_default();
    let storage = crate::access::items(&versions)
        .iter()
        .find(|version| version["storage"] == Value::Bool(true))
        .map(|version| version["name"].clone());
    let Some(storage) = storage else { return };
    make(fields, "status", |status| {
        make(status, "acceptedNames", |names| {
            for key in ["plural", "kind"] {
                names.entry(key).or_insert_with(|| "".into());
            }
        });
        let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
        if let Value::Array(stored) = stored
            && !stored.contains(&storage)
        {
            stored.push(storage);
        }
    });
}
