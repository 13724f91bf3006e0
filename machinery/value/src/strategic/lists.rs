//! Merging of lists.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::order::{self, Identity};
use super::{DIRECTIVE, MergeSchema, StrategicError, cleaned, merge_map};
use crate::gofmt::{GoList, go_type};

/// The list that comes of `original` and `patch` in a field with this schema.
pub(super) fn merge_field<S: MergeSchema>(
    field: Option<S>,
    original: Vec<Value>,
    patch: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    match field {
        Some(field) if field.patch_strategy().merge => {
            merge_list(field.items(), field.merge_key(), original, patch, deletes)
        }
        _ => Ok(patch.into_iter().map(cleaned).collect()),
    }
}

fn merge_list<S: MergeSchema>(
    items: Option<S>,
    key: Option<&str>,
    original: Vec<Value>,
    patch: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if element_kind(&original, &patch)? != ElementKind::Map {
        return merge_scalars(key, original, patch, deletes);
    }
    let Some(key) = key else {
        return Err(StrategicError::Mismatch(
            "cannot merge lists without merge key for struct".to_owned(),
        ));
    };
    let (original, patch) = obey_directives(original, patch, key)?;
    let server_order = order::identities(&original, Some(key));
    let patch_order = order::identities(&patch, Some(key));
    let merged = merge_elements(items, key, original, patch)?;
    order::arrange(merged, &patch_order, &server_order, Some(key))
}

fn merge_scalars(
    key: Option<&str>,
    mut original: Vec<Value>,
    patch: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    if deletes {
        let unwanted: HashSet<Identity> = order::identities(&patch, None).into_iter().flatten().collect();
        original.retain(|value| !unwanted.contains(&order::scalar(value)));
        return Ok(original);
    }
    if key.is_some() {
        // Elements that should be maps are not.
        let first = original.first().or(patch.first()).unwrap_or(&Value::Null);
        return Err(StrategicError::not_a_map(first));
    }
    let server_order = order::identities(&original, None);
    let patch_order = order::identities(&patch, None);
    let mut seen = HashSet::new();
    let both = original.into_iter().chain(patch);
    let merged = both.filter(|value| seen.insert(order::scalar(value))).collect();
    order::arrange(merged, &patch_order, &server_order, None)
}

/// Obeys the elements of `patch` that carry a `$patch` directive; gives what is left of both lists.
fn obey_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for element in patch {
        let Some((map, directive)) = element
            .as_object()
            .and_then(|map| Some((map, map.get(DIRECTIVE)?)))
        else {
            plain.push(element);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = map
                    .get(key)
                    .ok_or_else(|| StrategicError::no_merge_key(map, key))?;
                deleted.insert(order::scalar(value));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Mismatch(text.to_owned()));
            }
            _ => return Err(StrategicError::unknown_directive(directive, map)),
        }
    }
    if replace {
        return Ok((plain.into_iter().map(cleaned).collect(), Vec::new()));
    }
    if !deleted.is_empty() {
        original.retain(|element| {
            !element
                .get(key)
                .is_some_and(|value| deleted.contains(&order::scalar(value)))
        });
    }
    Ok((original, plain))
}

/// Merges each element of `patch` into the element of `original` with the same key, or appends it.
fn merge_elements<S: MergeSchema>(
    items: Option<S>,
    key: &str,
    mut original: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, StrategicError> {
    let mut places: HashMap<Identity, usize> = HashMap::new();
    for (place, element) in original.iter().enumerate() {
        if let Some(value) = element.get(key) {
            // Of several with the same key, the first is meant.
            places.entry(order::scalar(value)).or_insert(place);
        }
    }
    for element in patch {
        let change = into_map(element)?;
        let value = change
            .get(key)
            .ok_or_else(|| StrategicError::no_merge_key(&change, key))?;
        match places.get(&order::scalar(value)) {
            Some(&place) => {
                let current = into_map(original[place].take())?;
                original[place] = Value::Object(merge_map(items, current, change)?);
            }
            None => {
                places.insert(order::scalar(value), original.len());
                original.push(cleaned(Value::Object(change)));
            }
        }
    }
    Ok(original)
}

fn into_map(value: Value) -> Result<Map<String, Value>, StrategicError> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(StrategicError::not_a_map(&other)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Map,
    Scalar,
}

/// The kind of the elements of both lists, which must all have the same type; there must be at least one.
pub(super) fn element_kind(one: &[Value], other: &[Value]) -> Result<ElementKind, StrategicError> {
    let Some(first) = one.iter().chain(other).next() else {
        return Err(StrategicError::Mismatch(
            "no elements in any of the given slices".to_owned(),
        ));
    };
    let kind = go_type(first);
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if first.is_null() || one.iter().chain(other).any(|value| go_type(value) != kind) {
        let (one, other) = (GoList(one), GoList(other));
        return Err(StrategicError::Mismatch(format!(
            "list element types are not identical: [{one} {other}]"
        )));
    }
    Ok(if first.is_object() {
        ElementKind::Map
    } else {
        ElementKind::Scalar
    })
}
