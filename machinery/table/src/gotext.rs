//! Values as text, in the form that printer columns of type `string` have always had.
//!
//! Scalars print bare. Lists and maps print as JSON with ordered keys and with `<`, `>` and `&` escaped.

use std::fmt::Write as _;

use machinery_value::{Number, Value};

/// The text of a value in a column of type `string`.
pub(crate) fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number_text(number, |exponent| !(-4..6).contains(&exponent), 2),
        Value::Array(_) | Value::Object(_) => {
            let mut text = String::new();
            write_json(value, &mut text);
            text
        }
    }
}

/// A number: whole ones as they are, others in their shortest form, with an exponent where `scientific` says so
/// (and then with at least so many digits in it).
fn number_text(number: &Number, scientific: impl Fn(i32) -> bool, exponent_digits: usize) -> String {
    let Some(float) = number.as_f64().filter(|_| !number.is_i64() && !number.is_u64()) else {
        return number.to_string();
    };
    // The shortest digits that read back as the same number, as `d.ddde±x`.
    let shortest = format!("{float:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return shortest;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if scientific(exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!(
            "{digits}e{sign}{:0width$}",
            exponent.abs(),
            width = exponent_digits
        )
    } else {
        format!("{float}")
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            out.push_str(&number_text(number, |exponent| !(-6..21).contains(&exponent), 1))
        }
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut ordered: Vec<_> = fields.iter().collect();
            ordered.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in ordered.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_text() {
        let cases = [
            (json!("a b"), "a b"),
            (json!(""), ""),
            (json!(true), "true"),
            (json!(7), "7"),
            (json!(1_000_000), "1000000"),
            (json!(1.5), "1.5"),
            (json!(-0.25), "-0.25"),
            (json!(100_000.0), "100000"),
            (json!(1e6), "1e+06"),
            (json!(1_234_567.5), "1.2345675e+06"),
            (json!(1e21), "1e+21"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(null), "<no value>"),
            (json!(["a", 1, null]), r#"["a",1,null]"#),
            (
                json!([1e6, 1e21, 1e-7, 0.000_001]),
                "[1000000,1e+21,1e-7,0.000001]",
            ),
            (
                json!({"b": "<a&\u{2028}\u{1}\"\\/é\u{8}\u{c}", "a": {}}),
                "{\"a\":{},\"b\":\"\\u003ca\\u0026\\u2028\\u0001\\\"\\\\/é\\b\\f\"}",
            ),
        ];
        for (value, want) in cases {
            assert_eq!(cell_text(&value), want, "{value}");
        }
    }
}
