//! Removes what a schema does not know, as the server does with custom resources.
//!
//! `apiVersion`, `kind` and `metadata` stay at the root and in embedded resources; metadata itself is reduced to
//! the fields of ObjectMeta. Unknown fields are reported in the server's order: first those of the root's
//! metadata, then those of the object, then those of embedded metadata, each group sorted.

use serde_json::{Map, Value};

use crate::meta;
use crate::path::Path;
use crate::schema::{Additional, SchemaRef, Subtree};

/// Removes unknown fields from an object and returns their paths (`spec.bogus`, `spec.list[0].x`).
pub fn prune(schema: SchemaRef<'_>, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let Value::Object(fields) = object else {
        return unknown;
    };
    if let Some(metadata) = fields.get_mut("metadata") {
        let path = Path::ROOT.field("metadata");
        meta::prune(metadata, &path, &mut unknown);
        unknown.sort_unstable();
    }
    let from = unknown.len();
    prune_fields(Some(schema), fields, &Path::ROOT, true, &mut unknown);
    unknown[from..].sort_unstable();
    if schema.subtree().has(Subtree::EMBEDDED) {
        let from = unknown.len();
        prune_embedded_fields(schema, fields, &Path::ROOT, &mut unknown);
        unknown[from..].sort_unstable();
    }
    unknown
}

/// Removes unknown fields from a part of an object, such as a default. The paths do not matter there.
pub(crate) fn prune_part(schema: SchemaRef<'_>, value: &mut Value) {
    prune_value(Some(schema), value, &Path::ROOT, &mut Vec::new());
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn prune_value(schema: Option<SchemaRef<'_>>, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let embedded = schema.is_some_and(SchemaRef::embedded_resource);
            prune_fields(schema, fields, path, embedded, unknown);
        }
        Value::Array(items) => {
            let keep = schema.is_some_and(SchemaRef::preserves_unknown);
            let of_items = schema.and_then(SchemaRef::items);
            for (index, item) in items.iter_mut().enumerate() {
                match of_items {
                    // What is below a list that keeps everything is kept, but what it declares is still pruned.
                    Some(schema) if keep => prune_declared(schema, item, &path.index(index), unknown),
                    None if keep => {}
                    schema => prune_value(schema, item, &path.index(index), unknown),
                }
            }
        }
        _ => {}
    }
}

fn prune_fields(
    schema: Option<SchemaRef<'_>>,
    fields: &mut Map<String, Value>,
    path: &Path<'_>,
    embedded: bool,
    unknown: &mut Vec<String>,
) {
    let Some(schema) = schema else {
        for name in fields.keys() {
            unknown.push(path.field(name).dotted());
        }
        fields.clear();
        return;
    };
    let additional = schema.additional_properties();
    let keeps = schema.preserves_unknown();
    fields.retain(|name, value| {
        if embedded && is_meta(name) {
            return true;
        }
        let below = path.field(name);
        if let Some(property) = schema.property(name) {
            prune_value(Some(property), value, &below, unknown);
            return true;
        }
        match additional {
            Additional::Schema(schema) => prune_value(Some(schema), value, &below, unknown),
            // Both `true` and `false` keep the fields and empty what is in them.
            Additional::Any | Additional::Forbidden => prune_value(None, value, &below, unknown),
            Additional::Unspecified if keeps => {}
            Additional::Unspecified => {
                unknown.push(below.dotted());
                return false;
            }
        }
        true
    });
}

/// Below a list that keeps unknown fields: declared fields are pruned by their schemas, all others are kept.
fn prune_declared(schema: SchemaRef<'_>, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if schema.embedded_resource() && is_meta(name) {
                    continue;
                }
                let below = path.field(name);
                match (schema.property(name), schema.additional_properties()) {
                    (Some(property), _) => prune_value(Some(property), value, &below, unknown),
                    (None, Additional::Schema(schema)) => prune_value(Some(schema), value, &below, unknown),
                    (None, Additional::Unspecified) => {}
                    (None, _) => prune_value(None, value, &below, unknown),
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune_declared(schema, item, &path.index(index), unknown);
            }
        }
        _ => {}
    }
}

/// Prunes the metadata of embedded resources, wherever they are.
fn prune_embedded(schema: SchemaRef<'_>, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    if !schema.subtree().has(Subtree::EMBEDDED) {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource()
                && let Some(metadata) = fields.get_mut("metadata")
            {
                meta::prune(metadata, &path.field("metadata"), unknown);
            }
            prune_embedded_fields(schema, fields, path, unknown);
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune_embedded(schema, item, &path.index(index), unknown);
            }
        }
        _ => {}
    }
}

fn prune_embedded_fields(
    schema: SchemaRef<'_>,
    fields: &mut Map<String, Value>,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) {
    for (name, value) in fields.iter_mut() {
        if let Some(property) = schema.property(name) {
            prune_embedded(property, value, &path.field(name), unknown);
        } else if let Additional::Schema(schema) = schema.additional_properties() {
            prune_embedded(schema, value, &path.key(name), unknown);
        }
    }
}
