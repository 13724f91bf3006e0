//! Which old value belongs to a new one.
//!
//! Fields belong to fields of the same name, elements of lists of type map to those with the same keys; elements
//! of other lists belong to nothing. The old value is looked up only when something is wrong with the new one.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::Value;

use super::is_map_list;
use super::lists::{Identity, identity};
use crate::path::Path;
use crate::schema::SchemaRef;

/// The way to the old value of a value, if there is one. Each step borrows the one before it.
#[derive(Clone, Copy)]
pub(crate) enum Old<'a, 'v> {
    None,
    Root(&'v Value),
    Field(&'a Old<'a, 'v>, &'a str),
    /// An element of a list: that with the keys of the new one.
    Item(&'a OldList<'a, 'v>, &'a Value),
}

impl<'a, 'v> Old<'a, 'v> {
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

    /// Goes the way.
    pub(crate) fn value(&self) -> Option<&'v Value> {
        match self {
            Old::None => None,
            Old::Root(value) => Some(value),
            Old::Field(parent, name) => parent.value()?.get(name),
            Old::Item(list, item) => list.find(item),
        }
    }
}

/// The old elements of a list, indexed when one is first asked for.
pub(crate) struct OldList<'a, 'v> {
    list: &'a Old<'a, 'v>,
    schema: SchemaRef<'a>,
    index: OnceCell<KeyIndex<'v>>,
}

impl<'a, 'v> OldList<'a, 'v> {
    pub(crate) fn new(list: &'a Old<'a, 'v>, schema: SchemaRef<'a>) -> Self {
        Self {
            list,
            schema,
            index: OnceCell::new(),
        }
    }

    /// The old value of an element.
    pub(crate) fn item(&'a self, item: &'a Value) -> Old<'a, 'v> {
        if matches!(self.list, Old::None) || !is_map_list(self.schema) {
            Old::None
        } else {
            Old::Item(self, item)
        }
    }

    fn find(&self, item: &Value) -> Option<&'v Value> {
        let index = self.index.get_or_init(|| {
            let list = self.list.value().and_then(Value::as_array);
            KeyIndex::new(self.schema, list.map_or(&[], Vec::as_slice))
        });
        index.get(self.schema, item)
    }
}

/// The elements of a list by their keys. Of several with the same keys, the first counts.
pub(crate) struct KeyIndex<'v> {
    by_key: HashMap<Identity<'v>, &'v Value>,
}

impl<'v> KeyIndex<'v> {
    /// Empty if the schema does not tell elements apart.
    pub(crate) fn new(schema: SchemaRef<'_>, list: &'v [Value]) -> Self {
        let mut by_key = HashMap::new();
        if is_map_list(schema) {
            by_key.reserve(list.len());
            for item in list {
                if let Some(key) = key_of(schema, item) {
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        Self { by_key }
    }

    /// The element with the keys of `item`.
    pub(crate) fn get(&self, schema: SchemaRef<'_>, item: &Value) -> Option<&'v Value> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(&key_of(schema, item)?).copied()
    }
}

/// The keys of an element, if it has them all and they are scalars.
fn key_of<'v>(schema: SchemaRef<'_>, item: &'v Value) -> Option<Identity<'v>> {
    let scalar = |value: &&Value| matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_));
    let part = |key: &str| item.get(key).filter(scalar).map(identity);
    match schema.list_map_keys() {
        [key] => part(key),
        keys => keys
            .iter()
            .map(|key| part(key))
            .collect::<Option<Vec<_>>>()
            .map(Identity::Many),
    }
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
            let old = KeyIndex::new(schema, old);
            new.iter().all(|item| {
                old.get(schema, item)
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
