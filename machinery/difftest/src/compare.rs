//! Field-by-field comparison of two values.

use std::fmt;

use serde_json::Value;

use crate::script::Keep;

/// One place in which two answers differ. `None` means that the field is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where: `.metadata.labels.a`, `[2].name`, or `status`, `content type`, `warnings`, or the name of a header.
    pub path: String,
    /// What the left server says.
    pub left: Option<Value>,
    /// What the right server says.
    pub right: Option<Value>,
}

/// Every difference between two values, in the order of their fields.
pub fn differences(left: &Value, right: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    descend(left, right, String::new(), &mut found);
    found
}

fn descend(left: &Value, right: &Value, path: String, found: &mut Vec<Difference>) {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let path = format!("{path}.{key}");
                match b.get(key) {
                    Some(other) => descend(value, other, path, found),
                    None => found.push(Difference {
                        path,
                        left: Some(value.clone()),
                        right: None,
                    }),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                found.push(Difference {
                    path: format!("{path}.{key}"),
                    left: None,
                    right: Some(value.clone()),
                });
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for index in 0..a.len().max(b.len()) {
                let path = format!("{path}[{index}]");
                match (a.get(index), b.get(index)) {
                    (Some(x), Some(y)) => descend(x, y, path, found),
                    (x, y) => found.push(Difference {
                        path,
                        left: x.cloned(),
                        right: y.cloned(),
                    }),
                }
            }
        }
        _ if left == right => {}
        _ => found.push(Difference {
            path,
            left: Some(left.clone()),
            right: Some(right.clone()),
        }),
    }
}

/// Stands at the end of a list, and as a key of an object, that goes on after the end of a recording.
pub(crate) const CUT: &str = "…";

/// Takes out of `seen` what `recorded` does not tell because it was cut short, and the marks of that out of `recorded`.
pub(crate) fn cut_alike(recorded: &mut Value, seen: &mut Value) {
    match (recorded, seen) {
        (Value::Object(recorded), Value::Object(seen)) => {
            if recorded.remove(CUT).is_some() {
                seen.retain(|key, _| recorded.contains_key(key));
            }
            for (key, value) in recorded {
                if let Some(seen) = seen.get_mut(key) {
                    cut_alike(value, seen);
                }
            }
        }
        (Value::Array(recorded), Value::Array(seen)) => {
            if recorded.pop_if(|last| *last == CUT).is_some() {
                seen.truncate(recorded.len());
            }
            for (value, seen) in recorded.iter_mut().zip(seen) {
                cut_alike(value, seen);
            }
        }
        _ => {}
    }
}

/// Removes what a step does not compare.
pub(crate) fn forget(value: &mut Value, pointer: &str) {
    let parts: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
    each_parent(value, &parts, &mut |parent, last| match parent {
        Value::Object(map) if last == "*" => map.clear(),
        Value::Object(map) => {
            map.remove(last);
        }
        Value::Array(items) if last == "*" => items.clear(),
        Value::Array(items) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    });
}

/// Removes a key wherever it stands.
pub(crate) fn forget_everywhere(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            map.remove(key);
            map.values_mut().for_each(|value| forget_everywhere(value, key));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| forget_everywhere(value, key)),
        _ => {}
    }
}

/// Sorts a list whose order has no meaning.
pub(crate) fn sort(value: &mut Value, pointer: &str) {
    let parts: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
    each_parent(value, &parts, &mut |parent, last| {
        let child = match parent {
            Value::Object(map) => map.get_mut(last),
            Value::Array(items) => last.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        if let Some(Value::Array(items)) = child {
            items.sort_by_cached_key(Value::to_string);
        }
    });
}

/// Restricts a list to the entries that a step compares, and tells whether any is left.
pub(crate) fn restrict(value: &mut Value, keep: &Keep) -> bool {
    let Some(Value::Array(items)) = value.pointer_mut(&keep.list) else {
        return false;
    };
    items.retain(|item| {
        let name = item.pointer(&keep.by).and_then(Value::as_str).unwrap_or_default();
        keep.values.iter().any(|value| value == name)
    });
    !items.is_empty()
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

fn each_parent(value: &mut Value, parts: &[String], act: &mut dyn FnMut(&mut Value, &str)) {
    match parts {
        [] => {}
        [last] => act(value, last),
        [first, rest @ ..] => match value {
            Value::Object(map) if first == "*" => map.values_mut().for_each(|v| each_parent(v, rest, act)),
            Value::Array(items) if first == "*" => items.iter_mut().for_each(|v| each_parent(v, rest, act)),
            Value::Object(map) => {
                if let Some(child) = map.get_mut(first) {
                    each_parent(child, rest, act);
                }
            }
            Value::Array(items) => {
                if let Some(child) = first.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                    each_parent(child, rest, act);
                }
            }
            _ => {}
        },
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "(the whole body)"
        } else {
            &self.path
        };
        let [left, right] = [&self.left, &self.right].map(|side| match side {
            None => "(absent)".to_owned(),
            Some(value) => value.to_string(),
        });
        let same = left
            .chars()
            .zip(right.chars())
            .take_while(|(a, b)| a == b)
            .count();
        write!(
            f,
            "{path}: {} | {}",
            shortened(&left, same),
            shortened(&right, same)
        )
    }
}

/// A long text around the place where it begins to differ.
fn shortened(text: &str, same: usize) -> String {
    const BEFORE: usize = 60;
    const WIDEST: usize = 400;
    let skipped = same.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(skipped).take(WIDEST).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if text.chars().count() > skipped + WIDEST {
        "…"
    } else {
        ""
    };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_difference_has_its_path() {
        let left = json!({"a": 1, "b": [1, {"c": "x"}], "d": null, "same": {"deep": [1]}});
        let right = json!({"a": 1.0, "b": [1, {"c": "y"}, 3], "e": 0, "same": {"deep": [1]}});
        let shown: Vec<String> = differences(&left, &right)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                ".a: 1 | 1.0",
                ".b[1].c: \"x\" | \"y\"",
                ".b[2]: (absent) | 3",
                ".d: null | (absent)",
                ".e: (absent) | 0"
            ]
        );
        assert_eq!(differences(&left, &left), []);
        assert_eq!(
            differences(&json!("a"), &json!(["a"]))[0].to_string(),
            "(the whole body): \"a\" | [\"a\"]"
        );
    }

    #[test]
    fn long_texts_are_shown_where_they_differ() {
        let text = |end: &str| json!(format!("{}{end}", "x".repeat(1000)));
        let shown = differences(&text("left"), &text("right"))[0].to_string();
        assert!(shown.len() < 300, "{shown}");
        assert!(shown.contains("xleft\"") && shown.contains("xright\""), "{shown}");
    }

    #[test]
    fn a_recording_that_was_cut_is_compared_as_far_as_it_goes() {
        let check = |mut recorded: Value, mut seen: Value, expected: &[&str]| {
            cut_alike(&mut recorded, &mut seen);
            let found: Vec<String> = differences(&recorded, &seen)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, expected);
        };
        let recorded = json!({"a": 1, "l": [{"x": 1}, {"y": {"…": "…"}, "…": "…"}, "…"], "…": "…"});
        check(
            recorded.clone(),
            json!({"a": 1, "l": [{"x": 1}, {"y": {"z": 1}, "v": 2}, 3], "b": 4}),
            &[],
        );
        check(
            recorded,
            json!({"l": [{"x": 1, "w": 0}, {"v": 2}]}),
            &[
                ".a: 1 | (absent)",
                ".l[0].w: (absent) | 0",
                ".l[1].y: {\"…\":\"…\"} | (absent)",
            ],
        );
    }

    #[test]
    fn what_a_step_does_not_compare() {
        let mut value = json!({"a": [{"x": 1, "y": 2}, {"x": 3}], "b/c": 1});
        forget(&mut value, "/a/*/x");
        forget(&mut value, "/b~1c");
        forget(&mut value, "/not/there");
        assert_eq!(value, json!({"a": [{"y": 2}, {}]}));

        let mut value = json!({"causes": ["b", "a"], "l": [{"n": "x"}, {"n": "y"}]});
        sort(&mut value, "/causes");
        restrict(
            &mut value,
            &Keep {
                list: "/l".into(),
                by: "/n".into(),
                values: vec!["y".into()],
                why: "others".into(),
            },
        );
        assert_eq!(value, json!({"causes": ["a", "b"], "l": [{"n": "y"}]}));
    }
}
