//! Strategic merge patches as the Kubernetes API server applies them to built-in kinds.
//!
//! Objects are merged and null deletes, as in a merge patch; but what happens to a list depends on its schema: it
//! is replaced, or merged by a key of its elements, or, with scalars, united. Directives in the patch (`$patch`,
//! `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`) say more. No directive ever reaches the
//! result, and the target stays as it is if there is an error. Parts without a schema are merged plainly.
//!
//! The real server decodes the result into a type, which drops nulls and directives that its merging leaves in
//! list elements and replaced values; here they are dropped on the way.

mod lists;
mod order;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::gofmt::{GoMap, go_type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// How a field is patched: the value of `x-kubernetes-patch-strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// A list is merged rather than replaced.
    pub merge: bool,
    /// An object is replaced rather than merged.
    pub replace: bool,
    /// Clients remove the fields that they do not name; the server only obeys their directive.
    pub retain_keys: bool,
}

impl PatchStrategy {
    /// Reads `merge`, `replace`, `retainKeys`, or several with commas between them; other words say nothing.
    pub fn parse(text: &str) -> Self {
        let has = |word: &str| text.split(',').any(|part| part.trim() == word);
        Self {
            merge: has("merge"),
            replace: has("replace"),
            retain_keys: has("retainKeys"),
        }
    }
}

/// What merging must know of a schema. The strategy and the key belong to the field that has this schema.
pub trait MergeSchema: Copy {
    /// The schema of the field `name` of an object.
    fn field(self, name: &str) -> Option<Self>;

    /// The schema of the elements of a list.
    fn items(self) -> Option<Self>;

    /// The schema of the values of a map.
    fn map_values(self) -> Option<Self>;

    /// How the field is patched.
    fn patch_strategy(self) -> PatchStrategy;

    /// The field by which the elements of a list are told apart: `x-kubernetes-patch-merge-key`.
    fn merge_key(&self) -> Option<&str>;
}

/// The schema of what has none.
#[derive(Clone, Copy, Debug)]
pub struct NoSchema;

impl MergeSchema for NoSchema {
    fn field(self, _: &str) -> Option<Self> {
        None
    }

    fn items(self) -> Option<Self> {
        None
    }

    fn map_values(self) -> Option<Self> {
        None
    }

    fn patch_strategy(self) -> PatchStrategy {
        PatchStrategy::default()
    }

    fn merge_key(&self) -> Option<&str> {
        None
    }
}

/// Why a strategic merge patch does not apply; the texts are those of the real server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StrategicError {
    /// The target or the patch is not an object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// A `$deleteFromPrimitiveList` that does not name a list.
    #[error("invalid patch format of primitive list")]
    BadPrimitiveList,
    /// A `$retainKeys` that is no list, or lacks a key that the patch sets.
    #[error("invalid patch format of retainKeys")]
    BadRetainKeys,
    /// A `$setElementOrder` that does not name a list.
    #[error("invalid patch format of setElementOrder list")]
    BadElementOrder,
    /// Lists of lists cannot be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An element of a list lacks the field by which elements are told apart.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The element, as Go shows a map.
        map: String,
        /// The missing field.
        key: String,
    },
    /// A `$patch` that is not known.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// What the directive says.
        directive: String,
        /// The object it is in, as Go shows a map.
        map: String,
    },
    /// A value of the wrong type.
    #[error("expected a {expected}, but received a {received}")]
    WrongType {
        /// The Go type that was expected.
        expected: &'static str,
        /// The Go type that was found.
        received: &'static str,
    },
    /// Anything else that does not fit together.
    #[error("{0}")]
    Mismatch(String),
}

impl StrategicError {
    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotAnObject | Self::BadPrimitiveList | Self::BadRetainKeys | Self::BadElementOrder => 400,
            Self::ListOfLists => 422,
            _ => 500,
        }
    }

    fn no_merge_key(map: &Map<String, Value>, key: &str) -> Self {
        Self::NoMergeKey {
            map: GoMap(map).to_string(),
            key: key.to_owned(),
        }
    }

    fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Self {
        let directive = match directive {
            Value::String(text) => text.clone(),
            other => format!("%!s({}={other})", go_type(other)),
        };
        Self::UnknownDirective {
            directive,
            map: GoMap(map).to_string(),
        }
    }

    fn not_a_map(received: &Value) -> Self {
        Self::WrongType {
            expected: "map[string]interface {}",
            received: go_type(received),
        }
    }

    fn not_a_list(received: &Value) -> Self {
        Self::WrongType {
            expected: "[]interface {}",
            received: go_type(received),
        }
    }
}

/// Applies `patch` to `target`, whose schema is `schema`.
pub fn apply<S: MergeSchema>(schema: S, target: &mut Value, patch: &Value) -> Result<(), StrategicError> {
    let (Value::Object(original), Value::Object(patch)) = (&*target, patch) else {
        return Err(StrategicError::NotAnObject);
    };
    *target = Value::Object(merge_map(Some(schema), original.clone(), patch.clone())?);
    Ok(())
}

/// The schema of the entry `name` of an object.
fn entry_schema<S: MergeSchema>(schema: Option<S>, name: &str) -> Option<S> {
    schema.and_then(|schema| schema.field(name).or_else(|| schema.map_values()))
}

fn merge_map<S: MergeSchema>(
    schema: Option<S>,
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, StrategicError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(cleaned_map(patch)),
            Some("delete") => Ok(Map::new()),
            _ => Err(StrategicError::unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::apply_orders(schema, &mut original, &mut patch)?;
    for (name, change) in patch {
        if name.starts_with(DELETE_FROM_LIST) {
            let name = listed_field(&name, DELETE_FROM_LIST).ok_or(StrategicError::BadPrimitiveList)?;
            delete_from_list(schema, &mut original, name, change)?;
            continue;
        }
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let field = entry_schema(schema, &name);
        let merged = match (original.remove(&name), change) {
            (Some(Value::Object(current)), Value::Object(change)) => {
                if field.is_some_and(|field| field.patch_strategy().replace) {
                    Some(Value::Object(cleaned_map(change)))
                } else {
                    Some(Value::Object(merge_map(field, current, change)?))
                }
            }
            (Some(Value::Array(current)), Value::Array(change)) => {
                Some(Value::Array(lists::merge_field(field, current, change, false)?))
            }
            (_, change) => inserted(change),
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

/// The field that a directive such as `$setElementOrder/ports` is about.
fn listed_field<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    name.split_once('/')
        .filter(|(start, _)| *start == prefix)
        .map(|(_, field)| field)
}

fn delete_from_list<S: MergeSchema>(
    schema: Option<S>,
    original: &mut Map<String, Value>,
    name: &str,
    change: Value,
) -> Result<(), StrategicError> {
    if change.is_null() {
        original.remove(name);
        return Ok(());
    }
    // Nothing can be deleted from what is not there, or is not a list.
    if let (Some(Value::Array(current)), Value::Array(unwanted)) = (original.get_mut(name), change) {
        let field = entry_schema(schema, name);
        *current = lists::merge_field(field, std::mem::take(current), unwanted, true)?;
    }
    Ok(())
}

/// Obeys `$retainKeys`: only the named keys stay, and the patch must not set others.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    let retained = match patch.remove(RETAIN_KEYS) {
        None => return Ok(()),
        Some(Value::Array(retained)) => retained,
        Some(_) => return Err(StrategicError::BadRetainKeys),
    };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let set_by_patch = |(name, value): (&String, &Value)| {
        !value.is_null()
            && !name.starts_with(DELETE_FROM_LIST)
            && !name.starts_with(SET_ORDER)
            && !retained.contains(name.as_str())
    };
    if patch.iter().any(set_by_patch) {
        return Err(StrategicError::BadRetainKeys);
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// What a new value becomes: an object with a `$patch` directive is about something that is not there, so it
/// vanishes; of the rest, nulls and other directives do.
fn inserted(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter(|(name, value)| !value.is_null() && !is_directive(name));
            Some(Value::Object(
                kept.filter_map(|(name, value)| Some((name, inserted(value)?)))
                    .collect(),
            ))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(inserted).collect())),
        other => Some(other),
    }
}

/// The value without directives and null fields, all else as it is.
fn cleaned(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(cleaned_map(map)),
        Value::Array(items) => Value::Array(items.into_iter().map(cleaned).collect()),
        other => other,
    }
}

fn cleaned_map(map: Map<String, Value>) -> Map<String, Value> {
    let kept = map
        .into_iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name));
    kept.map(|(name, value)| (name, cleaned(value))).collect()
}

fn is_directive(name: &str) -> bool {
    name == DIRECTIVE
        || name == RETAIN_KEYS
        || listed_field(name, DELETE_FROM_LIST).is_some()
        || listed_field(name, SET_ORDER).is_some()
}
