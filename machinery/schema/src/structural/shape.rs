//! Whether a schema is structural.

use machinery_value::field::{FieldError, FieldPath};
use regex::Regex;
use serde_json::Value;

use super::Schema;
use crate::go;
use crate::validate::{describe_pattern_error, translate_pattern};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Appends what keeps a schema from being structural, sorted by text as the server does.
pub(super) fn check(root: Schema<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut found = Vec::new();
    invariants(root, Level::Root, path, &mut found);
    completeness(root, root, path, path, &mut found);
    found.sort_by_cached_key(ToString::to_string);
    errors.append(&mut found);
}

fn required(path: &FieldPath, detail: &str) -> FieldError {
    FieldError::required(path, detail)
}

fn forbidden(path: &FieldPath, detail: &str) -> FieldError {
    FieldError::forbidden(path, detail)
}

fn invalid_text(path: &FieldPath, value: &str, detail: &str) -> FieldError {
    go::invalid(path, &Value::String(value.to_owned()), detail)
}

fn invariants(schema: Schema<'_>, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = schema.kind();
    match schema.child("items") {
        Some(items) => invariants(items, Level::Item, &path.child("items"), errors),
        None if kind == "array" => errors.push(required(&path.child("items"), "must be specified")),
        None => {}
    }
    let properties = path.child("properties");
    for (name, property) in schema.properties() {
        invariants(property, Level::Field, &properties.key(name), errors);
    }
    let additional = path.child("additionalProperties");
    if schema.get("additionalProperties").is_some() {
        if level == Level::Root {
            errors.push(forbidden(&additional, "must not be used at the root"));
        }
        if let Some(schema) = schema.child("additionalProperties") {
            invariants(schema, Level::Field, &additional, errors);
        }
        if schema.is_embedded() {
            errors.push(forbidden(
                &additional,
                "must not be used if x-kubernetes-embedded-resource is set",
            ));
        }
    }
    if schema.is_int_or_string() {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        for keyword in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if schema.flag(keyword) {
                errors.push(go::invalid(&path.child(keyword), &Value::Bool(true), detail));
            }
        }
    }
    value_validation(
        schema,
        is_int_or_string(schema),
        first_all_of_is_int_or_string(schema),
        path,
        errors,
    );
    check_type(schema, level, path, errors);

    let check_metadata = level == Level::Root || schema.is_embedded();
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.property(name).filter(|_| check_metadata)
            && property.kind() != "string"
        {
            errors.push(invalid_text(
                &properties.key(name).child("type"),
                property.kind(),
                "must be string",
            ));
        }
    }
    if let Some(metadata) = schema.property("metadata") {
        let at = properties.key("metadata");
        if check_metadata && metadata.kind() != "object" {
            errors.push(invalid_text(&at.child("type"), metadata.kind(), "must be object"));
        }
        if level == Level::Root && !is_plain_metadata(metadata) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(forbidden(&at, detail));
        }
    }
    if schema.is_embedded() && !schema.preserves_unknown() && schema.properties().next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(required(&properties, detail));
    }
}

fn check_type(schema: Schema<'_>, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = schema.kind();
    let at = path.child("type");
    if schema.is_embedded() && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            required(&at, detail)
        } else {
            invalid_text(&at, kind, detail)
        });
    } else if kind.is_empty() && !schema.is_int_or_string() && !schema.preserves_unknown() {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(required(&at, detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(invalid_text(&at, kind, "must be object at the root"));
    }
}

/// Metadata at the root may restrict the names and nothing else.
fn is_plain_metadata(metadata: Schema<'_>) -> bool {
    metadata.0.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => {
            let names = value.as_object();
            names.is_none_or(|names| names.keys().all(|name| name == "name" || name == "generateName"))
        }
        _ => matches!(value, Value::Null | Value::Bool(false)),
    })
}

/// `anyOf` of an integer and a string, the one place where types may be in a connective.
fn is_int_or_string(schema: Schema<'_>) -> bool {
    let mut branches = schema.list("anyOf");
    let exactly = |branch: Option<Schema<'_>>, kind: &str| {
        branch.is_some_and(|branch| branch.kind() == kind && branch.0.len() == 1)
    };
    exactly(branches.next(), "integer") && exactly(branches.next(), "string") && branches.next().is_none()
}

fn first_all_of_is_int_or_string(schema: Schema<'_>) -> bool {
    schema.list("allOf").next().is_some_and(is_int_or_string)
}

fn value_validation(
    schema: Schema<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        for (index, branch) in schema.list("anyOf").enumerate() {
            nested(branch, false, &path.child("anyOf").index(index), errors);
        }
    }
    for (index, branch) in schema.list("allOf").enumerate() {
        nested(
            branch,
            skip_first_all_of && index == 0,
            &path.child("allOf").index(index),
            errors,
        );
    }
    for (index, branch) in schema.list("oneOf").enumerate() {
        nested(branch, false, &path.child("oneOf").index(index), errors);
    }
    if let Some(branch) = schema.child("not") {
        nested(branch, false, &path.child("not"), errors);
    }
    let pattern = schema.text("pattern");
    if !pattern.is_empty()
        && let Err(problem) = Regex::new(&translate_pattern(pattern))
    {
        let problem = describe_pattern_error(pattern, &problem);
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(invalid_text(&path.child("pattern"), pattern, &detail));
    }
}

/// A branch of a connective: it may restrict values, and say nothing about their structure.
fn nested(schema: Schema<'_>, skip_any_of: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    value_validation(schema, skip_any_of, false, path, errors);
    if let Some(items) = schema.child("items") {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in schema.properties() {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    for (keyword, detail) in [
        ("type", "must be empty to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
    ] {
        if !schema.text(keyword).is_empty() {
            errors.push(forbidden(&path.child(keyword), detail));
        }
    }
    let undefined = "must be undefined to be structural";
    match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => {}
        Some(_) => errors.push(forbidden(&path.child("additionalProperties"), undefined)),
    }
    if schema.get("default").is_some() {
        errors.push(forbidden(&path.child("default"), undefined));
    }
    for keyword in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if schema.flag(keyword) {
            errors.push(forbidden(&path.child(keyword), "must be false to be structural"));
        }
    }
    for keyword in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if schema
            .get(keyword)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
        {
            errors.push(forbidden(&path.child(keyword), "must be empty to be structural"));
        }
    }
    for keyword in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if schema.get(keyword).is_some() {
            errors.push(forbidden(&path.child(keyword), undefined));
        }
    }
    if schema.property("metadata").is_some() {
        let at = path.child("properties").key("metadata");
        errors.push(forbidden(&at, "must not be specified in a nested context"));
    }
}

/// Every field or element that a connective restricts must be declared outside of it.
fn completeness(
    branches_of: Schema<'_>,
    declared: Schema<'_>,
    declared_path: &FieldPath,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if let Some(branch) = branches_of.child("not") {
        nested_completeness(branch, Some(declared), declared_path, &path.child("not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, branch) in branches_of.list(keyword).enumerate() {
            nested_completeness(
                branch,
                Some(declared),
                declared_path,
                &path.child(keyword).index(index),
                errors,
            );
        }
    }
}

fn nested_completeness(
    branch: Schema<'_>,
    declared: Option<Schema<'_>>,
    declared_path: &FieldPath,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(declared) = declared else {
        errors.push(required(
            declared_path,
            &format!("because it is defined in {path}"),
        ));
        return;
    };
    completeness(branch, declared, declared_path, path, errors);
    if let Some(items) = branch.child("items") {
        let at = declared_path.child("items");
        nested_completeness(items, declared.child("items"), &at, &path.child("items"), errors);
    }
    for (name, property) in branch.properties() {
        let at = declared_path.child("properties").key(name);
        let below = path.child("properties").key(name);
        nested_completeness(property, declared.property(name), &at, &below, errors);
    }
}
