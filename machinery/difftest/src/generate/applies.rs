//! Server-side applies by several managers, who each want a part of an object.

use serde_json::{Value, json};

use super::objects::Kind;
use super::random::Random;
use crate::script::{Body, PatchType, Step};

const MANAGERS: [&str; 3] = ["one", "two", "three"];

/// An apply of some part of an object of this kind.
pub(super) fn apply(kind: Kind, name: &str, random: &mut Random) -> Step {
    let mut object = kind.object(name, random);
    if let Value::Object(fields) = &mut object {
        for (key, value) in fields.iter_mut() {
            if key != "apiVersion" && key != "kind" {
                thin(value, random, 0);
            }
        }
    }
    // A field that is not declared ends the real server's walk, which goes as a hash map has it: one mistake is enough.
    if let Some(nested) = object.pointer_mut("/spec/nested").and_then(Value::as_object_mut) {
        nested.remove("extra");
    }
    // `empty-labels` of the allowed differences.
    if kind == Kind::Widget {
        drop_empty_map(&mut object["metadata"], "labels");
        drop_empty_map(&mut object["metadata"], "annotations");
    }
    // An apply without a name takes that of the path.
    object["metadata"]["name"] = name.into();
    let mut query = vec![("fieldManager", random.pick(&MANAGERS))];
    if random.one_in(3) {
        query.push(("force", "true"));
    }
    match random.below(12) {
        0 => query.push(("dryRun", "All")),
        1 => query.push(("fieldValidation", "Strict")),
        _ => {}
    }
    if random.mistake(24) == 0 {
        object["metadata"]["managedFields"] = json!([]);
    }
    Step {
        patch: Some(PatchType::Apply),
        query: query
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        body: Some(Body::Json(object)),
        request: format!("PATCH <objects>/{name}"),
        ..Step::default()
    }
}

fn drop_empty_map(metadata: &mut Value, key: &str) {
    if let Value::Object(fields) = metadata
        && fields
            .get(key)
            .and_then(Value::as_object)
            .is_some_and(|map| map.is_empty())
    {
        fields.remove(key);
    }
}

/// Takes fields and elements away here and there, except for the keys of lists.
fn thin(value: &mut Value, random: &mut Random, depth: usize) {
    const KEYS: [&str; 6] = [
        "name",
        "containerPort",
        "port",
        "protocol",
        "selector",
        "template",
    ];
    match value {
        Value::Object(map) => {
            let whole = std::mem::take(map);
            for (key, mut inside) in whole {
                if KEYS.contains(&key.as_str()) || !random.one_in(if depth < 2 { 4 } else { 6 }) {
                    thin(&mut inside, random, depth + 1);
                    map.insert(key, inside);
                }
            }
        }
        Value::Array(list) if list.len() > 1 && random.one_in(3) => {
            list.remove(random.below(list.len()));
        }
        Value::Array(list) if list.iter().all(Value::is_object) => {
            for inside in list {
                thin(inside, random, depth + 1);
            }
        }
        _ => {}
    }
}
