//! Who wrote a field of a member's object, by its managedFields.

use serde_json::{Map, Value};

/// The name under which we write.
pub const OWN_MANAGER: &str = "lockgate";

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    /// A field, or a key in brackets.
    Name(&'a str),
    /// A place in a list, if what is there is one; else a key.
    Bracket(&'a str),
}

/// Who, other than we, last wrote the field at a path as [`super::differing_path`] gives it. None if the object has no
/// managedFields, or nobody else wrote there.
pub fn manager_of(live: &Value, path: &str) -> Option<String> {
    let steps = steps(path)?;
    let entries = live["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .filter(|entry| entry["manager"] != OWN_MANAGER)
        .filter(|entry| {
            entry["fieldsV1"]
                .as_object()
                .is_some_and(|fields| owns(fields, live, &steps))
        })
        // Times are RFC 3339 in UTC, so they sort as text; the last of equal ones wins.
        .max_by_key(|entry| entry["time"].as_str().unwrap_or_default())
        .and_then(|entry| Some(entry["manager"].as_str()?.to_owned()))
}

/// Whether a set of fields holds the field at the path, something below it, or all of a container around it.
fn owns(fields: &Map<String, Value>, at: &Value, steps: &[Step<'_>]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    let (entry, next) = match (step, at) {
        (Step::Bracket(index), Value::Array(items)) => {
            let Some(item) = index.parse().ok().and_then(|index: usize| items.get(index)) else {
                return false;
            };
            (element(fields, item), item)
        }
        (Step::Name(name) | Step::Bracket(name), _) => (fields.get(&format!("f:{name}")), &at[*name]),
    };
    match entry.and_then(Value::as_object) {
        None => false,
        // A leaf of the set: the container is owned as a whole.
        Some(inner) if inner.is_empty() => true,
        Some(inner) => owns(inner, next, rest),
    }
}

/// The entry of a list's element: by its keys, or by its value.
fn element<'a>(fields: &'a Map<String, Value>, item: &Value) -> Option<&'a Value> {
    let mut entries = fields.iter();
    entries.find_map(|(name, entry)| {
        let holds = if let Some(keys) = name.strip_prefix("k:") {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            keys.iter().all(|(key, value)| item.get(key) == Some(value))
        } else {
            let value: Value = serde_json::from_str(name.strip_prefix("v:")?).ok()?;
            value == *item
        };
        holds.then_some(entry)
    })
}

/// The steps of a path; none if it is not one.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (key, after) = bracket.split_once(']')?;
            steps.push(Step::Bracket(key));
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Name(name));
            rest = after;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_other_writer_of_a_field_is_named() {
        let live = json!({
            "metadata": {
                "labels": {"a.io/b": "1"},
                "managedFields": [
                    {"manager": "lockgate", "time": "2026-11-15T09:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                    {"manager": "hpa", "time": "2026-11-15T08:00:00Z", "subresource": "scale",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                    {"manager": "older", "time": "2026-11-15T07:00:00Z",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {".": {}, "f:a.io/b": {}}}}},
                    {"manager": "injector", "time": "2026-11-15T08:00:00Z", "fieldsV1": {"f:spec": {
                        "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:env": {}}},
                        "f:finalizers": {"v:\"kubernetes\"": {}},
                    }}},
                    {"manager": "broken", "fieldsV1": {"f:spec": {"f:containers": {"k:{": {}, "x": {}}}}},
                    {"manager": "nothing"},
                ],
            },
            "spec": {
                "replicas": 3, "finalizers": ["kubernetes"],
                "containers": [{"name": "side"}, {"name": "web", "image": "x", "env": [{"name": "A"}], "args": []}],
            },
        });
        let table = [
            ("spec.replicas", Some("hpa")),
            ("metadata.labels[a.io/b]", Some("older")),
            ("spec.containers[1].image", Some("injector")),
            ("spec.containers[1].env[0].name", Some("injector")),
            ("spec.containers[1].args", None),
            ("spec.containers[0].image", None),
            ("spec.containers[7].image", None),
            ("spec.finalizers[0]", Some("injector")),
            ("spec.unknown", None),
            ("", None),
            ("spec..x", None),
            ("spec[", None),
        ];
        for (path, expected) in table {
            assert_eq!(manager_of(&live, path).as_deref(), expected, "{path}");
        }
        assert_eq!(manager_of(&json!({}), "spec.replicas"), None);
    }
}
