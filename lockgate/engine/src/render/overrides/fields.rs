//! Changes inside documents that are kept in strings, such as the files of a ConfigMap.
//!
//! They are no Kubernetes objects, in which every integer past an `i64` is a float and a float without a fraction is written
//! as an integer: here a number that nobody changes stays what it is.

use lockgate_api::overrides::{FieldOverrider, FieldPatch};
use machinery_value::decode::{DecodeError, from_json, from_yaml};
use machinery_value::encode::to_yaml;
use serde_json::Value;

use super::{Misfit, patch};

/// How many digits the integers have that are too large for an `i64` and not for a `u64`.
const DIGITS_OF_LARGE: std::ops::RangeInclusive<usize> = 19..=20;
/// What makes a text of an integer in YAML.
const MARK: char = 'x';

/// Reads the string at the path as JSON or YAML, changes it, and writes it back.
pub(super) fn apply(manifest: &mut Value, overrider: &FieldOverrider) -> Result<(), Misfit> {
    let path = &overrider.field_path;
    let misfit = |message: String| Misfit::new(path, message);
    let Some(field) = manifest.pointer_mut(path) else {
        return Err(misfit("there is nothing".to_owned()));
    };
    let Value::String(text) = field else {
        return Err(misfit("this is not a string".to_owned()));
    };
    let changed = match (overrider.json.is_empty(), overrider.yaml.is_empty()) {
        (true, true) => return Ok(()),
        (false, false) => return Err(misfit("is it json or yaml? The rule says both".to_owned())),
        (false, true) => {
            let mut document = read_json(text).map_err(|error| misfit(error.to_string()))?;
            change(&mut document, path, &overrider.json)?;
            document.to_string()
        }
        (true, false) => {
            let mut document = read_yaml(text).map_err(|error| misfit(error.to_string()))?;
            change(&mut document, path, &overrider.yaml)?;
            to_yaml(&document)
        }
    };
    *text = changed;
    Ok(())
}

fn change(document: &mut Value, path: &str, patches: &[FieldPatch]) -> Result<(), Misfit> {
    let operations = patches.iter().map(|patch| {
        (
            patch.sub_path.as_str(),
            patch.operator.as_str(),
            patch.value.as_ref(),
        )
    });
    patch(document, operations)
        .map_err(|inner| Misfit::new(format!("{path} at {}", inner.path), inner.message))
}

/// What is refused is what is refused of an object, in the same words; what is read keeps its numbers.
fn read_json(text: &str) -> Result<Value, DecodeError> {
    let document = from_json(text.as_bytes())?.value;
    if !has_large(&document) || has_meaning(&document) {
        return Ok(document);
    }
    Ok(serde_json::from_str(text).unwrap_or(document))
}

/// Whether a key means something else to the second reader than what it says.
fn has_meaning(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_meaning),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.starts_with("$serde_json::private::") || has_meaning(value)),
        _ => false,
    }
}

/// As an object is read. Where there are integers that it makes floats of, the text is read once more with these made texts, which
/// say what they were.
fn read_yaml(text: &str) -> Result<Value, DecodeError> {
    if text.trim_ascii_start().starts_with('{') {
        return read_json(text);
    }
    let mut document = from_yaml(text.as_bytes())?.value;
    if has_large(&document)
        && let Ok(marked) = from_yaml(mark_large(text).as_bytes())
    {
        restore(&mut document, &marked.value);
    }
    Ok(document)
}

fn has_large(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_large),
        Value::Object(map) => map.values().any(has_large),
        _ => is_large(value),
    }
}

/// Whether this float may have been an integer.
fn is_large(value: &Value) -> bool {
    value.is_f64() && value.as_f64().is_some_and(|float| float >= i64::MAX as f64)
}

/// The text with a mark before everything that may be a large integer.
fn mark_large(text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, digits) = rest.split_at(start);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(end);
        marked.push_str(before);
        if DIGITS_OF_LARGE.contains(&digits.len()) {
            marked.push(MARK);
        }
        marked.push_str(digits);
        rest = after;
    }
    marked.push_str(rest);
    marked
}

/// Puts integers in the place of floats that are marked as integers in the other reading. Whatever was a text stays as it is.
fn restore(document: &mut Value, marked: &Value) {
    match (document, marked) {
        (Value::Object(map), Value::Object(other)) => {
            for (key, value) in map {
                // There it has marks too, and another key may be called what this one is called here.
                if let Some(marked) = other.get(&mark_large(key)).or_else(|| other.get(key)) {
                    restore(value, marked);
                }
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            for (item, marked) in items.iter_mut().zip(others) {
                restore(item, marked);
            }
        }
        (number, Value::String(text)) if is_large(number) => {
            let integer = text
                .strip_prefix(MARK)
                .and_then(|digits| digits.parse::<u64>().ok());
            if let Some(integer) = integer {
                *number = Value::from(integer);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(text: &str, format: &str) -> String {
        let mut manifest = json!({"data": {"file": text}});
        let patches = json!([{"subPath": "/a", "operator": "replace", "value": 2}]);
        let overrider = json!({"fieldPath": "/data/file", format: patches});
        apply(&mut manifest, &serde_json::from_value(overrider).unwrap())
            .map_err(|misfit| misfit.message)
            .unwrap();
        manifest["data"]["file"].as_str().unwrap().to_owned()
    }

    #[test]
    fn numbers_that_nobody_changes_stay() {
        let text = r#"{"a":1,"id":9223372036854775808,"low":-9223372036854775808,"u":18446744073709551615,"v":1.0,"w":2.50}"#;
        let expected = r#"{"a":2,"id":9223372036854775808,"low":-9223372036854775808,"u":18446744073709551615,"v":1.0,"w":2.5}"#;
        assert_eq!(changed(text, "json"), expected);
        let in_yaml = "a: 2\nid: 9223372036854775808\nlow: -9223372036854775808\nu: 18446744073709551615\nv: 1.0\nw: 2.5\n";
        // What starts with a brace is JSON.
        assert_eq!(changed(text, "yaml"), in_yaml);
        let text = "a: 1\nid: 9223372036854775808\nlow: -9223372036854775808\nu: 18446744073709551615\nv: 1.0\nw: 2.50\n";
        assert_eq!(changed(text, "yaml"), in_yaml);
    }

    #[test]
    fn a_key_is_a_key() {
        for text in [
            r#"{"a":1,"b":{"$serde_json::private::RawValue":"[7]"}}"#,
            r#"{"a":1,"b":{"\u0024serde_json::private::RawValue":"[7]"},"id":18446744073709551615}"#,
        ] {
            let after: Value = from_json(changed(text, "json").as_bytes()).unwrap().value;
            assert_eq!(after["b"]["$serde_json::private::RawValue"], "[7]", "{text}");
        }
    }

    #[test]
    fn what_starts_with_a_brace_is_one_thing_to_both_readers() {
        let read = |text: &str| {
            (
                read_yaml(text),
                from_yaml(text.as_bytes()).map(|decoded| decoded.value),
            )
        };
        for text in [" \n{\"a\": 1}", "\u{a0}{a: 1}", "\u{2003}{\"a\": 1}"] {
            let (own, theirs) = read(text);
            assert_eq!(own, theirs, "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_large_integer_stays() {
        let text = "\
a: 1
18446744073709551615: [18446744073709551615, {b: 10000000000000000000}]
fraction: 18446744073709551615.5
longer: 184467440737095516150
mixed: x18446744073709551615
quoted: \"18446744073709551615\"
text: |
  it is 18446744073709551615
  18446744073709551615: 1
";
        let expected = "\
\"18446744073709551615\":
- 18446744073709551615
- b: 10000000000000000000
a: 2
fraction: 1.8446744073709552e+19
longer: 1.844674407370955e+20
mixed: x18446744073709551615
quoted: \"18446744073709551615\"
text: |
  it is 18446744073709551615
  18446744073709551615: 1
";
        assert_eq!(changed(text, "yaml"), expected);
    }
}
