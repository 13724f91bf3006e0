//! Where two objects differ.

use machinery_value::field::FieldPath;
use serde_json::{Map, Value};

use crate::render::SERVER_METADATA;

/// Metadata that a server keeps whatever a write says, so that it is never a difference.
fn is_server_metadata(field: &str) -> bool {
    SERVER_METADATA.contains(&field) && field != "finalizers" && field != "ownerReferences"
}

/// Where a member's object first differs from the one that is wanted, such as `spec.template.spec.containers[0].image`;
/// none if they agree.
///
/// Status and what servers write are not compared, and null and an empty list are the same as nothing. What is wanted and
/// is otherwise there comes before what is there and not wanted, since the latter is often a default; metadata comes last.
pub fn differing_path(desired: &Value, live: &Value) -> Option<String> {
    differing_paths(desired, live, 1).pop()
}

/// Where they differ, in the same order: the first so many places.
pub fn differing_paths(desired: &Value, live: &Value, most: usize) -> Vec<String> {
    let (Value::Object(desired_fields), Value::Object(live_fields)) = (desired, live) else {
        return Vec::from_iter((desired != live).then(String::new));
    };
    let empty = Map::new();
    let desired_metadata = desired["metadata"].as_object().unwrap_or(&empty);
    let live_metadata = live["metadata"].as_object().unwrap_or(&empty);
    let mut search = Search {
        most,
        way: Vec::new(),
        found: Vec::new(),
    };
    for direction in [Direction::Wanted, Direction::Extra] {
        let counts = |field: &str| !matches!(field, "metadata" | "status");
        search.in_map(desired_fields, live_fields, direction, &counts);
        search.below(Step::Field("metadata"), |search| {
            let counts = |field: &str| !is_server_metadata(field);
            search.in_map(desired_metadata, live_metadata, direction, &counts);
        });
    }
    search.found
}

/// Which differences are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// What is wanted is not there, or is otherwise.
    Wanted,
    /// What is there is not wanted.
    Extra,
}

/// One step of a path.
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

/// A search for differences.
struct Search<'a> {
    /// How many are looked for.
    most: usize,
    /// The way down to where it is.
    way: Vec<Step<'a>>,
    found: Vec<String>,
}

impl<'a> Search<'a> {
    fn in_map(
        &mut self,
        desired: &'a Map<String, Value>,
        live: &'a Map<String, Value>,
        direction: Direction,
        counts: &dyn Fn(&str) -> bool,
    ) {
        for (field, wanted) in desired {
            if counts(field) && !is_nothing(wanted) {
                let live = live.get(field).unwrap_or(&Value::Null);
                self.below(Step::Field(field), |search| {
                    search.in_value(wanted, live, direction)
                });
            }
        }
        if direction == Direction::Wanted {
            return;
        }
        let is_extra = |field: &str| desired.get(field).is_none_or(is_nothing);
        for (field, value) in live {
            if counts(field) && !is_nothing(value) && is_extra(field) {
                self.below(Step::Field(field), Self::found_one);
            }
        }
    }

    fn in_value(&mut self, desired: &'a Value, live: &'a Value, direction: Direction) {
        match (desired, live) {
            (Value::Object(desired), Value::Object(live)) => self.in_map(desired, live, direction, &|_| true),
            (Value::Array(desired), Value::Array(live)) if desired.len() == live.len() => {
                for (index, (desired, live)) in desired.iter().zip(live).enumerate() {
                    self.below(Step::Index(index), |search| {
                        search.in_value(desired, live, direction)
                    });
                }
            }
            (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
            (desired, live) if direction == Direction::Wanted && desired != live => self.found_one(),
            _ => {}
        }
    }

    /// Looks one step further down, unless enough was found.
    fn below(&mut self, step: Step<'a>, look: impl FnOnce(&mut Self)) {
        if self.found.len() < self.most {
            self.way.push(step);
            look(self);
            self.way.pop();
        }
    }

    fn found_one(&mut self) {
        self.found.push(written(&self.way));
    }
}

/// The path as text. A field whose name would be mistaken for a path is put in brackets.
fn written(way: &[Step<'_>]) -> String {
    let is_plain = |field: &str| {
        let mut bytes = field.bytes();
        !field.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let path = way.iter().fold(FieldPath::root(), |path, step| match step {
        Step::Field(field) if is_plain(field) => path.child(field),
        Step::Field(field) => path.key(field),
        Step::Index(index) => path.index(*index),
    });
    path.as_str().to_owned()
}

/// Servers leave out lists without elements.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let base = || {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "w", "labels": {"a.io/b": "1"}},
                "spec": {"replicas": 1, "paused": null, "list": [{"image": "x", "n": 1}, "y"]},
            })
        };
        let table = [
            ("/spec/replicas", json!(2), Some("spec.replicas")),
            ("/spec/replicas", json!(1.0), None),
            ("/spec/replicas", Value::Null, Some("spec.replicas")),
            ("/spec/paused", json!(true), Some("spec.paused")),
            ("/spec/list/0/image", json!("z"), Some("spec.list[0].image")),
            ("/spec/list/1", json!("z"), Some("spec.list[1]")),
            ("/spec/list", json!([1]), Some("spec.list")),
            ("/spec/list/0", json!({"image": "x"}), Some("spec.list[0].n")),
            (
                "/metadata/labels/a.io~1b",
                json!("2"),
                Some("metadata.labels[a.io/b]"),
            ),
            ("/metadata/labels", json!({}), Some("metadata.labels[a.io/b]")),
            ("/metadata", json!({"name": "w"}), Some("metadata.labels")),
            ("/spec", Value::Null, Some("spec")),
        ];
        assert_eq!(differing_path(&base(), &base()), None);
        for (pointer, value, expected) in table {
            let mut live = base();
            *live.pointer_mut(pointer).unwrap() = value;
            assert_eq!(differing_path(&base(), &live).as_deref(), expected, "{live}");
        }
    }

    #[test]
    fn what_servers_write_is_no_difference_but_what_is_not_wanted_is() {
        let desired = json!({"kind": "X", "metadata": {"name": "a"}, "spec": {"a": 1, "b": {}}});
        let mut live = json!({
            "kind": "X", "status": {"ok": true}, "spec": {"a": 1, "b": {}},
            "metadata": {"name": "a", "uid": "u", "generation": 3, "resourceVersion": "7", "managedFields": [],
                         "creationTimestamp": "t"},
        });
        assert_eq!(differing_path(&desired, &live), None);
        live["spec"]["b"]["extra"] = json!(1);
        assert_eq!(differing_path(&desired, &live).as_deref(), Some("spec.b.extra"));
        // What was wanted and is gone tells more than what was added.
        live["metadata"]["name"] = json!("b");
        assert_eq!(differing_path(&desired, &live).as_deref(), Some("metadata.name"));
        assert_eq!(differing_path(&json!(1), &live).as_deref(), Some(""));
    }

    #[test]
    fn all_differences_are_found_in_their_order() {
        let desired = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"a": 1, "b": {"c": 2}, "list": [1, {"d": 3}]}});
        let live = json!({"metadata": {"labels": {"a": "2", "e": "3"}}, "spec": {"b": {"f": 4}, "list": [2, {"d": 3}]}});
        let all = [
            "spec.a",
            "spec.b.c",
            "spec.list[0]",
            "metadata.labels.a",
            "spec.b.f",
            "metadata.labels.e",
        ];
        assert_eq!(differing_paths(&desired, &live, 9), all);
        assert_eq!(differing_paths(&desired, &live, 4), all[..4]);
        assert!(differing_paths(&live, &live, 9).is_empty());
    }
}
