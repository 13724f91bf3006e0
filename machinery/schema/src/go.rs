//! Values as the server's messages print them.

use std::fmt::Write;

use machinery_value::encode;
use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Number, Value};

pub(crate) use machinery_value::gofmt::quote;

/// A number as the server holds it: a signed 64-bit integer if it is one, otherwise a double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(crate) fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => Self::Int(int),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }
}

/// A double as `%v` prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn float(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() {
            "-0".to_owned()
        } else {
            "0".to_owned()
        };
    }
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A value as a field error shows it: scalars plain, the rest as JSON.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(value) => float(value),
        },
        other => json(other),
    }
}

/// Compact JSON with the characters escaped that HTML would read, as the server's encoder does.
pub(crate) fn json(value: &Value) -> String {
    let text = String::from_utf8_lossy(&encode::to_vec(value)).into_owned();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// An error whose value is already text (`None` shows no value at all).
pub(crate) fn error(
    kind: FieldErrorKind,
    field: &FieldPath,
    value: Option<&str>,
    detail: &str,
) -> FieldError {
    let title = match kind {
        FieldErrorKind::Duplicate => "Duplicate value",
        FieldErrorKind::NotSupported => "Unsupported value",
        FieldErrorKind::TooMany => "Too many",
        FieldErrorKind::Required => "Required value",
        FieldErrorKind::Forbidden => "Forbidden",
        FieldErrorKind::TooLong => "Too long",
        FieldErrorKind::Internal => "Internal error",
        _ => "Invalid value",
    };
    let mut message = title.to_owned();
    for part in value
        .into_iter()
        .chain(Some(detail).filter(|detail| !detail.is_empty()))
    {
        message.push_str(": ");
        message.push_str(part);
    }
    FieldError {
        kind,
        field: field.to_string(),
        message,
    }
}

/// A malformed value.
pub(crate) fn invalid(field: &FieldPath, value: &Value, detail: &str) -> FieldError {
    error(FieldErrorKind::Invalid, field, Some(&show(value)), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_and_strings_print_as_on_the_server() {
        for (value, text) in [
            (3.0, "3"),
            (2.5, "2.5"),
            (1e21, "1e+21"),
            (0.00001, "1e-05"),
            (-0.5, "-0.5"),
            (1234567.0, "1.234567e+06"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(quote("a\"b\n\u{1}é"), r#""a\"b\n\x01é""#);
        assert_eq!(json(&serde_json::json!({"a": "<b>"})), r#"{"a":"\u003cb\u003e"}"#);
    }
}
