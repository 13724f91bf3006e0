//! Which old value belongs to a new one.
//!
//! Fields belong to fields of the same name, elements of lists of type map to those with the same keys; elements
//! of other lists belong to nothing. The old value is looked up only when something is wrong with the new one.

use serde_json::Value;

use super::{is_map_list, same_value};
use crate::path::Path;
use crate::schema::SchemaRef;

/// The way to the old value of a value, if there is one. Each step borrows the one before it.
#[derive(Clone, Copy)]
pub(crate) enum Old<'a> {
    None,
    Root(&'a Value),
    Field(&'a Old<'a>, &'a str),
    /// An element of the list with this schema, and where it is now.
    Item(&'a Old<'a>, SchemaRef<'a>, &'a Value, usize),
}

impl<'a> Old<'a> {
    /// The old value of a field. Version and kind of the object itself are never compared: both sides were
    /// converted to the same ones.
    pub(crate) fn field(&'a self, name: &'a str, parent: &Path<'_>) -> Self {
        let hidden = parent.is_root() && matches!(name, "apiVersion" | "kind");
        if hidden || matches!(self, Old::None) {
            Old::None
        } else {
            Old::Field(self, name)
        }
    }

    /// The old value of an element of a list.
    pub(crate) fn item(&'a self, list: SchemaRef<'a>, item: &'a Value, index: usize) -> Self {
        if matches!(self, Old::None) || !is_map_list(list) {
            Old::None
        } else {
            Old::Item(self, list, item, index)
        }
    }

    /// Goes the way.
    pub(crate) fn value(&self) -> Option<&'a Value> {
        match self {
            Old::None => None,
            Old::Root(value) => Some(value),
            Old::Field(parent, name) => parent.value()?.get(name),
            Old::Item(parent, list, item, index) => {
                find_by_keys(*list, parent.value()?.as_array()?, item, *index)
            }
        }
    }
}

/// The element of `list` with the same keys as `item`, if the schema tells elements apart. It is most often at the
/// same place, `near`.
pub(crate) fn find_by_keys<'a>(
    schema: SchemaRef<'_>,
    list: &'a [Value],
    item: &Value,
    near: usize,
) -> Option<&'a Value> {
    if !is_map_list(schema) || !has_keys(schema, item) {
        return None;
    }
    let matches = |old: &&Value| {
        has_keys(schema, old)
            && schema.list_map_keys().iter().all(|key| {
                match (old.get(key.as_ref()), item.get(key.as_ref())) {
                    (Some(old), Some(new)) => same_value(old, new),
                    _ => false,
                }
            })
    };
    list.get(near)
        .filter(matches)
        .or_else(|| list.iter().find(matches))
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
            new.iter().enumerate().all(|(index, item)| {
                find_by_keys(schema, old, item, index)
                    .is_some_and(|old| deep_equal(schema.items(), item, old))
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
