//! JSON merge patches (RFC 7396) as the Kubernetes API applies them.
//!
//! One thing differs from the RFC, as it does in the real server: where a whole list is put in place, the nulls
//! in the objects inside it are dropped, so that a null never survives as the value of a field.

use serde_json::{Map, Value};

/// Applies `patch` to `target`: objects are merged, null deletes, anything else replaces.
pub fn apply(target: &mut Value, patch: &Value) {
    match (&mut *target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge(target, patch),
        (_, patch) => *target = without_nulls(patch),
    }
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        if change.is_null() {
            target.remove(key);
        } else if let Some(current) = target.get_mut(key) {
            apply(current, change);
        } else {
            target.insert(key.clone(), without_nulls(change));
        }
    }
}

/// The value without the null fields of its objects; nulls in lists stay, because places in a list count.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::decode::tests::any_value;

    #[test]
    fn patches_apply_as_in_the_rfc() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
            // Of the real server, not of the RFC.
            (
                json!({}),
                json!({"a": [{"b": null, "c": 1}, null]}),
                json!({"a": [{"c": 1}, null]}),
            ),
        ];
        for (original, patch, expected) in cases {
            let mut target = original.clone();
            apply(&mut target, &patch);
            assert_eq!(target, expected, "{original} with {patch}");
        }
    }

    /// The patch that turns `from` into `to`, where `to` has no null fields.
    fn diff(from: &Value, to: &Value) -> Value {
        let (Value::Object(from), Value::Object(to)) = (from, to) else {
            return to.clone();
        };
        let mut patch = Map::new();
        for key in from.keys().filter(|key| !to.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
        for (key, wanted) in to {
            match from.get(key) {
                Some(current) if current == wanted => {}
                Some(current) => {
                    patch.insert(key.clone(), diff(current, wanted));
                }
                None => {
                    patch.insert(key.clone(), wanted.clone());
                }
            }
        }
        Value::Object(patch)
    }

    proptest! {
        #[test]
        fn a_difference_applied_gives_the_other_value(from in any_value(), to in any_value()) {
            let (from, to) = (without_nulls(&from), without_nulls(&to));
            let mut target = from.clone();
            apply(&mut target, &diff(&from, &to));
            prop_assert_eq!(target, to);
        }

        #[test]
        fn a_patch_applied_twice_changes_nothing_more(target in any_value(), patch in any_value()) {
            let mut once = target;
            apply(&mut once, &patch);
            let mut twice = once.clone();
            apply(&mut twice, &patch);
            prop_assert_eq!(once, twice);
        }
    }
}
