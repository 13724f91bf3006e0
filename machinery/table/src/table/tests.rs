use super::*;

fn now() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "resourceVersion": "7", "creationTimestamp": "2026-01-01T23:59:55Z"},
        "data": {"a": "1"},
    })
}

fn config_maps() -> Printer {
    Printer::builtin("", "v1", "ConfigMap")
}

#[test]
fn a_table_of_one_object_has_its_version_and_columns() {
    let table = object_table(
        &config_maps(),
        &config_map("a"),
        IncludeObject::Metadata,
        true,
        now(),
    );
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    let columns = table["columnDefinitions"].as_array().unwrap();
    let names: Vec<_> = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Data", "Age"]);
    assert_eq!(
        columns[1],
        json!({"name": "Data", "type": "string", "format": "", "description": "", "priority": 0})
    );
    assert_eq!(
        table["rows"],
        json!([{"cells": ["a", 1, "5s"], "object": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": config_map("a")["metadata"],
        }}])
    );
}

#[test]
fn later_events_of_a_watch_have_no_columns() {
    let table = object_table(
        &config_maps(),
        &config_map("a"),
        IncludeObject::Metadata,
        false,
        now(),
    );
    assert_eq!(table.get("columnDefinitions"), Some(&Value::Null));
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "5s"]));
}

#[test]
fn rows_carry_what_the_client_asked_for() {
    let row =
        |include| object_table(&config_maps(), &config_map("a"), include, true, now())["rows"][0].clone();
    assert_eq!(row(IncludeObject::Object)["object"], config_map("a"));
    assert_eq!(row(IncludeObject::None).get("object"), Some(&Value::Null));
}

#[test]
fn the_bookmark_after_the_initial_events_keeps_its_metadata() {
    let metadata = json!({"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}});
    let bookmark = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata});
    let table = object_table(&config_maps(), &bookmark, IncludeObject::None, false, now());
    assert_eq!(table["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
    assert_eq!(table["rows"][0]["object"]["metadata"], metadata);
}

#[test]
fn lists_keep_their_metadata() {
    let list = json!({
        "metadata": {"resourceVersion": "12", "continue": "next", "remainingItemCount": 3},
        "items": [config_map("a"), config_map("b")],
    });
    let table = list_table(&config_maps(), &list, IncludeObject::None, now());
    assert_eq!(table["metadata"], list["metadata"]);
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| &row["cells"][0]).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn empty_lists_differ_by_kind() {
    let list = json!({"metadata": {"resourceVersion": "12"}, "items": []});
    let rows = |printer| list_table(&printer, &list, IncludeObject::None, now())["rows"].clone();
    assert_eq!(rows(config_maps()), json!([]));
    assert_eq!(
        rows(Printer::custom(CustomColumns::of_version(&json!({})))),
        json!([])
    );
    assert_eq!(rows(Printer::builtin("", "v1", "LimitRange")), Value::Null);
    let partial = partial_object_metadata_list([], ListMeta::of(&list));
    assert_eq!(partial["items"], Value::Null);
}

#[test]
fn finished_pods_say_so_in_their_row() {
    for (phase, want) in [("Succeeded", true), ("Failed", true), ("Running", false)] {
        let pod = json!({"metadata": {"name": "p"}, "status": {"phase": phase}});
        let table = object_table(
            &Printer::builtin("", "v1", "Pod"),
            &pod,
            IncludeObject::None,
            true,
            now(),
        );
        let conditions = table["rows"][0].get("conditions");
        assert_eq!(conditions.is_some(), want, "{phase}");
        if let Some(conditions) = conditions {
            assert_eq!(conditions[0]["type"], "Completed");
            assert_eq!(conditions[0]["reason"], phase);
        }
    }
}

#[test]
fn partial_lists_keep_metadata_alone() {
    let (a, b) = (config_map("a"), config_map("b"));
    let meta = ListMeta {
        resource_version: "12".to_owned(),
        ..ListMeta::default()
    };
    let list = partial_object_metadata_list([&a, &b], meta);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["metadata"], json!({"resourceVersion": "12"}));
    assert_eq!(list["items"][1], partial_object_metadata(&b));
    assert_eq!(list["items"][1].get("data"), None);
}

#[test]
fn what_to_include_is_read_from_the_query() {
    for (value, want) in [
        (None, IncludeObject::Metadata),
        (Some(""), IncludeObject::Metadata),
        (Some("Metadata"), IncludeObject::Metadata),
        (Some("Object"), IncludeObject::Object),
        (Some("None"), IncludeObject::None),
    ] {
        assert_eq!(IncludeObject::parse(value), Ok(want), "{value:?}");
    }
    assert_eq!(
        IncludeObject::parse(Some("x\"y")).unwrap_err(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"x\\\"y\": \
         must be 'Metadata', 'Object', 'None', or empty"
    );
}
