//! No object, however odd, makes this crate panic, and applying defaults twice changes nothing.
//!
//! Decoding sees to types before objects come here, but a panic must not depend on that.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use machinery_kinds::{Gvk, defaults, strategy, validation};
use serde_json::{Value, json};

const BASES: &str = include_str!("golden/bases.json");
const CASES: &str = include_str!("golden/cases.jsonl");

/// The paths of all values inside, as JSON pointers.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, v)| (key.replace('~', "~0").replace('/', "~1"), v))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, v)| (index.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inside {
        let path = format!("{at}/{key}");
        paths(value, &path, found);
        found.push(path);
    }
}

fn run(gvk: Gvk<'_>, object: &Value, old: &Value) {
    let mut new = object.clone();
    defaults::apply(gvk.group, gvk.version, gvk.kind, &mut new);
    let mut created = new.clone();
    strategy::prepare_create(gvk, &mut created);
    strategy::allocate_service(&mut created, || Some("10.0.0.9".to_owned()), || Some(30000));
    validation::validate_create(gvk, &created);
    for (new, old) in [(&new, old), (old, &new)] {
        let mut updated = new.clone();
        strategy::prepare_update(gvk, &mut updated, old);
        validation::validate_update(gvk, &updated, old);
        let mut updated = new.clone();
        strategy::prepare_status_update(gvk, &mut updated, old);
        validation::validate_status_update(gvk, &updated, old);
        validation::object_meta_update(true, &updated, old);
    }
}

fn gvk(object: &Value) -> (String, String, String) {
    let api = object["apiVersion"].as_str().unwrap();
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    (
        group.to_owned(),
        version.to_owned(),
        object["kind"].as_str().unwrap().to_owned(),
    )
}

fn bases() -> Vec<Value> {
    let bases: Value = serde_json::from_str(BASES).unwrap();
    bases
        .as_object()
        .unwrap()
        .values()
        .map(|base| base["object"].clone())
        .collect()
}

#[test]
fn odd_values_do_not_panic() {
    let odd = [
        json!(null),
        json!(""),
        json!("é\n"),
        json!(-1),
        json!(true),
        json!([]),
        json!([null, 1]),
        json!({}),
    ];
    for base in bases() {
        let (group, version, kind) = gvk(&base);
        let gvk = Gvk::new(&group, &version, &kind);
        let mut whole = base.clone();
        // A filled-in object has more places to go wrong, and a bound claim and suspended job more code to reach.
        whole["metadata"]["uid"] = "u".into();
        defaults::apply(&group, &version, &kind, &mut whole);
        strategy::prepare_create(gvk, &mut whole);
        if kind == "PersistentVolumeClaim" {
            whole["status"]["phase"] = "Bound".into();
        }
        if kind == "Job" {
            whole["spec"]["suspend"] = true.into();
        }
        run(gvk, &json!(7), &whole);
        run(gvk, &whole, &json!([]));
        let mut all = Vec::new();
        paths(&whole, "", &mut all);
        for path in all {
            for value in &odd {
                let mut object = whole.clone();
                *object.pointer_mut(&path).unwrap() = value.clone();
                run(gvk, &object, &whole);
            }
        }
    }
}

#[test]
fn defaults_are_applied_once() {
    let bases: Value = serde_json::from_str(BASES).unwrap();
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut object = bases[case["base"].as_str().unwrap()]["object"].clone();
        for (key, value) in case["create"].as_object().into_iter().flatten() {
            if key != "metadata" && value.is_object() && object[key].is_object() {
                let fields = object[key].as_object_mut().unwrap();
                fields.extend(value.as_object().unwrap().clone());
            }
        }
        let (group, version, kind) = gvk(&object);
        defaults::apply(&group, &version, &kind, &mut object);
        let once = object.clone();
        defaults::apply(&group, &version, &kind, &mut object);
        assert_eq!(object, once, "{}", case["name"]);
    }
}
