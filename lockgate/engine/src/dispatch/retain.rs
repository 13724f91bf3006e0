//! What a member's object keeps when the manifest is written over it.
//!
//! A write replaces the whole object, so everything that the member's server and controllers gave it must be in the
//! write: they would give it anew, or refuse.

use std::collections::BTreeSet;

use lockgate_api::keys;
use serde_json::{Map, Value};

use crate::interpret::{InterpretError, Interpreter};
use crate::object;
use crate::render::TOKEN_SECRET;

/// The object to write: the manifest, with what the member's object keeps. A script, if there is one, stands for what is known
/// of the kind; what holds for the metadata of all kinds is not up to it.
pub(super) fn retain(
    manifest: &Value,
    live: &Value,
    interpreter: Option<&Interpreter>,
) -> Result<Value, InterpretError> {
    let mut desired = manifest.clone();
    retain_common(&mut desired, live);
    match interpreter.and_then(|interpreter| interpreter.retain(&desired, live)) {
        Some(answer) => {
            let mut answer = answer?;
            answer["metadata"] = desired["metadata"].take();
            desired = answer;
        }
        None => retain_by_kind(&mut desired, manifest, live),
    }
    Ok(desired)
}

fn retain_common(desired: &mut Value, live: &Value) {
    let Some(fields) = desired.as_object_mut() else {
        return;
    };
    // Where the status is no subresource, a write without it would remove it; elsewhere it is not looked at.
    take(fields, live, "status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        let live = &live["metadata"];
        for field in ["resourceVersion", "finalizers", "ownerReferences"] {
            take(metadata, live, field);
        }
        let annotations = live["annotations"].as_object();
        for (field, list) in [
            ("labels", keys::MANAGED_LABELS),
            ("annotations", keys::MANAGED_ANNOTATIONS),
        ] {
            let ours = annotations.and_then(|annotations| annotations.get(list)?.as_str());
            retain_keys(metadata, live[field].as_object(), field, ours.unwrap_or_default());
        }
    }
}

fn retain_by_kind(desired: &mut Value, manifest: &Value, live: &Value) {
    let Some(fields) = desired.as_object_mut() else {
        return;
    };
    match (
        object::text(manifest, "apiVersion"),
        object::text(manifest, "kind"),
    ) {
        ("apps/v1", "Deployment") if object::label(manifest, keys::RETAIN_REPLICAS) == Some("true") => {
            with_spec(fields, live, |spec, live| take(spec, live, "replicas"));
        }
        ("v1", "Pod") => with_spec(fields, live, retain_pod),
        ("v1", "Service") => with_spec(fields, live, retain_service),
        ("v1", "ServiceAccount") => {
            for field in ["secrets", "imagePullSecrets"] {
                unite(fields, live, field, |one, other| one["name"] == other["name"]);
            }
        }
        ("v1", "PersistentVolumeClaim") => with_spec(fields, live, |spec, live| {
            for field in ["volumeName", "storageClassName", "volumeMode"] {
                take_if_missing(spec, live, field);
            }
        }),
        ("v1", "PersistentVolume") => with_spec(fields, live, |spec, live| take(spec, live, "claimRef")),
        ("batch/v1", "Job") => with_spec(fields, live, retain_job),
        ("v1", "Secret") if object::text(manifest, "type") == TOKEN_SECRET => take(fields, live, "data"),
        _ => {}
    }
}

/// Keeps the keys that were never ours. A key that is listed as ours and no longer wanted goes.
fn retain_keys(
    metadata: &mut Map<String, Value>,
    live: Option<&Map<String, Value>>,
    field: &str,
    ours: &str,
) {
    let Some(live) = live else { return };
    let ours: BTreeSet<&str> = ours.split(',').collect();
    let desired = metadata.entry(field).or_insert(Value::Null);
    if desired.is_null() {
        *desired = Value::Object(Map::new());
    }
    let Some(desired) = desired.as_object_mut() else {
        return;
    };
    for (key, value) in live {
        if !desired.contains_key(key) && !ours.contains(key.as_str()) {
            desired.insert(key.clone(), value.clone());
        }
    }
}

fn with_spec(
    fields: &mut Map<String, Value>,
    live: &Value,
    then: impl FnOnce(&mut Map<String, Value>, &Value),
) {
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        then(spec, &live["spec"]);
    }
}

/// Takes the live value, if there is one.
fn take(fields: &mut Map<String, Value>, live: &Value, field: &str) {
    if let Some(value) = live.get(field).filter(|value| !value.is_null()) {
        fields.insert(field.to_owned(), value.clone());
    }
}

fn take_if_missing(fields: &mut Map<String, Value>, live: &Value, field: &str) {
    if fields.get(field).is_none_or(Value::is_null) {
        take(fields, live, field);
    }
}

/// Adds the live elements that are not there yet.
fn unite(fields: &mut Map<String, Value>, live: &Value, field: &str, same: impl Fn(&Value, &Value) -> bool) {
    let Some(live) = live[field].as_array().filter(|live| !live.is_empty()) else {
        return;
    };
    let list = fields.entry(field).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Some(list) = list.as_array_mut() {
        for item in live {
            if !list.iter().any(|present| same(present, item)) {
                list.push(item.clone());
            }
        }
    }
}

/// Almost nothing of a pod can be changed, so what the manifest does not speak of stays.
fn retain_pod(spec: &mut Map<String, Value>, live: &Value) {
    for field in ["nodeName", "serviceAccountName", "serviceAccount", "volumes"] {
        take(spec, live, field);
    }
    unite(spec, live, "tolerations", |one, other| one == other);
    for field in live.as_object().into_iter().flatten().map(|(field, _)| field) {
        take_if_missing(spec, live, field);
    }
    for field in ["containers", "initContainers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut all = live[field].as_array().into_iter().flatten();
            let Some(live) = all.find(|live| live["name"] == container["name"]) else {
                continue;
            };
            if let Some(container) = container.as_object_mut() {
                take(container, live, "volumeMounts");
                for field in live.as_object().into_iter().flatten().map(|(field, _)| field) {
                    take_if_missing(container, live, field);
                }
            }
        }
    }
}

/// Addresses and ports are the member's to give.
fn retain_service(spec: &mut Map<String, Value>, live: &Value) {
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default();
    // A type without ports on nodes gives back those that it had; an alias has no address at all.
    let (is_alias, has_node_ports) = (
        kind == "ExternalName",
        matches!(kind, "NodePort" | "LoadBalancer"),
    );
    if is_alias {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        take_if_missing(spec, live, field);
    }
    if live["healthCheckNodePort"].as_i64().is_some_and(|port| port > 0) {
        take(spec, live, "healthCheckNodePort");
    }
    if !has_node_ports {
        return;
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
        let same = |live: &&Value| live["port"] == port["port"] && protocol(live) == protocol(port);
        let live = live["ports"].as_array().into_iter().flatten().find(same);
        if let (Some(live), Some(port)) = (live, port.as_object_mut()) {
            take_if_missing(port, live, "nodePort");
        }
    }
}

/// The labels by which a Job finds its pods are made up by the member's server.
fn retain_job(spec: &mut Map<String, Value>, live: &Value) {
    for path in [
        ["selector"].as_slice(),
        ["template", "metadata", "labels"].as_slice(),
    ] {
        let pointer = format!("/{}", path.join("/"));
        if let Some(value) = live.pointer(&pointer).filter(|value| value.is_object()) {
            put(spec, path, value.clone());
        }
    }
}

/// Puts a value at a path, making the maps on the way. Something else on the way is left alone.
fn put(fields: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut map = fields;
    for key in way {
        let next = map.entry(*key).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        match next.as_object_mut() {
            Some(next) => map = next,
            None => return,
        }
    }
    map.insert((*last).to_owned(), value);
}
