//! Validation of values against a schema, in the words of the server.
//!
//! The order of checks at one node is the server's: type, connectives, string, format, number, list, enumeration,
//! object. Errors of one value come in that order; the fields of an object are visited by name (the server visits
//! them in random order).
//!
//! On update, errors of values that did not change are tolerated: the old value is carried along as far as the
//! schema lets it be correlated.

mod connectives;
mod correlate;
mod embedded;
mod format;
mod lists;
mod numbers;
pub(crate) mod pattern;

use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Map, Value};

use crate::go::{self, Num};
use crate::path::Path;
use crate::schema::{Additional, JsonType, ListType, SchemaRef};

pub(crate) use correlate::{KeyIndex, Old, OldList, deep_equal};
pub use embedded::check_embedded;
pub(crate) use embedded::check_embedded_at;
pub use format::Format;
pub use lists::check_lists;
pub(crate) use pattern::{describe as describe_pattern_error, translate as translate_pattern};

/// More errors than a person reads; the rest is dropped, so that a huge broken object costs a bounded answer.
const MAX_ERRORS: usize = 1000;

/// Checks a value against its schema. `old` is the value before an update: what has not changed is not complained
/// about.
pub fn check_values(schema: SchemaRef<'_>, value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    check_values_at(schema, value, old, &FieldPath::root(), errors);
}

/// The same for a part of an object, such as its status: fields are named below `prefix`, while messages name them
/// from the part on, as the server's do.
pub fn check_values_at(
    schema: SchemaRef<'_>,
    value: &Value,
    old: Option<&Value>,
    prefix: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mut checker = Checker {
        prefix,
        errors,
        silent: 0,
        failures: 0,
    };
    checker.check(schema, value, &old.map_or(Old::None, Old::Root), &Path::ROOT);
}

/// The state of one validation.
pub(crate) struct Checker<'e> {
    prefix: &'e FieldPath,
    errors: &'e mut Vec<FieldError>,
    /// Above zero, errors are counted and not written: a branch of a connective is being tried.
    silent: u32,
    failures: usize,
}

impl Checker<'_> {
    /// Checks one value; returns how many checks were made, by which the server picks the branch of a connective
    /// that came closest.
    fn check(&mut self, schema: SchemaRef<'_>, value: &Value, old: &Old<'_, '_>, path: &Path<'_>) -> u32 {
        let (failures, written) = (self.failures, self.errors.len());
        let matched = self.check_node(schema, value, old, path);
        if self.failures > failures
            && old
                .value()
                .is_some_and(|old| deep_equal(Some(schema), value, old))
        {
            self.failures = failures;
            self.errors.truncate(written);
        }
        matched
    }

    fn check_node(
        &mut self,
        schema: SchemaRef<'_>,
        value: &Value,
        old: &Old<'_, '_>,
        path: &Path<'_>,
    ) -> u32 {
        if value.is_null() {
            let matched = self.check_type(schema, value, path);
            self.check_enumeration(schema, value, path);
            return matched;
        }
        // One for the value, one for each check that applies, and what the checks report themselves.
        let mut matched = 2;
        if !schema.node.types.is_empty() || schema.node.types_by_format {
            matched += 1 + self.check_type(schema, value, path);
        }
        matched += 2 + self.check_connectives(schema, value, path);
        match value {
            Value::String(text) => {
                matched += 1;
                self.check_string(schema, text, path);
                if let Some(format) = schema.node.known_format {
                    matched += 1;
                    self.check_format(schema, format, text, path);
                }
            }
            Value::Number(number) => {
                matched += 2;
                self.check_number(schema, Num::of(number), path);
            }
            Value::Array(items) => matched += 2 + self.check_items(schema, items, old, path),
            _ => {}
        }
        self.check_enumeration(schema, value, path);
        if let Value::Object(fields) = value {
            matched += 1 + self.check_fields(schema, fields, old, path);
        }
        matched
    }

    /// Returns 1 if the type is right, as the server counts.
    fn check_type(&mut self, schema: SchemaRef<'_>, value: &Value, path: &Path<'_>) -> u32 {
        let types = schema.node.types;
        let (found, found_format) = match value {
            Value::Null => {
                if types.is_empty() || schema.nullable() {
                    return 1;
                }
                self.type_error(path, &types.to_string(), "null");
                return 0;
            }
            Value::Bool(_) => (JsonType::Boolean, ""),
            Value::String(_) => (JsonType::String, ""),
            Value::Array(_) => (JsonType::Array, ""),
            Value::Object(_) => (JsonType::Object, ""),
            Value::Number(number) => match Num::of(number) {
                Num::Int(_) => (JsonType::Integer, "int64"),
                Num::Float(_) => (JsonType::Number, "float64"),
            },
        };
        let fits = types.has(found)
            || found == JsonType::Integer && types.has(JsonType::Number)
            || found == JsonType::Number
                && types.has(JsonType::Integer)
                && value.as_f64().is_some_and(numbers::is_whole);
        if fits {
            return 1;
        }
        let sequence = matches!(found, JsonType::String | JsonType::Array);
        if let Some(format) = schema.format().filter(|_| schema.node.types_by_format) {
            if !sequence && format != found_format {
                self.type_error(path, format, found_format);
                return 0;
            }
            // A format on what is no number lets lists pass, too.
            if sequence && !types.has(JsonType::Number) && !types.has(JsonType::Integer) {
                return 1;
            }
        }
        self.type_error(path, &types.to_string(), found.name());
        0
    }

    fn check_enumeration(&mut self, schema: SchemaRef<'_>, value: &Value, path: &Path<'_>) {
        let allowed = schema.enumeration();
        if allowed.is_empty()
            || allowed
                .iter()
                .any(|allowed| !value.is_null() && is_listed(allowed, value))
        {
            return;
        }
        self.fail(path, |field, _| {
            let listed: Vec<String> = allowed
                .iter()
                .map(|allowed| match allowed {
                    Value::String(text) => go::quote(text),
                    other => go::quote(&go::json(other)),
                })
                .collect();
            let detail = format!("supported values: {}", listed.join(", "));
            go::error(
                FieldErrorKind::NotSupported,
                field,
                Some(&go::show(value)),
                &detail,
            )
        });
    }

    fn check_string(&mut self, schema: SchemaRef<'_>, text: &str, path: &Path<'_>) {
        let Some(limits) = schema.limits() else { return };
        if limits.max_length.is_some() || limits.min_length.is_some() {
            let length = text.chars().count() as i64;
            if let Some(max) = limits.max_length.filter(|max| length > *max) {
                return self.fail(path, |field, _| {
                    let unit = if max == 1 { "byte" } else { "bytes" };
                    let detail = format!("may not be more than {max} {unit}");
                    go::error(FieldErrorKind::TooLong, field, None, &detail)
                });
            }
            if let Some(min) = limits.min_length.filter(|min| length < *min) {
                let value = go::quote(text);
                return self.bound(path, &value, &format!("should be at least {min} chars long"));
            }
        }
        if let Some(pattern) = &limits.pattern {
            match &pattern.compiled {
                Ok(compiled) if compiled.is_match(text) => {}
                Ok(_) => self.bound(
                    path,
                    &go::quote(text),
                    &format!("should match '{}'", pattern.source),
                ),
                Err(error) => {
                    let detail = format!(
                        "should match '{}, but pattern is invalid: {error}'",
                        pattern.source
                    );
                    self.bound(path, &go::quote(text), &detail);
                }
            }
        }
    }

    fn check_format(&mut self, schema: SchemaRef<'_>, format: Format, text: &str, path: &Path<'_>) {
        if !format.accepts(text) {
            let name = schema.format().unwrap_or(format.name()).to_owned();
            self.type_error(path, &name, text);
        }
    }

    fn check_items(
        &mut self,
        schema: SchemaRef<'_>,
        items: &[Value],
        old: &Old<'_, '_>,
        path: &Path<'_>,
    ) -> u32 {
        let mut matched = 0;
        if let Some(of_items) = schema.items() {
            let old = OldList::new(old, schema);
            for (index, item) in items.iter().enumerate() {
                let old = &old.item(item);
                matched += self.check(of_items, item, old, &path.index(index));
            }
        }
        let Some(limits) = schema.limits() else {
            return matched;
        };
        let count = items.len() as i64;
        if let Some(min) = limits.min_items.filter(|min| count < *min) {
            self.bound(
                path,
                &count.to_string(),
                &format!("should have at least {min} items"),
            );
        }
        if let Some(max) = limits.max_items.filter(|max| count > *max) {
            self.too_many(path, count, max);
        }
        if limits.unique_items && has_duplicates(items) {
            self.bound(path, "\"\"", "shouldn't contain duplicates");
        }
        matched
    }

    fn check_fields(
        &mut self,
        schema: SchemaRef<'_>,
        fields: &Map<String, Value>,
        old: &Old<'_, '_>,
        path: &Path<'_>,
    ) -> u32 {
        let mut matched = 0;
        if let Some(limits) = schema.limits() {
            let count = fields.len() as i64;
            if let Some(min) = limits.min_properties.filter(|min| count < *min) {
                self.bound(
                    path,
                    &count.to_string(),
                    &format!("should have at least {min} properties"),
                );
            }
            if let Some(max) = limits.max_properties.filter(|max| count > *max) {
                self.too_many(path, count, max);
            }
        }
        match schema.additional_properties() {
            Additional::Schema(additional) => {
                for (name, value) in fields {
                    if schema.property(name).is_none() {
                        let old = &old.field(name, path);
                        matched += self.check(additional, value, old, &path.key(name));
                    }
                }
            }
            Additional::Forbidden => {
                for name in fields.keys().filter(|name| schema.property(name).is_none()) {
                    self.fail(path, |field, text| {
                        let detail = format!("{text}.{name} in body is a forbidden property");
                        go::error(FieldErrorKind::Invalid, field, Some(&go::quote(name)), &detail)
                    });
                }
            }
            Additional::Any | Additional::Unspecified => {}
        }
        for (name, property) in schema.properties() {
            if let Some(value) = fields.get(name) {
                matched += self.check(property, value, &old.field(name, path), &path.field(name));
            }
        }
        for name in schema.required() {
            if !fields.contains_key(name) {
                self.fail(&path.field(name), |field, _| {
                    go::error(FieldErrorKind::Required, field, None, "")
                });
            }
        }
        matched
    }

    /// Records a failure. The closure makes the error from the path of the field and the path as messages show it.
    fn fail(&mut self, path: &Path<'_>, make: impl FnOnce(&FieldPath, &str) -> FieldError) {
        self.failures += 1;
        if self.silent > 0 || self.errors.len() >= MAX_ERRORS {
            return;
        }
        let text = path.dotted();
        let name = text.strip_prefix('.').unwrap_or(&text);
        let field = if name.is_empty() {
            self.prefix.clone()
        } else {
            self.prefix.child(name)
        };
        let error = make(&field, &text);
        // The same complaint may come from a schema and from a branch of it; once is enough.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn type_error(&mut self, path: &Path<'_>, wanted: &str, found: &str) {
        self.fail(path, |field, text| {
            let found = go::quote(found);
            let detail = format!("{text} in body must be of type {wanted}: {found}");
            go::error(FieldErrorKind::TypeInvalid, field, Some(&found), &detail)
        });
    }

    fn too_many(&mut self, path: &Path<'_>, count: i64, max: i64) {
        self.fail(path, |field, _| {
            let unit = if max == 1 { "item" } else { "items" };
            let detail = format!("must have at most {max} {unit}");
            go::error(FieldErrorKind::TooMany, field, Some(&count.to_string()), &detail)
        });
    }

    /// A value outside some bound: `<path> in body <detail>`.
    fn bound(&mut self, path: &Path<'_>, value: &str, detail: &str) {
        self.fail(path, |field, text| {
            go::error(
                FieldErrorKind::Invalid,
                field,
                Some(value),
                &format!("{text} in body {detail}"),
            )
        });
    }
}

/// Whether a value of an enumeration allows a value. The server converts to the listed type, and cuts doubles.
fn is_listed(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(allowed), Value::Number(value)) => match (Num::of(allowed), Num::of(value)) {
            (Num::Int(allowed), Num::Float(value)) => allowed == value as i64,
            (allowed, value) => allowed.as_f64() == value.as_f64(),
        },
        (allowed, value) => allowed == value,
    }
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    items.iter().any(|item| !seen.insert(item))
}

/// Whether elements of this list can be told apart by their keys.
pub(crate) fn is_map_list(schema: SchemaRef<'_>) -> bool {
    schema.list_type() == Some(ListType::Map) && !schema.list_map_keys().is_empty()
}
