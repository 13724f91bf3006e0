//! Paths into an object, and what can be wrong there.
//!
//! The words are those of the Kubernetes API: clients print them, and some parse them. An [`FieldError`] becomes
//! one cause of a `Status`.

use std::fmt;

use serde_json::Value;

/// A path to a field, such as `spec.template.spec.containers[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path that starts at the field `name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The field `name` below this path.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self::new(name)
        } else {
            Self(format!("{}.{name}", self.0))
        }
    }

    /// The element `index` of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The entry `key` of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

impl From<&str> for FieldPath {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

/// The kinds of field errors, each with its machine-readable reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A required value is missing.
    Required,
    /// A value appears twice where it must be unique.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value outside a fixed set.
    NotSupported,
    /// A value that may not be there under the circumstances.
    Forbidden,
    /// A string that is too long.
    TooLong,
    /// A list with too many elements.
    TooMany,
    /// A list with too few elements.
    TooFew,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A reference to something that does not exist.
    NotFound,
    /// The server's own failure.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of a Status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// Something that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What sort of error.
    pub kind: FieldErrorKind,
    /// Where, as text (`spec.replicas`; `<nil>` for the object itself).
    pub field: String,
    /// What is wrong, without the path: `Invalid value: -1: must be greater than or equal to 0`.
    pub message: String,
}

impl FieldError {
    fn make(kind: FieldErrorKind, field: &FieldPath, value: Option<String>, detail: &str) -> Self {
        let mut message = kind.title().to_owned();
        if let Some(value) = value {
            message.push_str(": ");
            message.push_str(&value);
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        Self {
            kind,
            field: field.to_string(),
            message,
        }
    }

    /// A malformed value; `value` is shown as Go's `%#v` would show it.
    pub fn invalid(field: &FieldPath, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::make(FieldErrorKind::Invalid, field, Some(show(value)), detail.as_ref())
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(field: &FieldPath, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::make(
            FieldErrorKind::TypeInvalid,
            field,
            Some(show(value)),
            detail.as_ref(),
        )
    }

    /// A missing value.
    pub fn required(field: &FieldPath, detail: impl AsRef<str>) -> Self {
        Self::make(FieldErrorKind::Required, field, None, detail.as_ref())
    }

    /// A value that may not be there.
    pub fn forbidden(field: &FieldPath, detail: impl AsRef<str>) -> Self {
        Self::make(FieldErrorKind::Forbidden, field, None, detail.as_ref())
    }

    /// A value that appears twice.
    pub fn duplicate(field: &FieldPath, value: &Value) -> Self {
        Self::make(FieldErrorKind::Duplicate, field, Some(show(value)), "")
    }

    /// A value outside `supported`, which are listed in the given order.
    pub fn not_supported(field: &FieldPath, value: &Value, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = if listed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", listed.join(", "))
        };
        Self::make(FieldErrorKind::NotSupported, field, Some(show(value)), &detail)
    }

    /// A string longer than `max` bytes.
    pub fn too_long(field: &FieldPath, max: usize) -> Self {
        Self::make(
            FieldErrorKind::TooLong,
            field,
            None,
            &format!("may not be more than {max} bytes"),
        )
    }

    /// A list with more than `max` elements.
    pub fn too_many(field: &FieldPath, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} items");
        Self::make(FieldErrorKind::TooMany, field, Some(actual.to_string()), &detail)
    }

    /// A list with fewer than `min` elements.
    pub fn too_few(field: &FieldPath, actual: usize, min: usize) -> Self {
        let detail = format!("must have at least {min} items");
        Self::make(FieldErrorKind::TooFew, field, Some(actual.to_string()), &detail)
    }

    /// A reference to something that does not exist.
    pub fn not_found(field: &FieldPath, value: &Value) -> Self {
        Self::make(FieldErrorKind::NotFound, field, Some(show(value)), "")
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Several errors as one text: alone as it is, otherwise in brackets, as Kubernetes aggregates them.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut shown: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    if shown.len() == 1 {
        shown.remove(0)
    } else {
        format!("[{}]", shown.join(", "))
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => crate::gofmt::quote(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_read_as_kubernetes_words_them() {
        let path = FieldPath::new("spec").child("ports").index(0).child("port");
        let error = FieldError::invalid(&path, &json!(0), "must be between 1 and 65535, inclusive");
        assert_eq!(
            error.to_string(),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"
        );
        let error = FieldError::not_supported(&path, &json!("x"), &["TCP", "UDP"]);
        assert_eq!(
            error.message,
            r#"Unsupported value: "x": supported values: "TCP", "UDP""#
        );
        assert_eq!(
            FieldError::required(&FieldPath::root(), "").to_string(),
            "<nil>: Required value"
        );
    }

    #[test]
    fn several_errors_are_bracketed_and_repeats_said_once() {
        let one = FieldError::required(&FieldPath::new("a"), "");
        let two = FieldError::required(&FieldPath::new("b"), "");
        assert_eq!(aggregate(std::slice::from_ref(&one)), "a: Required value");
        assert_eq!(
            aggregate(&[one.clone(), two, one]),
            "[a: Required value, b: Required value]"
        );
    }
}
