//! Whether the defaults of a schema are values of it, already pruned.

use machinery_value::field::{FieldError, FieldPath};
use serde_json::Value;

use super::Schema;
use crate::cel::check_rules_at;
use crate::schema::{SchemaRef, Subtree};
use crate::validate::{check_embedded_at, check_values_at};
use crate::{go, prune};

pub(super) fn check(root: Schema<'_>, schema: SchemaRef<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    visit(root, schema, path, true, false, errors);
}

fn visit(
    written: Schema<'_>,
    schema: SchemaRef<'_>,
    path: &FieldPath,
    resource: bool,
    inside_metadata: bool,
    errors: &mut Vec<FieldError>,
) {
    if !schema.subtree().has(Subtree::DEFAULTS) {
        return;
    }
    let resource = resource || schema.embedded_resource();
    let inside_metadata = inside_metadata && !schema.embedded_resource();
    if let Some(default) = schema.default_value() {
        let at = path.child("default");
        check_default(schema, default, &at, resource, inside_metadata, errors);
    }
    if let (Some(items), Some(written)) = (schema.items(), written.child("items")) {
        visit(
            written,
            items,
            &path.child("items"),
            false,
            inside_metadata,
            errors,
        );
    }
    for (name, below) in written.properties() {
        let Some(property) = schema.property(name) else {
            continue;
        };
        let meta = resource && matches!(name, "metadata" | "apiVersion" | "kind");
        let at = path.child("properties").key(name);
        visit(below, property, &at, false, inside_metadata || meta, errors);
    }
}

fn check_default(
    schema: SchemaRef<'_>,
    default: &Value,
    at: &FieldPath,
    resource: bool,
    inside_metadata: bool,
    errors: &mut Vec<FieldError>,
) {
    if !inside_metadata {
        let mut pruned = default.clone();
        prune::prune_part(schema, &mut pruned);
        if pruned != *default {
            errors.push(go::invalid(at, default, "must not have unknown fields"));
        }
    }
    let before = errors.len();
    if !inside_metadata {
        check_embedded_at(schema, default, at, errors);
    }
    if errors.len() > before {
        return;
    }
    check_values_at(schema, default, None, at, errors);
    if errors.len() > before || !schema.subtree().has(Subtree::RULES) {
        return;
    }
    // Once held against itself, once as if it were new, for rules that take an optional old value.
    let mut found = Vec::new();
    check_rules_at(schema, default, Some(default), resource, &mut found);
    if found.is_empty() {
        check_rules_at(schema, default, None, resource, &mut found);
    }
    errors.extend(found.into_iter().map(|error| below(at, error)));
}

/// The error, with its path below `prefix`.
fn below(prefix: &FieldPath, error: FieldError) -> FieldError {
    let field = match error.field.as_str() {
        "<nil>" => prefix.to_string(),
        field if field.starts_with('[') => format!("{prefix}{field}"),
        field => format!("{prefix}.{field}"),
    };
    FieldError { field, ..error }
}
