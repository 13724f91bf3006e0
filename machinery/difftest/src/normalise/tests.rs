use super::*;
use serde_json::json;

const UID: &str = "6cecfe78-f478-4bb3-9d72-aef090c2186d";
const OTHER_UID: &str = "00b26557-f74f-44a3-a967-e0206747a51a";

fn object(name: &str, uid: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}})
}

#[test]
fn the_same_object_keeps_its_labels() {
    let mut normaliser = Normaliser::new(false);
    let mut label = |value| normaliser.value(value)["metadata"].clone();
    let first = label(object("a", UID, "7"));
    assert_eq!(
        first,
        json!({"name": "a", "uid": "<uid:a>", "resourceVersion": "<rv:a#1>"})
    );
    assert_eq!(label(object("a", UID, "7")), first, "nothing was written");
    assert_eq!(label(object("a", UID, "8"))["resourceVersion"], "<rv:a#2>");
    let refused = json!({"metadata": {"message": "ResourceVersion in the precondition (8), not (9)"}});
    assert_eq!(
        label(refused)["message"],
        "ResourceVersion in the precondition (<rv>), not (<rv>)"
    );
    let again = label(object("a", OTHER_UID, "9"));
    assert_eq!(again["uid"], "<uid:a~2>", "made again under the same name");
    assert_eq!(
        label(json!({"uid": UID, "metadata": {"name": "b", "ownerReferences": [{"uid": UID}]}}))["ownerReferences"]
            [0]["uid"],
        "<uid:a>"
    );
}

#[test]
fn values() {
    let now = Timestamp::now();
    let recent = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let micro = now.strftime("%Y-%m-%dT%H:%M:%S.123456Z").to_string();
    for (from, to) in [
        (
            json!({"metadata": {"resourceVersion": "12"}}),
            json!({"metadata": {"resourceVersion": "<rv>"}}),
        ),
        (
            json!({"metadata": {"continue": "abc"}}),
            json!({"metadata": {"continue": "<continue>"}}),
        ),
        (
            json!({"metadata": {"continue": ""}}),
            json!({"metadata": {"continue": ""}}),
        ),
        (
            json!({"metadata": {"managedFields": [1]}}),
            json!({"metadata": {}}),
        ),
        (json!({"x": recent}), json!({"x": "<time>"})),
        (json!({"x": micro}), json!({"x": "<microtime>"})),
        (
            json!({"x": "2020-01-01T00:00:00Z"}),
            json!({"x": "2020-01-01T00:00:00Z"}),
        ),
        (
            json!({"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"]}),
            json!({"clusterIP": "<ip>", "clusterIPs": ["<ip>"]}),
        ),
        (json!({"clusterIP": "None"}), json!({"clusterIP": "None"})),
        (json!({"nodePort": 30123}), json!({"nodePort": "<port>"})),
        (
            json!({"message": "too old resource version: 5 (341)"}),
            json!({"message": "too old resource version: 5 (<rv>)"}),
        ),
        (
            json!({"message": "Too large resource version: 99, current: 341"}),
            json!({"message": "Too large resource version: 99, current: <rv>"}),
        ),
        (
            json!({"message": "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (300)."}),
            json!({"message": "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (<rv>)."}),
        ),
        (
            json!({"message": "patch: Invalid value: \"{\\\"a\\\":{}}\": strict decoding error"}),
            json!({"message": "patch: Invalid value: \"<object>\": strict decoding error"}),
        ),
        (json!({"message": "5 of (3)"}), json!({"message": "5 of (3)"})),
        (
            json!({"message": format!("UID in object meta: {UID}")}),
            json!({"message": "UID in object meta: <uid:?>"}),
        ),
    ] {
        assert_eq!(Normaliser::new(false).value(from.clone()), to, "{from}");
    }
    let kept = json!({"metadata": {"managedFields": [{"manager": "m"}]}});
    assert_eq!(Normaliser::new(true).value(kept.clone()), kept);
    let entries =
        |managers: [&str; 2]| json!({"metadata": {"managedFields": managers.map(|m| json!({"manager": m}))}});
    assert_eq!(
        Normaliser::new(true).value(entries(["b", "a"])),
        entries(["a", "b"])
    );
}

#[test]
fn made_up_names_are_followed() {
    let mut normaliser = Normaliser::new(false);
    let made = json!({"metadata": {"name": "g-gmt62", "generateName": "g-"}});
    assert_eq!(normaliser.value(made)["metadata"]["name"], "g-<random>");
    let later = normaliser.value(json!({"message": "configmaps \"g-gmt62\" not found"}));
    assert_eq!(later["message"], "configmaps \"g-<random>\" not found");
    let long = "a".repeat(70);
    let made = json!({"metadata": {"name": format!("{}x2x4x", &long[..58]), "generateName": long}});
    assert_eq!(
        normaliser.value(made)["metadata"]["name"],
        format!("{}<random>", &long[..58])
    );
    let wrong = json!({"metadata": {"name": "h-123456", "generateName": "h-"}});
    assert_eq!(
        normaliser.value(wrong.clone()),
        wrong,
        "six letters are not what a server makes"
    );
}

#[test]
fn tables_and_watches() {
    let table = |columns: Value| json!({"kind": "Table", "columnDefinitions": columns, "rows": [{"cells": ["a", "5s", "x"]}]});
    let columns = json!([
        {"name": "Name", "type": "string", "description": "long"},
        {"name": "Age", "type": "string"},
        {"name": "When", "type": "date"}
    ]);
    let events = json!([
        {"type": "ADDED", "object": table(columns)},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}},
        {"type": "ADDED", "object": table(Value::Null)},
        {"type": "BOOKMARK", "object": {"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}}},
    ]);
    let out = Normaliser::new(false).value(events);
    assert_eq!(
        out.as_array().map(Vec::len),
        Some(3),
        "the periodic bookmark is left out"
    );
    for event in [&out[0], &out[1]] {
        assert_eq!(event["object"]["rows"][0]["cells"], json!(["a", "<age>", "x"]));
    }
    assert_eq!(
        out[0]["object"]["columnDefinitions"][0],
        json!({"name": "Name", "type": "string"})
    );
}

#[test]
fn addresses_in_tables() {
    let columns = json!([{"name": "Cluster-IP", "type": "string"}, {"name": "Port(s)", "type": "string"}]);
    for (from, to) in [
        (
            json!(["10.0.0.7", "80:31234/TCP,81/UDP"]),
            json!(["<ip>", "80:<port>/TCP,81/UDP"]),
        ),
        (json!(["None", "<none>"]), json!(["None", "<none>"])),
    ] {
        let table = json!({"kind": "Table", "columnDefinitions": columns, "rows": [{"cells": from}]});
        assert_eq!(Normaliser::new(false).value(table)["rows"][0]["cells"], to);
    }
}

#[test]
fn bodies() {
    let answer = |content_type: &str, body: &str| Answer {
        status: 200,
        content_type: content_type.to_owned(),
        warnings: Vec::new(),
        retry_after: None,
        audit_id: None,
        cache_control: None,
        etag: None,
        body: body.to_owned().into(),
    };
    for (content_type, body, expected) in [
        ("application/json", "{\"a\":1}", json!({"a": 1})),
        (
            "application/json",
            "{\"type\":\"ADDED\",\"object\":{}}\n",
            json!([{"type": "ADDED", "object": {}}]),
        ),
        ("application/json", "{}\n{}\n", json!([{}, {}])),
        ("application/json", "", json!([])),
        ("application/json", "{bad", json!("{bad")),
        ("text/plain", "{\"paths\":{}}", json!({"paths": {}})),
        ("application/yaml", "a: [1, x]\n", json!({"a": [1, "x"]})),
        (
            "text/plain",
            "404 page not found\n",
            json!("404 page not found\n"),
        ),
    ] {
        assert_eq!(
            Normaliser::new(false).body(&answer(content_type, body)),
            expected,
            "{body}"
        );
    }
}
