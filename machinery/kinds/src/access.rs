//! Short ways to read and fill a JSON object.
//!
//! Reading never fails: what is absent reads as empty. `value["a"]["b"]` gives `Null` for missing fields, and the
//! functions here turn that into an empty text, list or map. Writing goes by closures, so that a missing parent
//! simply means that nothing happens.

use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// The text, or "".
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The elements, or none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The entries, or none, in key order.
pub(crate) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Whether nothing is there: absent, null, "", [] or {}.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether two values mean the same when absent, null and empty are one.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    if is_empty(left) || is_empty(right) {
        return is_empty(left) && is_empty(right);
    }
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter()
                .all(|(key, value)| same(value, b.get(key).unwrap_or(&Value::Null)))
                && b.iter()
                    .all(|(key, value)| a.contains_key(key) || is_empty(value))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => left == right,
    }
}

/// The object at `key` of a value, to change. Never makes one, and never panics as indexing would.
pub(crate) fn object_at<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Object> {
    value.get_mut(key).and_then(Value::as_object_mut)
}

/// Works on the object at `key`, if there is one.
pub(crate) fn with(object: &mut Object, key: &str, work: impl FnOnce(&mut Object)) {
    if let Some(Value::Object(child)) = object.get_mut(key) {
        work(child);
    }
}

/// Works on the object at `key`, which is made if it is absent.
pub(crate) fn make(object: &mut Object, key: &str, work: impl FnOnce(&mut Object)) {
    let child = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(child) = child {
        work(child);
    }
}

/// Works on every object of the list at `key`.
pub(crate) fn each(object: &mut Object, key: &str, mut work: impl FnMut(&mut Object)) {
    if let Some(Value::Array(list)) = object.get_mut(key) {
        list.iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(&mut work);
    }
}

/// Sets a text that is absent or empty.
pub(crate) fn set_text(object: &mut Object, key: &str, value: &str) {
    if object.get(key).is_none_or(is_empty) {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets a number that is absent or zero.
pub(crate) fn set_nonzero(object: &mut Object, key: &str, value: i64) {
    if object
        .get(key)
        .is_none_or(|now| now.is_null() || now.as_i64() == Some(0))
    {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets what is absent.
pub(crate) fn set(object: &mut Object, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value.into());
    }
}

/// An empty JSON object.
pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}
