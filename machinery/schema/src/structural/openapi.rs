//! What a schema may say, keyword by keyword.

use machinery_value::field::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::budget::Costs;
use super::{Schema, rules};
use crate::go;
use crate::schema::SchemaRef;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What the position of a node allows.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) root: bool,
    inside_metadata: bool,
    /// Why there may be no default here.
    no_default: Option<String>,
    /// The list or map whose elements cannot be told apart across updates.
    pub(super) uncorrelatable: Option<FieldPath>,
    /// How often a node here may occur in one object; none if nothing bounds it.
    pub(super) cardinality: Option<u64>,
}

/// Checks everything below a root. Rules are checked if the schema is sound otherwise, against `compiled`.
pub(super) fn check(
    root: Schema<'_>,
    compiled: Option<SchemaRef<'_>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let place = Place {
        root: true,
        inside_metadata: false,
        no_default: None,
        uncorrelatable: None,
        cardinality: Some(1),
    };
    let mut found = Found::default();
    visit(root, compiled, path, &place, &mut found);
    errors.append(&mut found.schema);
    errors.append(&mut found.rules);
    found.costs.check(path, errors);
}

/// Errors of rules come after all others.
#[derive(Default)]
pub(super) struct Found {
    pub(super) schema: Vec<FieldError>,
    pub(super) rules: Vec<FieldError>,
    pub(super) costs: Costs,
}

/// Whether the schema holds none of the keywords that have no structural meaning.
pub(super) fn is_supported(schema: Schema<'_>) -> bool {
    let unsupported = [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ];
    let own = unsupported
        .iter()
        .all(|keyword| schema.get(keyword).is_none_or(is_empty))
        && !schema.get("items").is_some_and(Value::is_array)
        && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(false));
    own && schema.properties().all(|(_, property)| is_supported(property))
        && ["items", "additionalProperties", "not"]
            .iter()
            .filter_map(|k| schema.child(k))
            .all(is_supported)
        && ["allOf", "anyOf", "oneOf"]
            .iter()
            .all(|keyword| schema.list(keyword).all(is_supported))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn visit(
    schema: Schema<'_>,
    compiled: Option<SchemaRef<'_>>,
    path: &FieldPath,
    place: &Place,
    found: &mut Found,
) {
    let before = found.schema.len();
    standard(schema, path, place, &mut found.schema);
    if schema.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found
            .schema
            .push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
    children(schema, compiled, path, place, found);
    extensions(schema, path, &mut found.schema);
    list_keys(schema, path, &mut found.schema);
    rules::check(schema, compiled, path, place, before, found);
}

fn standard(schema: Schema<'_>, path: &FieldPath, place: &Place, errors: &mut Vec<FieldError>) {
    let kind = schema.kind();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(
            &path.child("type"),
            &json!(kind),
            &TYPES,
        ));
    }
    if let Some(reason) = place
        .no_default
        .as_ref()
        .filter(|_| schema.get("default").is_some())
    {
        errors.push(FieldError::forbidden(
            &path.child("default"),
            format!("must not be set {reason}"),
        ));
    }
    for keyword in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if schema.get(keyword).is_some_and(|value| !is_empty(value)) {
            errors.push(FieldError::forbidden(
                &path.child(keyword),
                format!("{keyword} is not supported"),
            ));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&path.child("type"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if place.inside_metadata && schema.is_embedded() {
        let at = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(
            &at,
            "must not be used inside of resource meta",
        ));
    }
}

fn children(
    schema: Schema<'_>,
    compiled: Option<SchemaRef<'_>>,
    path: &FieldPath,
    place: &Place,
    found: &mut Found,
) {
    let inner = Place {
        root: false,
        ..place.clone()
    };
    if let Some(additional) = schema.get("additionalProperties") {
        let at = path.child("additionalProperties");
        if schema.properties().next().is_some() && *additional != Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            found.schema.push(FieldError::forbidden(&at, detail));
        }
        if let Some(below) = Schema::of(additional) {
            let mut inner = inner.clone();
            inner.cardinality = times(inner.cardinality, schema, "maxProperties");
            if place.inside_metadata {
                inner.no_default = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            let compiled = compiled.and_then(|schema| match schema.additional_properties() {
                crate::schema::Additional::Schema(schema) => Some(schema),
                _ => None,
            });
            visit(below, compiled, &at, &inner, found);
        }
    }
    for (name, property) in schema.properties() {
        let mut inner = inner.clone();
        if (place.root || schema.is_embedded()) && matches!(name, "metadata" | "apiVersion" | "kind") {
            inner.inside_metadata = true;
            if place.root {
                inner.no_default = Some(format!("in top-level {name}"));
            }
        }
        let compiled = compiled.and_then(|schema| schema.property(name));
        visit(
            property,
            compiled,
            &path.child("properties").key(name),
            &inner,
            found,
        );
    }
    if let Some(branch) = schema.child("not") {
        visit(branch, None, &path.child("not"), &inner, found);
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in schema.list(keyword).enumerate() {
            visit(branch, None, &path.child(keyword).index(index), &inner, found);
        }
    }
    if let Some(items) = schema.child("items") {
        let mut inner = inner;
        inner.cardinality = times(inner.cardinality, schema, "maxItems");
        if schema.text("x-kubernetes-list-type") != "map" {
            inner.uncorrelatable.get_or_insert_with(|| path.clone());
        }
        visit(
            items,
            compiled.and_then(SchemaRef::items),
            &path.child("items"),
            &inner,
            found,
        );
    }
}

/// How often an element of a list or map may occur.
fn times(cardinality: Option<u64>, schema: Schema<'_>, keyword: &str) -> Option<u64> {
    let most = schema
        .get(keyword)?
        .as_i64()
        .map(|most| u64::try_from(most).unwrap_or(0))?;
    cardinality.map(|cardinality| cardinality.saturating_mul(most))
}

/// Says that a keyword needs a certain type.
fn needs_type(
    schema: Schema<'_>,
    wanted: &str,
    keyword: &str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let detail = format!("must be {wanted} if {keyword} is specified");
    let at = path.child("type");
    errors.push(match schema.kind() {
        "" => FieldError::required(&at, detail),
        other => go::invalid(&at, &json!(other), &detail),
    });
}

fn extensions(schema: Schema<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(go::invalid(&at, &Value::Bool(false), "must be true or undefined"));
    }
    if let Some(value) = schema.get("x-kubernetes-map-type") {
        if schema.kind() != "object" {
            needs_type(schema, "object", "x-kubernetes-map-type", path, errors);
        }
        if !matches!(value.as_str(), Some("atomic" | "granular")) {
            let at = path.child("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(&at, value, &["atomic", "granular"]));
        }
    }
    let Some(value) = schema.get("x-kubernetes-list-type") else {
        return;
    };
    let list_type = value.as_str().unwrap_or("");
    if schema.kind() != "array" {
        needs_type(schema, "array", "x-kubernetes-list-type", path, errors);
    } else if let Some(items) = schema.child("items").filter(|_| list_type == "set") {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let item_list_type = items.get("x-kubernetes-list-type");
        let (keyword, wrong) = match items.kind() {
            "array" => (
                "x-kubernetes-list-type",
                !matches!(items.text("x-kubernetes-list-type"), "" | "atomic"),
            ),
            "object" => (
                "x-kubernetes-map-type",
                items.text("x-kubernetes-map-type") != "atomic",
            ),
            _ => ("", false),
        };
        if wrong {
            let shown = item_list_type.unwrap_or(&Value::Null);
            errors.push(go::invalid(&path.child("items").child(keyword), shown, detail));
        }
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        let at = path.child("x-kubernetes-list-type");
        errors.push(FieldError::not_supported(&at, value, &["atomic", "set", "map"]));
    }
}

fn list_keys(schema: Schema<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let keys = schema.strings("x-kubernetes-list-map-keys");
    let list_type = schema.text("x-kubernetes-list-type");
    let type_path = path.child("x-kubernetes-list-type");
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match schema.get("x-kubernetes-list-type") {
            None => FieldError::required(&type_path, detail),
            Some(other) => go::invalid(&type_path, other, detail),
        });
    }
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let items_path = path.child("items");
    let items = schema.child("items");
    if list_type == "map" {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&keys_path, detail));
        }
        match items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(&items_path, detail));
            }
            Some(items) if items.kind() != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(go::invalid(
                    &items_path.child("type"),
                    &json!(items.kind()),
                    detail,
                ));
            }
            Some(items) => {
                for (index, key) in keys.iter().enumerate() {
                    match items.property(key) {
                        Some(property) if matches!(property.kind(), "array" | "object") => {
                            let at = items_path.child("properties").key(key).child("type");
                            let detail =
                                "must be a scalar type if parent array's x-kubernetes-list-type is map";
                            errors.push(go::invalid(&at, &json!(items.kind()), detail));
                        }
                        Some(_) => {}
                        None => {
                            let detail = "entries must all be names of item properties";
                            errors.push(go::invalid(&keys_path, &json!(keys), detail));
                        }
                    }
                    if keys[..index].contains(key) {
                        errors.push(go::invalid(
                            &keys_path,
                            &json!(keys),
                            "must not contain duplicate entries",
                        ));
                    }
                }
            }
        }
    }
    let Some(items) = items.filter(|_| matches!(list_type, "set" | "map")) else {
        return;
    };
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&items_path.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    let required = items.strings("required");
    for key in keys {
        let Some(property) = items.property(key) else {
            continue;
        };
        let at = items_path.child("properties").key(key);
        let known = "this property is in x-kubernetes-list-map-keys, so it";
        if !required.contains(&key) && property.get("default").is_none() {
            let detail = format!("{known} must have a default or be a required property");
            errors.push(FieldError::required(&at.child("default"), detail));
        }
        if property.flag("nullable") {
            errors.push(FieldError::forbidden(
                &at.child("nullable"),
                format!("{known} cannot be nullable"),
            ));
        }
    }
}
