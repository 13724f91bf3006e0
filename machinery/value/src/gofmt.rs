//! How Go prints values: some error texts that clients see carry a value as `%v` would show it, and numbers in
//! JSON are written as Go's encoder writes them.

use std::fmt::{self, Write};

use serde_json::{Map, Value};

/// A text in quotes, as Go's `%q` shows it.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if is_printable(c) => quoted.push(c),
            c => {
                // Writing to a String does not fail.
                let _ = match u32::from(c) {
                    code if code < 0x80 => write!(quoted, "\\x{code:02x}"),
                    code if code < 0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Letters, marks, numbers, punctuation, symbols and the space, as Go's `unicode.IsPrint` has it.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return character == ' ' || character.is_ascii_graphic();
    }
    // Behind another character Rust escapes what cannot be printed, and nothing else.
    let mut behind = [0; 5];
    behind[0] = b'a';
    let length = character.encode_utf8(&mut behind[1..]).len();
    std::str::from_utf8(&behind[..=length]).is_ok_and(|text| text.escape_debug().count() == 2)
}

/// A value as Go's `%v` shows it: `map[a:1 b:[x y] c:<nil>]`.
pub struct GoValue<'a>(pub &'a Value);

/// An object as Go's `%v` shows it.
pub(crate) struct GoMap<'a>(pub(crate) &'a Map<String, Value>);

/// A list as Go's `%v` shows it.
pub(crate) struct GoList<'a>(pub(crate) &'a [Value]);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::String(text) => f.write_str(text),
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => f.write_str(&float_text(float, -4, 2)),
                _ => write!(f, "{number}"),
            },
            Value::Array(items) => GoList(items).fmt(f),
            Value::Object(map) => GoMap(map).fmt(f),
        }
    }
}

impl fmt::Display for GoMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        f.write_str("map[")?;
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            write!(f, "{key}:{}", GoValue(value))?;
        }
        f.write_char(']')
    }
}

impl fmt::Display for GoList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, value) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            write!(f, "{}", GoValue(value))?;
        }
        f.write_char(']')
    }
}

/// The name of the Go type that a decoded value has.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A float as Go's JSON encoder writes it: `1` for 1.0, `1e+21`, `1e-7`.
pub(crate) fn json_float(value: f64) -> String {
    float_text(value, -6, 1)
}

/// The shortest text that reads back as `value`: with an exponent (of at least `exponent_digits` digits) below
/// `10^lowest` and from `10^21` on, otherwise plain.
fn float_text(value: f64, lowest: i32, exponent_digits: usize) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (exponent >= lowest && exponent < 21) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:0exponent_digits$}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_in_go() {
        let value = json!({"b": [1, "x", null], "a": {"z": true, "f": 1.5}, "e": 1e30, "s": 0.00001});
        assert_eq!(
            GoValue(&value).to_string(),
            "map[a:map[f:1.5 z:true] b:[1 x <nil>] e:1e+30 s:1e-05]"
        );
        assert_eq!(GoMap(&Map::new()).to_string(), "map[]");
    }

    #[test]
    fn floats_in_json_are_written_as_go_writes_them() {
        let cases = [
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-6, "0.0000015"),
            (1.5e-7, "1.5e-7"),
            (0.1, "0.1"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(json_float(value), text);
        }
    }

    #[test]
    fn texts_are_quoted_as_go_does() {
        let table = [
            ("plain é 世 😀 '", r#""plain é 世 😀 '""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{8}\t\n\u{b}\u{c}\r", r#""\a\b\t\n\v\f\r""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            (
                "\u{85}\u{a0}\u{ad}\u{200b}\u{2028}\u{e000}",
                r#""\u0085\u00a0\u00ad\u200b\u2028\ue000""#,
            ),
            ("\u{e0001}", r#""\U000e0001""#),
            ("e\u{301}", "\"e\u{301}\""),
        ];
        for (text, expected) in table {
            assert_eq!(quote(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_can_be_printed() {
        for printable in [
            'a', ' ', '"', '\'', '\\', 'é', '世', '\u{301}', '€', '\u{fffd}', '😀',
        ] {
            assert!(is_printable(printable), "{printable:?}");
        }
        for other in [
            '\0', '\n', '\u{7f}', '\u{a0}', '\u{ad}', '\u{200b}', '\u{2028}', '\u{e000}',
        ] {
            assert!(!is_printable(other), "{other:?}");
        }
    }
}
