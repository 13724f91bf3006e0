//! Kind, version and metadata of embedded resources.

use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Map, Value};

use crate::path::Path;
use crate::schema::{Additional, SchemaRef, Subtree};
use crate::{go, meta};

/// Checks the embedded resources in an object; the object itself is not one of them.
pub fn check_embedded(schema: SchemaRef<'_>, object: &Value, errors: &mut Vec<FieldError>) {
    check_value(schema, object, &Path::ROOT, errors);
}

/// The same for a value at `prefix`.
pub(crate) fn check_embedded_at(
    schema: SchemaRef<'_>,
    value: &Value,
    prefix: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    check_value(schema, value, &Path::ROOT.field(prefix.as_str()), errors);
}

fn check_value(schema: SchemaRef<'_>, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.subtree().has(Subtree::EMBEDDED) {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource() {
                check_resource(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(property) = schema.property(name) {
                    check_value(property, value, &path.field(name), errors);
                } else if let Additional::Schema(schema) = schema.additional_properties() {
                    check_value(schema, value, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                check_value(schema, item, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

/// Checks one resource inside another object.
pub(crate) fn check_resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = path.field(name).to_field();
        let Some(value) = fields.get(name) else {
            errors.push(go::error(FieldErrorKind::Required, &at, None, ""));
            continue;
        };
        match value {
            Value::String(text) if text.is_empty() => {
                errors.push(go::invalid(&at, value, "must not be empty"))
            }
            Value::String(text) if name == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    errors.push(go::invalid(
                        &at,
                        value,
                        &format!("unexpected GroupVersion string: {text}"),
                    ));
                }
            }
            Value::String(text) => {
                let problems = machinery_value::names::dns1035_label(&text.to_lowercase());
                if !problems.is_empty() {
                    let detail = format!(
                        "may have mixed case, but should otherwise match: {}",
                        problems.join(",")
                    );
                    errors.push(go::invalid(&at, value, &detail));
                }
            }
            _ => errors.push(go::invalid(&at, value, "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        let at = path.field("metadata");
        match meta::check_types(metadata) {
            Err(problem) => errors.push(go::invalid(&at.to_field(), metadata, &problem)),
            Ok(()) => meta::check_names(metadata, &at, errors),
        }
    }
}
