//! Collects what is wrong with an object.

use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::rules;
use crate::access::{is_empty, same, text};

/// What a field of a fixed value says when it changes.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// The errors found so far, in the order in which the server reports them.
#[derive(Default)]
pub(super) struct Report {
    errors: Vec<FieldError>,
}

impl Report {
    /// The errors.
    pub(super) fn finish(self) -> Vec<FieldError> {
        self.errors
    }

    /// How many errors there are.
    pub(super) fn len(&self) -> usize {
        self.errors.len()
    }

    /// Takes over the errors of another report.
    pub(super) fn extend(&mut self, other: Report) {
        self.errors.extend(other.errors);
    }

    pub(super) fn invalid(&mut self, path: &FieldPath, value: &Value, detail: impl AsRef<str>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// An invalid value in the words of `shown`; for values whose text is not their JSON.
    pub(super) fn invalid_shown(&mut self, path: &FieldPath, shown: &str, detail: &str) {
        let detail = if detail.is_empty() {
            String::new()
        } else {
            format!(": {detail}")
        };
        let message = format!("Invalid value: {shown}{detail}");
        self.errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.to_string(),
            message,
        });
    }

    pub(super) fn required(&mut self, path: &FieldPath, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    pub(super) fn forbidden(&mut self, path: &FieldPath, detail: impl AsRef<str>) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    /// What is forbidden about an object as a whole; the server's empty path reads `[]`.
    pub(super) fn forbidden_nowhere(&mut self, detail: &str) {
        let mut error = FieldError::forbidden(&FieldPath::root(), detail);
        error.field = "[]".to_owned();
        self.errors.push(error);
    }

    pub(super) fn duplicate(&mut self, path: &FieldPath, value: &Value) {
        self.errors.push(FieldError::duplicate(path, value));
    }

    /// A repeated value in the words of `shown`.
    pub(super) fn duplicate_shown(&mut self, path: &FieldPath, shown: &str) {
        let message = format!("Duplicate value: {shown}");
        self.errors.push(FieldError {
            kind: FieldErrorKind::Duplicate,
            field: path.to_string(),
            message,
        });
    }

    pub(super) fn not_found(&mut self, path: &FieldPath, value: &Value) {
        self.errors.push(FieldError::not_found(path, value));
    }

    pub(super) fn not_supported(&mut self, path: &FieldPath, value: &Value, supported: &[&str]) {
        self.errors
            .push(FieldError::not_supported(path, value, supported));
    }

    /// An unsupported value in the words of `shown`.
    pub(super) fn not_supported_shown(&mut self, path: &FieldPath, shown: &str, supported: &[&str]) {
        let mut error = FieldError::not_supported(path, &Value::Null, supported);
        error.message = error.message.replacen("null", shown, 1);
        self.errors.push(error);
    }

    pub(super) fn too_long(&mut self, path: &FieldPath, max: usize) {
        self.errors.push(FieldError::too_long(path, max));
    }

    /// A whole object that is too long; the server's empty path reads `[]`.
    pub(super) fn too_long_nowhere(&mut self, max: usize) {
        let mut error = FieldError::too_long(&FieldPath::root(), max);
        error.field = "[]".to_owned();
        self.errors.push(error);
    }

    pub(super) fn too_many(&mut self, path: &FieldPath, actual: usize, max: usize) {
        self.errors.push(FieldError::too_many(path, actual, max));
    }

    /// One error for each message about `value`.
    pub(super) fn messages(&mut self, path: &FieldPath, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(path, &value.into(), message);
        }
    }

    /// A number, if there, is not below zero.
    pub(super) fn nonnegative(&mut self, path: &FieldPath, value: &Value) {
        if value.as_i64().is_some_and(|number| number < 0) {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    /// A value does not change; absent and empty are the same.
    pub(super) fn immutable(&mut self, path: &FieldPath, new: &Value, old: &Value) {
        if !same(new, old) {
            self.invalid(path, new, IMMUTABLE);
        }
    }

    /// A text does not change; it reads "" when absent.
    pub(super) fn immutable_text(&mut self, path: &FieldPath, new: &Value, old: &Value) {
        if text(new) != text(old) {
            self.invalid(path, &text(new).into(), IMMUTABLE);
        }
    }

    /// A text is one of `allowed`; it must be there.
    pub(super) fn choice(&mut self, path: &FieldPath, value: &Value, allowed: &[&str]) {
        if is_empty(value) {
            self.required(path, "");
        } else {
            self.optional_choice(path, value, allowed);
        }
    }

    /// A text, if there, is one of `allowed`.
    pub(super) fn optional_choice(&mut self, path: &FieldPath, value: &Value, allowed: &[&str]) {
        if !value.is_null() && !allowed.contains(&text(value)) {
            self.not_supported(path, value, allowed);
        }
    }

    /// A required name of one DNS label.
    pub(super) fn required_label(&mut self, path: &FieldPath, value: &Value) {
        if text(value).is_empty() {
            self.required(path, "");
        } else {
            self.dns_label(path, value);
        }
    }

    /// A DNS label.
    pub(super) fn dns_label(&mut self, path: &FieldPath, value: &Value) {
        self.messages(path, text(value), rules::dns_label(text(value)));
    }

    /// A DNS subdomain.
    pub(super) fn dns_subdomain(&mut self, path: &FieldPath, value: &Value) {
        self.messages(path, text(value), rules::dns_subdomain(text(value)));
    }

    /// A DNS subdomain, if there.
    pub(super) fn optional_subdomain(&mut self, path: &FieldPath, value: &Value) {
        if !text(value).is_empty() {
            self.dns_subdomain(path, value);
        }
    }

    /// A name with an optional domain, such as `example.com/name`.
    pub(super) fn qualified_name(&mut self, path: &FieldPath, value: &str) {
        self.messages(path, value, rules::qualified_name(value));
    }

    /// Such a name, which must be there.
    pub(super) fn required_qualified_name(&mut self, path: &FieldPath, value: &Value) {
        if text(value).is_empty() {
            self.required(path, "");
        } else {
            self.qualified_name(path, text(value));
        }
    }

    /// A port number.
    pub(super) fn port(&mut self, path: &FieldPath, value: &Value) {
        let number = value.as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            self.invalid(path, &number.into(), "must be between 1 and 65535, inclusive");
        }
    }

    /// A port by number or by name.
    pub(super) fn port_or_name(&mut self, path: &FieldPath, value: &Value) {
        match value.as_str() {
            Some(name) => self.messages(path, name, rules::port_name(name)),
            None => self.port(path, value),
        }
    }

    /// A map of labels.
    pub(super) fn labels(&mut self, path: &FieldPath, labels: &Value) {
        for (key, value) in crate::access::entries(labels) {
            self.qualified_name(path, key);
            self.messages(path, text(value), rules::label_value(text(value)));
        }
    }
}
