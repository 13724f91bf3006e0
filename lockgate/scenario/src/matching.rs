//! Whether what is there is what was wanted.
//!
//! | wanted | fits |
//! |---|---|
//! | a map | a map that has at least these entries |
//! | a list | a list of as many items, each of which fits |
//! | `null` | nothing: the field is absent |
//! | `"*"` | anything but nothing |
//! | `"abc*"`, `"*abc"`, `"*abc*"` | a text that begins with, ends with or contains `abc` |
//! | `"$name"`, `"!$name"` | the value that `remember` kept under that name; any other value |
//! | anything else | the same value |

use std::collections::BTreeMap;

use serde_json::Value;

/// Values that a scenario remembers.
pub(crate) type Memory = BTreeMap<String, Value>;

/// Whether `found` fits; a mistake in `wanted` (a name that nothing was kept under) is an error.
pub(crate) fn fits(wanted: &Value, found: Option<&Value>, memory: &Memory) -> Result<bool, String> {
    let found = found.filter(|found| !found.is_null());
    Ok(match (wanted, found) {
        (Value::Null, found) => found.is_none(),
        (_, None) => match negated(wanted) {
            Some(name) => {
                recall(name, memory)?;
                true
            }
            None => false,
        },
        (Value::Object(wanted), Some(found)) => {
            let Some(found) = found.as_object() else {
                return Ok(false);
            };
            for (key, wanted) in wanted {
                if !fits(wanted, found.get(key), memory)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Array(wanted), Some(Value::Array(found))) => {
            if wanted.len() != found.len() {
                return Ok(false);
            }
            for (wanted, found) in wanted.iter().zip(found) {
                if !fits(wanted, Some(found), memory)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::String(pattern), Some(found)) => return text_fits(pattern, found, memory),
        (wanted, Some(found)) => same(wanted, found),
    })
}

fn negated(wanted: &Value) -> Option<&str> {
    wanted.as_str()?.strip_prefix("!$")
}

fn recall<'a>(name: &str, memory: &'a Memory) -> Result<&'a Value, String> {
    memory
        .get(name)
        .ok_or_else(|| format!("nothing was remembered as {name:?}"))
}

fn text_fits(pattern: &str, found: &Value, memory: &Memory) -> Result<bool, String> {
    if let Some(name) = pattern.strip_prefix("!$") {
        return Ok(recall(name, memory)? != found);
    }
    if let Some(name) = pattern.strip_prefix('$') {
        return Ok(recall(name, memory)? == found);
    }
    if pattern == "*" {
        return Ok(true);
    }
    let Some(found) = found.as_str() else {
        return Ok(false);
    };
    Ok(glob(pattern, found))
}

/// Whether a text fits a pattern that may begin and end with a star.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (head, pattern) = match pattern.strip_prefix('*') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (tail, pattern) = match pattern.strip_suffix('*') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    match (head, tail) {
        (true, true) => text.contains(pattern),
        (true, false) => text.ends_with(pattern),
        (false, true) => text.starts_with(pattern),
        (false, false) => text == pattern,
    }
}

fn same(wanted: &Value, found: &Value) -> bool {
    match (wanted.as_f64(), found.as_f64()) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_and_what_does_not() {
        let memory = Memory::from([("uid".to_owned(), json!("u1"))]);
        for (wanted, found, expected) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1, "c": null}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1, "b": null}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2]), json!([1, 2]), true),
            (json!([1]), json!([1, 2]), false),
            (json!([{"name": "a"}]), json!([{"name": "a", "x": 1}]), true),
            (json!("*"), json!(7), true),
            (json!("*"), Value::Null, false),
            (json!("*lo w*"), json!("hello world"), true),
            (json!("hel*"), json!("hello"), true),
            (json!("*llo"), json!("hello"), true),
            (json!("hello"), json!("hello world"), false),
            (json!("$uid"), json!("u1"), true),
            (json!("$uid"), json!("u2"), false),
            (json!("!$uid"), json!("u2"), true),
            (json!("!$uid"), json!("u1"), false),
            (json!("2"), json!(2), false),
            (json!(2), json!(2.0), true),
            (json!({}), json!("x"), false),
        ] {
            assert_eq!(
                fits(&wanted, Some(&found), &memory),
                Ok(expected),
                "{wanted} {found}"
            );
        }
        assert!(fits(&json!("$other"), Some(&json!(1)), &memory).is_err());
        assert!(fits(&json!(null), None, &memory).unwrap());
    }
}
