use serde_json::json;

use super::*;

fn entry(manager: &str, operation: &str, time: &str) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}})
}

#[test]
fn entries_are_sorted_as_the_server_sorts_them() {
    let early = "2024-01-01T00:00:00Z";
    let late = "2024-01-02T00:00:00Z";
    let sorted = json!([
        entry("z", "Apply", early),
        entry("a", "Apply", late),
        entry("b", "Apply", late),
        entry("c", "Update", early),
        entry("a", "Update", late),
    ]);
    let mut shuffled = sorted.as_array().unwrap().clone();
    shuffled.reverse();
    let managed = ManagedFields::decode(Some(&Value::Array(shuffled))).unwrap();
    assert_eq!(Value::Array(managed.encode()), sorted);
}

#[test]
fn of_entries_with_one_identity_the_last_counts() {
    let mut other = entry("a", "Apply", "2024-01-01T00:00:00Z");
    other["apiVersion"] = json!("v2");
    other["fieldsV1"] = json!({"f:b": {}});
    let list = json!([entry("a", "Apply", "2024-01-02T00:00:00Z"), other]);
    let managed = ManagedFields::decode(Some(&list)).unwrap();
    assert_eq!(managed.encode(), vec![other]);
}

#[test]
fn what_is_malformed_is_refused() {
    let good = entry("m", "Update", "2024-01-01T00:00:00Z");
    let cases = [
        (
            "operation",
            json!("Create"),
            "operation must be `Apply` or `Update`",
        ),
        ("operation", json!(null), "operation must be `Apply` or `Update`"),
        ("apiVersion", json!(""), "apiVersion must not be empty"),
        (
            "fieldsType",
            json!(""),
            "missing fieldsType in managed fields entry 0",
        ),
        (
            "fieldsType",
            json!("V2"),
            "invalid fieldsType \"V2\" in managed fields entry 0",
        ),
        (
            "manager",
            json!(1),
            "manager has the wrong type in managed fields entry 0",
        ),
        (
            "time",
            json!("soon"),
            "time has the wrong type in managed fields entry 0",
        ),
        (
            "fieldsV1",
            json!({"x": {}}),
            "error decoding set: missing colon: x",
        ),
    ];
    for (field, value, message) in cases {
        let mut bad = good.clone();
        bad[field] = value;
        let error = ManagedFields::decode(Some(&json!([bad]))).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert!(ManagedFields::decode(Some(&json!({}))).is_err());
    assert!(ManagedFields::decode(Some(&json!([1]))).is_err());
    assert_eq!(ManagedFields::decode(None), Ok(ManagedFields::default()));
}

#[test]
fn managers_are_named_as_in_conflicts() {
    let cases = [
        (Identity::new("m1", Operation::Apply, "v1", ""), r#""m1""#),
        (Identity::new("", Operation::Apply, "v1", ""), r#""unknown""#),
        (
            Identity::new("k", Operation::Update, "apps/v1", ""),
            r#""k" using apps/v1"#,
        ),
        (
            Identity::new("k", Operation::Update, "v1", "scale"),
            r#""k" with subresource "scale" using v1"#,
        ),
        (
            Identity::new("k", Operation::Apply, "v1", "status"),
            r#""k" with subresource "status""#,
        ),
    ];
    for (identity, name) in cases {
        assert_eq!(identity.to_string(), name);
    }
    let key = Identity::new("k", Operation::Update, "v1", "scale").sort_key();
    assert_eq!(
        key,
        r#"{"manager":"k","operation":"Update","apiVersion":"v1","subresource":"scale"}"#
    );
}

#[test]
fn an_empty_list_or_entry_asks_for_a_reset() {
    for list in [json!([]), json!([{}]), json!([{"manager": "", "time": null}])] {
        assert!(is_reset(Some(&list)), "{list}");
    }
    for list in [json!(null), json!([{}, {}]), json!([{"manager": "a"}]), json!({})] {
        assert!(!is_reset(Some(&list)), "{list}");
    }
    assert!(!is_reset(None));
}

#[test]
fn sets_too_deep_to_be_read_back_are_not_written() {
    let names = vec!["a"; codec::MAX_DEPTH + 1];
    let owned = Owned {
        fields: FieldSet::of_fields(&[&names]),
        api_version: "v1".to_owned(),
        time: None,
    };
    let identity = Identity::new("m", Operation::Update, "v1", "");
    let managed = ManagedFields {
        entries: BTreeMap::from([(identity, owned)]),
    };
    let mut object = json!({"metadata": {"managedFields": []}});
    managed.store(&mut object);
    assert_eq!(object, json!({"metadata": {}}));
}
