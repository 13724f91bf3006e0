//! Which fields a value has, and values without some fields or with only some.

use machinery_value::{Map, Value};

use crate::path::PathElement;
use crate::set::FieldSet;
use crate::shape::{Elements, Form, Shape};

/// The fields that whoever applies `value` comes to own: scalars and what is atomic, elements of lists, entries of
/// maps; declared fields only if they are empty or null.
pub fn field_set(shape: Shape<'_>, value: &Value) -> FieldSet {
    fields_of(shape, value).1
}

/// Whether the value is owned as such, and the fields below it.
fn fields_of(shape: Shape<'_>, value: &Value) -> (bool, FieldSet) {
    match (shape.form(Some(value)), value) {
        (Form::Scalar, _) => (true, FieldSet::new()),
        (Form::Object, _) if shape.atomic_object() => (true, FieldSet::new()),
        (Form::Object, Value::Object(map)) => {
            let mut set = FieldSet::with_capacity(map.len());
            for (name, value) in map {
                let declared = shape.declared(name);
                let (owned, below) = fields_of(declared.unwrap_or_else(|| shape.field(name)), value);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                set.push(
                    PathElement::field(name),
                    owned || empty || declared.is_none(),
                    below,
                );
            }
            (false, set)
        }
        (Form::List, _) if matches!(shape.elements(), Elements::Atomic) => (true, FieldSet::new()),
        (Form::List, Value::Array(items)) => {
            let mut set = FieldSet::with_capacity(items.len());
            for group in group(shape, items) {
                // An element that is there twice is owned as such, whatever is in it.
                let below = if group.others.is_empty() {
                    fields_of(shape.item(), group.first).1
                } else {
                    FieldSet::new()
                };
                set.push(group.element, true, below);
            }
            (false, set)
        }
        (Form::Object | Form::List, _) => (false, FieldSet::new()),
    }
}

/// The elements of a list that go by one name.
pub(crate) struct Group<'v> {
    pub(crate) element: PathElement,
    pub(crate) first: &'v Value,
    /// Seldom any.
    pub(crate) others: Vec<&'v Value>,
}

/// The elements of a list by name, sorted. What has no name is left out.
pub(crate) fn group<'v>(shape: Shape<'_>, items: &'v [Value]) -> Vec<Group<'v>> {
    let mut groups: Vec<Group<'v>> = Vec::with_capacity(items.len());
    groups.extend(items.iter().filter_map(|first| {
        Some(Group {
            element: element_of(shape, first).ok()?,
            first,
            others: Vec::new(),
        })
    }));
    groups.sort_by(|a, b| a.element.cmp(&b.element));
    groups.dedup_by(|later, first| {
        let same = later.element == first.element;
        if same {
            first.others.push(later.first);
        }
        same
    });
    groups
}

/// The name of an element of a set or keyed list.
pub(crate) fn element_of(list: Shape<'_>, item: &Value) -> Result<PathElement, String> {
    has_name(list, item)?;
    Ok(match list.elements() {
        Elements::Keyed(keys) => {
            let mut fields: Vec<(Box<str>, Value)> = keys
                .iter()
                .filter_map(|key| Some((key.clone(), key_value(list, item, key)?.clone())))
                .collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            PathElement::Key(fields.into())
        }
        Elements::Set | Elements::Atomic => PathElement::Value(item.clone()),
    })
}

/// The value of a key field. One that is not written has its default; without one, it is not part of the name.
fn key_value<'v>(list: Shape<'v>, item: &'v Value, key: &str) -> Option<&'v Value> {
    item.get(key)
        .or_else(|| list.item().declared(key)?.default_value())
}

/// Whether an element can be named, and otherwise why not.
pub(crate) fn has_name(list: Shape<'_>, item: &Value) -> Result<(), String> {
    let problem = match (list.elements(), item) {
        (Elements::Keyed(keys), Value::Object(_)) => {
            if keys.iter().any(|key| key_value(list, item, key).is_some()) {
                return Ok(());
            }
            let names: Vec<String> = keys.iter().map(|key| crate::go::quote(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        (Elements::Keyed(_), Value::Null) => "associative list with keys may not have a null element",
        (Elements::Keyed(_), _) => "associative list with keys may not have non-map elements",
        (Elements::Set, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (Elements::Set, Value::Array(_)) => "not supported: associative list with lists as elements",
        (Elements::Set, Value::Null) => {
            "associative list without keys has an element that's an explicit null"
        }
        (Elements::Set, _) => return Ok(()),
        (Elements::Atomic, _) => "invalid indexing of non-associative list",
    };
    Err(problem.to_owned())
}

/// The value without the fields of `set`. Containers that lose everything become null.
pub fn remove_items(shape: Shape<'_>, value: &Value, set: &FieldSet) -> Value {
    match (shape.form(Some(value)), value) {
        (Form::Scalar, _) => value.clone(),
        (Form::Object, Value::Object(map)) if !shape.atomic_object() => {
            let mut kept = Map::new();
            for (name, value) in map {
                let value = match set.node(&PathElement::field(name)) {
                    Some(node) if node.member => continue,
                    Some(node) => remove_items(shape.field(name), value, &node.below),
                    None => value.clone(),
                };
                kept.insert(name.clone(), value);
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        (Form::List, Value::Array(items)) if !matches!(shape.elements(), Elements::Atomic) => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let node = element_of(shape, item).ok();
                match node.and_then(|element| set.node(&element)) {
                    Some(node) if node.member => {}
                    Some(node) => kept.push(remove_items(shape.item(), item, &node.below)),
                    None => kept.push(item.clone()),
                }
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        _ => Value::Null,
    }
}

/// The value with nothing but the fields of `set`, and the keys of the elements that remain.
pub fn extract_items(shape: Shape<'_>, value: &Value, set: &FieldSet) -> Value {
    match (shape.form(Some(value)), value) {
        (Form::Object, Value::Object(map)) if !shape.atomic_object() => {
            let mut kept = Map::new();
            for (name, value) in map {
                if let Some(node) = set.node(&PathElement::field(name)) {
                    kept.insert(name.clone(), extract_items(shape.field(name), value, &node.below));
                }
            }
            Value::Object(kept)
        }
        (Form::List, Value::Array(items)) => {
            let keys = match shape.elements() {
                Elements::Atomic => return value.clone(),
                Elements::Set => &[],
                Elements::Keyed(keys) => keys,
            };
            let mut kept = Vec::new();
            for item in items {
                let node = element_of(shape, item).ok();
                let Some(node) = node.and_then(|element| set.node(&element)) else {
                    continue;
                };
                let mut part = extract_items(shape.item(), item, &node.below);
                if let (Value::Object(part), Value::Object(item)) = (&mut part, item) {
                    for key in keys {
                        if let Some(value) = item.get(&**key) {
                            part.insert(key.to_string(), value.clone());
                        }
                    }
                }
                kept.push(part);
            }
            Value::Array(kept)
        }
        _ => value.clone(),
    }
}

/// The set with every declared field that has something of the set below it.
pub(crate) fn with_declared(shape: Option<Shape<'_>>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::with_capacity(set.nodes().len());
    for node in set.nodes() {
        let (declared, below) = match (&node.element, shape) {
            (PathElement::Field(name), Some(shape)) => {
                let declared = shape.declared(name);
                (declared.is_some(), declared.or_else(|| shape.undeclared()))
            }
            (PathElement::Key(_), Some(shape)) => (false, Some(shape.item())),
            _ => (false, None),
        };
        let member = node.member || declared && !node.below.is_empty();
        out.push(node.element.clone(), member, with_declared(below, &node.below));
    }
    out
}

#[cfg(test)]
mod tests {
    use machinery_schema::SchemaSet;
    use serde_json::json;

    use super::*;
    use crate::codec;

    #[test]
    fn what_is_extracted_has_the_fields_of_the_set_and_keys() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                "items": {"type": "object", "properties": {
                    "port": {"type": "integer"}, "name": {"type": "string"}, "host": {"type": "string"}}}},
            "flags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "args": {"type": "array", "items": {"type": "string"}},
            "color": {"type": "string"},
        }}}});
        let schemas = SchemaSet::from_crd(&schema).unwrap();
        let shape = Shape::custom(schemas.root("").unwrap());
        let object = json!({"spec": {
            "ports": [{"port": 1, "name": "a", "host": "h"}, {"port": 2, "name": "b"}],
            "flags": ["x", "y"], "args": ["1", "2"], "color": "red",
        }});
        let set = json!({"f:spec": {
            "f:ports": {"k:{\"port\":1}": {".": {}, "f:name": {}}},
            "f:flags": {"v:\"y\"": {}}, "f:args": {}, "f:absent": {},
        }});
        let part = extract_items(shape, &object, &codec::decode(&set).unwrap());
        let expected =
            json!({"spec": {"ports": [{"port": 1, "name": "a"}], "flags": ["y"], "args": ["1", "2"]}});
        assert_eq!(part, expected);
    }
}
