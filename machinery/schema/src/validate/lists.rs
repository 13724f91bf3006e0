//! Uniqueness in lists of type set and map.

use std::collections::HashMap;

use machinery_value::field::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use crate::go::{self, Num};
use crate::path::Path;
use crate::schema::{Additional, ListType, SchemaRef, Subtree};

/// Reports elements that appear twice in lists of type set, and keys that do in lists of type map.
pub fn check_lists(schema: SchemaRef<'_>, object: &Value, errors: &mut Vec<FieldError>) {
    if let Value::Object(fields) = object {
        check_fields(schema, fields, &Path::ROOT, errors);
    }
}

fn check_value(schema: SchemaRef<'_>, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => check_fields(schema, fields, path, errors),
        Value::Array(items) => check_list(schema, items, path, errors),
        _ => {}
    }
}

fn check_fields(
    schema: SchemaRef<'_>,
    fields: &Map<String, Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.subtree().has(Subtree::LISTS) {
        return;
    }
    if let Additional::Schema(additional) = schema.additional_properties() {
        for (name, value) in fields {
            check_value(additional, value, &path.key(name), errors);
        }
    }
    for (name, property) in schema.properties() {
        if let Some(value) = fields.get(name) {
            check_value(property, value, &path.field(name), errors);
        }
    }
}

fn check_list(schema: SchemaRef<'_>, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.subtree().has(Subtree::LISTS) {
        return;
    }
    match schema.list_type() {
        Some(ListType::Set) => {
            for index in repeated(items.iter().map(identity)) {
                errors.push(duplicate(path, index, &items[index]));
            }
        }
        Some(ListType::Map) => check_map(schema, items, path, errors),
        _ => {}
    }
    if let Some(of_items) = schema.items() {
        for (index, item) in items.iter().enumerate() {
            check_value(of_items, item, &path.index(index), errors);
        }
    }
}

fn check_map(schema: SchemaRef<'_>, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(go::invalid(&path.index(index).to_field(), &items[index], detail));
        return;
    }
    if items.len() <= 1 {
        return;
    }
    let key_of = |item: &Value| {
        let mut key = Map::new();
        for name in schema.list_map_keys() {
            if let Some(value) = item.get(name.as_ref()) {
                key.insert(name.to_string(), value.clone());
            }
        }
        Value::Object(key)
    };
    // The common case of one string key needs no copies.
    let repeats = match schema.list_map_keys() {
        [name] => repeated(
            items
                .iter()
                .map(|item| item.get(name.as_ref()).map_or(Identity::Absent, identity)),
        ),
        names => repeated(items.iter().map(|item| {
            let parts = names
                .iter()
                .map(|name| item.get(name.as_ref()).map_or(Identity::Absent, identity));
            Identity::Many(parts.collect())
        })),
    };
    for index in repeats {
        errors.push(duplicate(path, index, &key_of(&items[index])));
    }
}

fn duplicate(path: &Path<'_>, index: usize, value: &Value) -> FieldError {
    go::error(
        FieldErrorKind::Duplicate,
        &path.index(index).to_field(),
        Some(&go::show(value)),
        "",
    )
}

/// What makes two elements the same.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Identity<'a> {
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(&'a str),
    Compound(String),
    Many(Vec<Identity<'a>>),
}

pub(super) fn identity(value: &Value) -> Identity<'_> {
    match value {
        Value::Null => Identity::Null,
        Value::Bool(flag) => Identity::Bool(*flag),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => Identity::Int(int),
            Num::Float(float) => Identity::Float(float.to_bits()),
        },
        Value::String(text) => Identity::Text(text),
        compound => Identity::Compound(compound.to_string()),
    }
}

/// The second occurrence of everything that occurs more than once.
fn repeated<'a>(identities: impl ExactSizeIterator<Item = Identity<'a>>) -> Vec<usize> {
    let mut repeats = Vec::new();
    if identities.len() <= 1 {
        return repeats;
    }
    let mut seen: HashMap<Identity<'a>, u32> = HashMap::with_capacity(identities.len());
    for (index, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            repeats.push(index);
        }
    }
    repeats
}
