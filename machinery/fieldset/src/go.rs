//! Values as the server's messages show them. Its apply decoder holds every number as a double.

use std::fmt::Write;

use machinery_value::{Number, Value};

pub(crate) use machinery_value::gofmt::quote;

/// A number as `%v` shows a double: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn number(number: &Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A value as `%v` shows it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let mut fields: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            fields.sort_unstable();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A value as `%#v` shows it.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut fields: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}:{}", quote(key), syntax(value)))
                .collect();
            fields.sort_unstable();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// The type that a decoded value has, as `%T` shows it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as JSON text with `<`, `>`, `&` and the line separators of Unicode escaped, object keys sorted.
pub(crate) fn json(value: &Value) -> String {
    let bytes = machinery_value::encode::to_vec(value);
    let text = String::from_utf8(bytes).unwrap_or_default();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // Outside of strings JSON has none of them, so that every one is inside a string.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_in_go() {
        let value = json!({"b": [1, "x", null], "a": {"t": true}, "n": 8080, "e": 1000000});
        assert_eq!(plain(&value), "map[a:map[t:true] b:[1 x <nil>] e:1e+06 n:8080]");
        assert_eq!(
            syntax(&value),
            r#"map[string]interface {}{"a":map[string]interface {}{"t":true}, "b":[]interface {}{1, "x", interface {}(nil)}, "e":1e+06, "n":8080}"#
        );
        assert_eq!(quote("a\"\n\u{1}é"), "\"a\\\"\\n\\x01é\"");
        assert_eq!(super::json(&json!({"k": "<&>"})), r#"{"k":"\u003c\u0026\u003e"}"#);
    }
}
