//! Reading and writing an object's metadata in a JSON value.

use machinery_value::{Map, Value};
use serde_json::json;

/// The metadata map of `object`, made if it is missing.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let meta = &mut object["metadata"];
    if !meta.is_object() {
        *meta = json!({});
    }
    match meta {
        Value::Object(map) => map,
        _ => unreachable!("set to an object above"),
    }
}

/// A string field of the metadata; empty when missing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or("")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

pub(crate) fn set_text(object: &mut Value, field: &str, value: impl Into<String>) {
    meta_mut(object).insert(field.to_owned(), Value::String(value.into()));
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let meta = meta_mut(object);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), json!(finalizers));
    }
}

/// Adds one to `metadata.generation`, where the object has one.
pub(crate) fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|g| *g > 0) {
        meta_mut(object).insert("generation".into(), json!(generation + 1));
    }
}

/// Drops owner references that stand there twice; returns the uids of those.
pub(crate) fn drop_repeated_owners(object: &mut Value) -> Vec<String> {
    let Some(list) = object["metadata"]["ownerReferences"].as_array() else {
        return Vec::new();
    };
    let (mut kept, mut repeated): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in list {
        if kept.contains(owner) {
            repeated.push(owner["uid"].as_str().unwrap_or("").to_owned());
        } else {
            kept.push(owner.clone());
        }
    }
    if !repeated.is_empty() {
        meta_mut(object).insert("ownerReferences".into(), Value::Array(kept));
    }
    repeated
}

/// Sets what the envelope carries, in front of a content that is stored without it.
pub(crate) fn set_type(object: &mut Value, api_version: &str, kind: &str) {
    if let Value::Object(map) = object {
        map.insert("apiVersion".into(), json!(api_version));
        map.insert("kind".into(), json!(kind));
    }
}

/// Takes apiVersion and kind off.
pub(crate) fn strip_type(object: &mut Value) {
    if let Value::Object(map) = object {
        map.remove("apiVersion");
        map.remove("kind");
    }
}
