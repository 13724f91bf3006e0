//! Which old value belongs to a new one.
//!
//! Fields belong to fields of the same name, elements of lists of type map to those with the same keys; elements
//! of other lists belong to nothing.

use serde_json::Value;

use super::{is_map_list, same_value};
use crate::path::Path;
use crate::schema::SchemaRef;

/// The old value that a value is compared with, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a>(Option<&'a Value>);

impl<'a> Old<'a> {
    pub(crate) fn root(_schema: SchemaRef<'_>, old: Option<&'a Value>) -> Self {
        Self(old)
    }

    pub(crate) fn value(self) -> Option<&'a Value> {
        self.0
    }

    /// The old value of a field. Version and kind of the object itself are never compared: both sides were
    /// converted to the same ones.
    pub(crate) fn field(self, _schema: SchemaRef<'_>, name: &str, parent: &Path<'_>) -> Self {
        if parent.is_root() && matches!(name, "apiVersion" | "kind") {
            return Self(None);
        }
        Self(self.0.and_then(|old| old.get(name)))
    }

    /// The old value of an element of a list.
    pub(crate) fn item(self, list: SchemaRef<'_>, _items: SchemaRef<'_>, item: &Value) -> Self {
        let Some(Value::Array(old)) = self.0 else {
            return Self(None);
        };
        Self(find_by_keys(list, old, item))
    }
}

/// The first element of `list` with the same keys as `item`, if the schema tells elements apart.
pub(crate) fn find_by_keys<'a>(schema: SchemaRef<'_>, list: &'a [Value], item: &Value) -> Option<&'a Value> {
    if !is_map_list(schema) || !has_keys(schema, item) {
        return None;
    }
    list.iter().find(|old| {
        has_keys(schema, old)
            && schema.list_map_keys().iter().all(|key| {
                match (old.get(key.as_ref()), item.get(key.as_ref())) {
                    (Some(old), Some(new)) => same_value(old, new),
                    _ => false,
                }
            })
    })
}

fn has_keys(schema: SchemaRef<'_>, item: &Value) -> bool {
    let scalar = |value: &Value| matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_));
    item.is_object()
        && schema
            .list_map_keys()
            .iter()
            .all(|key| item.get(key.as_ref()).is_some_and(scalar))
}

/// Whether a value is unchanged, seen through its schema: lists of type map are equal in any order, and an object
/// with fields that the schema does not know is never unchanged.
pub(crate) fn deep_equal(schema: Option<SchemaRef<'_>>, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => {
            if new.len() != old.len() {
                return false;
            }
            let Some(schema) = schema.filter(|schema| is_map_list(*schema)) else {
                return new == old;
            };
            new.iter().all(|item| {
                find_by_keys(schema, old, item).is_some_and(|old| deep_equal(schema.items(), item, old))
            })
        }
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| {
                    let below = schema.and_then(|schema| schema.field(name));
                    below.is_some() && old.get(name).is_some_and(|old| deep_equal(below, value, old))
                })
        }
        (new, old) => new == old,
    }
}
