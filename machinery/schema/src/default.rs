//! Applies the defaults of a structural schema.
//!
//! Defaults go into objects that are there; a default of a missing parent is not invented unless the parent has a
//! default itself. A null where null is no value is first removed, or replaced if there is a default.

use serde_json::{Map, Value};

use crate::schema::{SchemaRef, Subtree};

/// Drops nulls that are no values, then fills in defaults, everywhere in the object.
pub fn apply_defaults(schema: SchemaRef<'_>, object: &mut Value) {
    drop_nulls(Some(schema), object);
    fill(schema, object);
}

/// Removes fields that are null though their schema is not nullable and has no default. Elements of lists stay.
pub fn drop_nulls(schema: Option<SchemaRef<'_>>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let schema = schema.and_then(|schema| schema.field(name));
                if value.is_null() {
                    return schema.is_none_or(|schema| schema.nullable() || schema.default_value().is_some());
                }
                drop_nulls(schema, value);
                true
            });
        }
        Value::Array(items) => {
            let schema = schema.and_then(SchemaRef::items);
            // Without a schema nothing below can be removed.
            if schema.is_some() {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// Fills in defaults, everywhere in the object; nulls that have no default stay.
pub fn fill_defaults(schema: SchemaRef<'_>, object: &mut Value) {
    fill(schema, object);
}

fn fill(schema: SchemaRef<'_>, value: &mut Value) {
    if !schema.subtree().has(Subtree::DEFAULTS) {
        return;
    }
    match value {
        Value::Object(fields) => fill_fields(schema, fields),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                replace_null(schema, item);
                fill(schema, item);
            }
        }
        _ => {}
    }
}

fn fill_fields(schema: SchemaRef<'_>, fields: &mut Map<String, Value>) {
    for (name, property) in schema.properties() {
        let Some(default) = property.default_value() else {
            continue;
        };
        match fields.get_mut(name) {
            Some(value) if value.is_null() && !property.nullable() => *value = default.clone(),
            Some(_) => {}
            None => {
                fields.insert(name.to_owned(), default.clone());
            }
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(property) = schema.property(name) {
            fill(property, value);
        } else if let Some(schema) = schema.field(name) {
            replace_null(schema, value);
            fill(schema, value);
        }
    }
}

fn replace_null(schema: SchemaRef<'_>, value: &mut Value) {
    if value.is_null()
        && !schema.nullable()
        && let Some(default) = schema.default_value()
    {
        *value = default.clone();
    }
}
