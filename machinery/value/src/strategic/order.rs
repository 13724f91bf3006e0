//! The order of the elements of a merged list.
//!
//! The elements that the patch names come in its order, those that only the server has in theirs, and the two are
//! interleaved as the server's list had them, where it had both.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::lists::{ElementKind, element_kind, merge_field};
use super::{DIRECTIVE, MergeSchema, SET_ORDER, StrategicError, entry_schema, inserted, listed_field};
use crate::gofmt::GoList;

/// What tells elements apart: a scalar in a form that can be hashed. `1` and `"1"` differ, as in Go.
pub(super) type Identity = String;

/// The identity of a scalar.
pub(super) fn scalar(value: &Value) -> Identity {
    value.to_string()
}

fn identity(element: &Value, key: Option<&str>) -> Option<Identity> {
    match key {
        None => Some(scalar(element)),
        Some(key) => element.get(key).map(scalar),
    }
}

/// The identities of elements; none for one without the key.
pub(super) fn identities(elements: &[Value], key: Option<&str>) -> Vec<Option<Identity>> {
    elements.iter().map(|element| identity(element, key)).collect()
}

/// Obeys the `$setElementOrder` directives of `patch`, and takes them and the lists they are about out of it.
pub(super) fn apply_orders<S: MergeSchema>(
    schema: Option<S>,
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else {
            continue;
        };
        let Value::Array(order) = order else {
            return Err(StrategicError::not_a_list(&order));
        };
        let name = listed_field(&directive, SET_ORDER).ok_or(StrategicError::BadElementOrder)?;
        let current = original
            .get(name)
            .filter(|value| !value.is_null())
            .map(as_list)
            .transpose()?;
        let change = patch.get(name).map(as_list).transpose()?;
        if current.is_none() && change.is_none() {
            continue;
        }
        let merged = set_order(entry_schema(schema, name), current, change, &order)?;
        original.insert(name.to_owned(), Value::Array(merged));
        patch.remove(name);
    }
    Ok(())
}

fn as_list(value: &Value) -> Result<&Vec<Value>, StrategicError> {
    value.as_array().ok_or_else(|| StrategicError::not_a_list(value))
}

fn set_order<S: MergeSchema>(
    field: Option<S>,
    current: Option<&Vec<Value>>,
    change: Option<&Vec<Value>>,
    order: &[Value],
) -> Result<Vec<Value>, StrategicError> {
    let key = field.as_ref().and_then(MergeSchema::merge_key);
    if let Some(change) = change {
        check_order(change, order, key)?;
    }
    let (no_current, no_change) = (Vec::new(), Vec::new());
    let kind = element_kind(current.unwrap_or(&no_current), change.unwrap_or(&no_change))?;
    let merged = match (current, change) {
        (Some(current), Some(change)) => merge_field(field, current.clone(), change.clone(), false)?,
        (Some(current), None) => current.clone(),
        (None, Some(change)) => change.iter().cloned().filter_map(inserted).collect(),
        (None, None) => Vec::new(),
    };
    if key.is_some() && kind == ElementKind::Map {
        require_key(order, key)?;
        require_key(current.unwrap_or(&no_current), key)?;
    }
    let server_order = identities(current.unwrap_or(&no_current), key);
    arrange(merged, &identities(order, key), &server_order, key)
}

/// Checks that what the patch changes is in `order`, and in the same order; what it deletes does not matter.
fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), StrategicError> {
    if order.is_empty() || change.is_empty() {
        return Ok(());
    }
    if key.is_some()
        && let Some(other) = change.iter().find(|element| !element.is_object())
    {
        return Err(StrategicError::not_a_map(other));
    }
    let mut ordered = order.iter();
    for element in change.iter().filter(|element| element.get(DIRECTIVE).is_none()) {
        require_key(std::slice::from_ref(element), key)?;
        let wanted = identity(element, key);
        let found = ordered.by_ref().find_map(|candidate| {
            if let Err(error) = require_key(std::slice::from_ref(candidate), key) {
                return Some(Err(error));
            }
            (identity(candidate, key) == wanted).then_some(Ok(()))
        });
        match found {
            Some(result) => result?,
            None => {
                let (change, order) = (GoList(change), GoList(order));
                return Err(StrategicError::Mismatch(format!(
                    "The order in patch list:\n{change}\n doesn't match {SET_ORDER} list:\n{order}\n"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that all elements have the merge key, if there is one.
fn require_key(elements: &[Value], key: Option<&str>) -> Result<(), StrategicError> {
    let Some(key) = key else { return Ok(()) };
    for element in elements {
        let map = element
            .as_object()
            .ok_or_else(|| StrategicError::not_a_map(element))?;
        if !map.contains_key(key) {
            return Err(StrategicError::no_merge_key(map, key));
        }
    }
    Ok(())
}

/// Brings `merged` into order: those in `patch_order` in that order, the others in `server_order`, interleaved.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &[Option<Identity>],
    server_order: &[Option<Identity>],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    require_key(&merged, key)?;
    let in_patch = places(patch_order);
    let on_server = places(server_order);
    let mut wanted = Vec::new();
    let mut others = Vec::new();
    for element in merged {
        let identity = identity(&element, key).unwrap_or_default();
        let server_place = on_server.get(&identity).copied();
        match in_patch.get(&identity) {
            Some(&place) => wanted.push((place, server_place, element)),
            None => others.push((server_place.unwrap_or(usize::MAX), server_place, element)),
        }
    }
    wanted.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(place, ..)| *place);
    let mut arranged = Vec::with_capacity(wanted.len() + others.len());
    let mut wanted = wanted.into_iter().peekable();
    for (_, other_place, other) in others {
        // An element of the patch comes first, unless the server had both the other way round.
        let after = |place: Option<usize>| matches!((other_place, place), (Some(other), Some(place)) if other < place);
        while let Some((_, _, element)) = wanted.next_if(|(_, place, _)| !after(*place)) {
            arranged.push(element);
        }
        arranged.push(other);
    }
    arranged.extend(wanted.map(|(_, _, element)| element));
    Ok(arranged)
}

/// The first place of each identity.
fn places(order: &[Option<Identity>]) -> HashMap<&Identity, usize> {
    let mut places = HashMap::with_capacity(order.len());
    for (place, identity) in order.iter().enumerate() {
        if let Some(identity) = identity {
            places.entry(identity).or_insert(place);
        }
    }
    places
}
