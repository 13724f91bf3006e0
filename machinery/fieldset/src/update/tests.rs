use serde_json::json;

use super::*;
use crate::codec;

/// A kind whose v2 calls the field `old` of v1 `new`.
struct Renamed;

impl Versions for Renamed {
    fn shape(&self, api_version: &str) -> Option<Shape<'_>> {
        matches!(api_version, "v1" | "v2").then(Shape::deduced)
    }

    fn convert<'v>(&self, object: &'v Value, from: &str, to: &str) -> Cow<'v, Value> {
        let mut object = object.clone();
        let names = match (from, to) {
            ("v1", "v2") => Some(("old", "new")),
            ("v2", "v1") => Some(("new", "old")),
            _ => None,
        };
        if let (Some((from, to)), Value::Object(map)) = (names, &mut object)
            && let Some(value) = map.remove(from)
        {
            map.insert(to.to_owned(), value);
        }
        Cow::Owned(object)
    }
}

fn write<'a>(api_version: &'a str, manager: &'a str, reset: &'a Reset) -> Write<'a> {
    Write {
        versions: &Renamed,
        api_version,
        kind: "K",
        subresource: "",
        reset,
        manager,
        now: Time::from_seconds(1_700_000_000).unwrap(),
        empty: &Value::Null,
    }
}

/// Who owns what: `manager version fields`.
fn owners(object: &Value) -> Vec<String> {
    let managed = ManagedFields::of(object).unwrap();
    let line = |(identity, owned): (&Identity, &Owned)| {
        let fields: Vec<String> = owned.fields.paths().iter().map(ToString::to_string).collect();
        format!("{} {} {}", identity.manager, owned.api_version, fields.join(" "))
    };
    managed.entries.iter().map(line).collect()
}

#[test]
fn other_versions_lose_what_changes_under_their_own_name() {
    let reset = Reset::default();
    let mut live = json!({"metadata": {}, "old": 1, "same": 1});
    update(&write("v1", "a", &reset), &json!({}), &mut live);
    assert_eq!(owners(&live), ["a v1 .old .same"]);
    live["metadata"]["uid"] = json!("u");

    let in_v2 = |version: &str| json!({"metadata": {"uid": "u"}, version: 2, "same": 1});
    let mut present = live.clone();
    present.as_object_mut().unwrap().remove("old");
    present["new"] = json!(1);
    let mut new = in_v2("new");
    update(&write("v2", "b", &reset), &present, &mut new);
    assert_eq!(owners(&new), ["a v1 .same", "b v2 .new"]);
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let entry = |version: &str| {
        json!({"manager": version, "operation": "Update", "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:same": {}}})
    };
    let live = json!({"metadata": {"uid": "u", "managedFields": [entry("v1"), entry("v0")]}, "same": 1});
    let mut new = json!({"metadata": {"uid": "u"}, "same": 1});
    update(&write("v1", "a", &Reset::default()), &live, &mut new);
    assert_eq!(owners(&new), ["v1 v1 .same"]);
}

#[test]
fn an_object_without_owners_stays_without_until_it_is_applied() {
    let live = json!({"metadata": {"uid": "u"}, "a": 1});
    let mut new = json!({"metadata": {"uid": "u"}, "a": 2});
    update(&write("v1", "m", &Reset::default()), &live, &mut new);
    assert_eq!(new["metadata"], json!({"uid": "u"}));
}

#[test]
fn times_are_kept_if_nothing_else_has_changed() {
    let object = |time: &str, data: i64, owner: &str| json!({"metadata": {"managedFields": [{"manager": owner, "time": time}]}, "data": data});
    let old = object("1", 1, "m");
    let cases = [
        (object("2", 1, "m"), "1"),
        (object("2", 2, "m"), "2"),
        (object("2", 1, "n"), "2"),
        (object("1", 1, "m"), "1"),
    ];
    for (new, time) in cases {
        let mut kept = new.clone();
        keep_times(&old, &mut kept);
        assert_eq!(kept["metadata"]["managedFields"][0]["time"], json!(time), "{new}");
    }
    for new in [json!({}), json!({"metadata": {"managedFields": []}}), json!(null)] {
        let mut kept = new.clone();
        keep_times(&old, &mut kept);
        assert_eq!(kept, new);
    }
}

#[test]
fn managers_are_named_by_the_client_or_its_agent() {
    let long = "é".repeat(100);
    let cases = [
        ("m", "kubectl/v1", "m".to_owned()),
        ("", "kubectl/v1.32 (linux)", "kubectl".to_owned()),
        ("", "my tool\u{7}\n/1", "my tool".to_owned()),
        ("", "", String::new()),
        ("", long.as_str(), "é".repeat(64)),
    ];
    for (manager, agent, name) in cases {
        assert_eq!(manager_name(manager, agent), name);
    }
}

#[test]
fn the_deepest_objects_do_no_harm() {
    let mut deep = json!(1);
    for _ in 0..machinery_value::decode::MAX_DEPTH - 1 {
        deep = json!({"a": deep});
    }
    let mut new = deep.clone();
    update(&write("v1", "m", &Reset::default()), &json!({}), &mut new);
    assert!(new["metadata"].is_null() || new["metadata"] == json!({}));

    let names = vec!["a"; codec::MAX_DEPTH];
    let mut shallow = json!(1);
    for name in names {
        shallow = json!({name: shallow});
    }
    update(&write("v1", "m", &Reset::default()), &json!({}), &mut shallow);
    assert!(machinery_value::decode::depth(&shallow) <= machinery_value::decode::MAX_DEPTH);
    assert_eq!(
        ManagedFields::of(&shallow).map(|managed| managed.entries.len()),
        Ok(1)
    );
}
