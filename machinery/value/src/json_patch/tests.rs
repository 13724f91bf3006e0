use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decode::tests::any_value;

fn check(doc: Value, patch: Value, expected: Value) {
    let mut patched = doc.clone();
    assert_eq!(apply(&mut patched, &patch), Ok(()), "{doc} with {patch}");
    assert_eq!(patched, expected, "{doc} with {patch}");
}

fn check_fails(doc: Value, patch: Value) -> String {
    let mut patched = doc.clone();
    let error = apply(&mut patched, &patch).expect_err(&format!("{doc} with {patch}"));
    assert_eq!(patched, doc, "untouched");
    assert!(matches!(error, PatchError::Failed(_)), "{error:?}");
    error.to_string()
}

#[test]
fn operations_do_what_they_say() {
    let doc = json!({"a": {"b": 1}, "l": [1, 2, 3]});
    let with = |op: Value, expected: Value| check(doc.clone(), json!([op]), expected);
    with(
        json!({"op": "add", "path": "/c", "value": 2}),
        json!({"a": {"b": 1}, "l": [1, 2, 3], "c": 2}),
    );
    with(
        json!({"op": "add", "path": "/a/b", "value": {}}),
        json!({"a": {"b": {}}, "l": [1, 2, 3]}),
    );
    with(
        json!({"op": "add", "path": "/l/1", "value": 9}),
        json!({"a": {"b": 1}, "l": [1, 9, 2, 3]}),
    );
    with(
        json!({"op": "add", "path": "/l/3", "value": 9}),
        json!({"a": {"b": 1}, "l": [1, 2, 3, 9]}),
    );
    with(
        json!({"op": "add", "path": "/l/-", "value": 9}),
        json!({"a": {"b": 1}, "l": [1, 2, 3, 9]}),
    );
    with(
        json!({"op": "add", "path": "/l/-1", "value": 9}),
        json!({"a": {"b": 1}, "l": [1, 2, 3, 9]}),
    );
    with(
        json!({"op": "add", "path": "/l/-2", "value": 9}),
        json!({"a": {"b": 1}, "l": [1, 2, 9, 3]}),
    );
    with(
        json!({"op": "add", "path": "/c"}),
        json!({"a": {"b": 1}, "l": [1, 2, 3], "c": null}),
    );
    with(
        json!({"op": "remove", "path": "/a/b"}),
        json!({"a": {}, "l": [1, 2, 3]}),
    );
    with(
        json!({"op": "remove", "path": "/l/-1"}),
        json!({"a": {"b": 1}, "l": [1, 2]}),
    );
    with(
        json!({"op": "replace", "path": "/l/0", "value": 7}),
        json!({"a": {"b": 1}, "l": [7, 2, 3]}),
    );
    with(
        json!({"op": "replace", "path": "/l/-1", "value": 7}),
        json!({"a": {"b": 1}, "l": [1, 2, 7]}),
    );
    with(
        json!({"op": "replace", "path": "/new", "value": 7}),
        json!({"a": {"b": 1}, "l": [1, 2, 3], "new": 7}),
    );
    with(
        json!({"op": "replace", "path": "", "value": {"x": 1}}),
        json!({"x": 1}),
    );
    with(
        json!({"op": "move", "from": "/a/b", "path": "/l/0"}),
        json!({"a": {}, "l": [1, 1, 2, 3]}),
    );
    with(
        json!({"op": "copy", "from": "/l", "path": "/a/l"}),
        json!({"a": {"b": 1, "l": [1, 2, 3]}, "l": [1, 2, 3]}),
    );
    with(
        json!({"op": "copy", "from": "/nope", "path": "/x"}),
        json!({"a": {"b": 1}, "l": [1, 2, 3], "x": null}),
    );
    with(
        json!({"op": "test", "path": "/l", "value": [1, 2, 3]}),
        doc.clone(),
    );
    with(json!({"op": "test", "path": "", "value": doc}), doc.clone());
    with(
        json!({"op": "test", "path": "ignored/a/b", "value": 1}),
        doc.clone(),
    );
}

#[test]
fn finalizers_are_added_as_controllers_do() {
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["lab.io/f"]},
    ]);
    check(
        json!({"metadata": {}}),
        patch.clone(),
        json!({"metadata": {"finalizers": ["lab.io/f"]}}),
    );
    check_fails(json!({"metadata": {"finalizers": ["x"]}}), patch);
}

#[test]
fn escapes_in_paths() {
    let patch = json!([{"op": "replace", "path": "/a~1b/c~0d", "value": 2}, {"op": "add", "path": "/~01", "value": 3}]);
    check(
        json!({"a/b": {"c~d": 1}}),
        patch,
        json!({"a/b": {"c~d": 2}, "~1": 3}),
    );
}

#[test]
fn what_does_not_fit_fails_and_leaves_the_document_alone() {
    let doc = json!({"a": {"b": 1}, "l": [1], "n": null});
    let failing = [
        json!({"op": "remove", "path": "/nope"}),
        json!({"op": "remove", "path": "/l/1"}),
        json!({"op": "remove", "path": "/l/-2"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/n/y", "value": 1}),
        json!({"op": "add", "path": "/a/b/c", "value": 1}),
        json!({"op": "add", "path": "/l/2", "value": 1}),
        json!({"op": "add", "path": "/l/x", "value": 1}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "value": 1}),
        json!({"op": "add", "path": 7, "value": 1}),
        json!({"op": "replace", "path": "/l/1", "value": 1}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "test", "path": "/a/b", "value": 2}),
        json!({"op": "test", "path": "/a/b"}),
        json!({"op": "test", "path": "/x/y", "value": null}),
        json!({"op": "test", "path": "/l/4", "value": null}),
        json!({"op": "move", "from": "/nope", "path": "/x"}),
        json!({"op": "move", "path": "/x"}),
        json!({"op": "move", "from": "/a", "path": "/a/b"}),
        json!({"op": "copy", "from": "/l/9", "path": "/x"}),
        json!({"op": "frob", "path": "/x"}),
        json!({"path": "/x"}),
        json!(null),
    ];
    for operation in failing {
        // The first operation must not stay behind.
        check_fails(
            doc.clone(),
            json!([{"op": "add", "path": "/before", "value": 1}, operation]),
        );
    }
    assert_eq!(check_fails(doc, json!([{"op": "frob"}])), "Unexpected kind: frob");
}

#[test]
fn what_is_no_patch_is_another_error() {
    let mut doc = json!({});
    let mut undecodable = |patch: Value| match apply(&mut doc, &patch) {
        Err(PatchError::Undecodable(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        undecodable(json!({})),
        "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
    );
    assert_eq!(
        undecodable(json!(["x"])),
        "json: cannot unmarshal string into Go value of type jsonpatch.Operation"
    );
    assert_eq!(apply(&mut doc, &json!(null)), Ok(()));
    let many = Value::Array(vec![
        json!({"op": "test", "path": "/x", "value": null});
        MAX_OPERATIONS + 1
    ]);
    let error = apply(&mut doc, &many).unwrap_err();
    assert_eq!(error, PatchError::TooManyOperations(10_001));
    assert_eq!(
        error.to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_cannot_make_a_document_huge() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let error = check_fails(json!({"a": ["x".repeat(1000)]}), Value::Array(vec![double; 40]));
    assert!(
        error.contains("exceeded max depth") || error.contains("accumulated size"),
        "{error}"
    );
    let copies: Vec<Value> = (0..5000)
        .map(|i| json!({"op": "copy", "from": "/a", "path": format!("/b{i}")}))
        .collect();
    let error = check_fails(json!({"a": "x".repeat(1000)}), Value::Array(copies));
    assert!(error.contains("accumulated size increase"), "{error}");
}

#[test]
fn operations_cannot_make_a_document_too_deep() {
    let deeper = [
        json!({"op": "add", "path": "/w", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/w/a"}),
        json!({"op": "move", "from": "/w", "path": "/a"}),
    ];
    let deepen = |times: usize| Value::Array(deeper.iter().cycle().take(3 * times).cloned().collect());
    assert_eq!(apply(&mut json!({"a": {}}), &deepen(MAX_DEPTH - 2)), Ok(()));
    check_fails(json!({"a": {}}), deepen(MAX_DEPTH - 1));
    check_fails(json!({"a": {}}), deepen(3000));
    // Moving to and fro only drives up what is assumed; the document stays shallow, and that is seen.
    let there = json!({"op": "move", "from": "/a", "path": "/b/x/a"});
    let back = json!({"op": "move", "from": "/b/x/a", "path": "/a"});
    let patch: Vec<Value> = (0..4000).flat_map(|_| [there.clone(), back.clone()]).collect();
    let doc = json!({"a": {"k": {}}, "b": {"x": {}}});
    check(doc.clone(), Value::Array(patch), doc);
    let nested = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let path = "/a".repeat(100);
    check_fails(
        nested.clone(),
        json!([{"op": "replace", "path": path, "value": nested}]),
    );
}

proptest! {
    #[test]
    fn a_flat_object_behaves_like_a_map(ops in prop::collection::vec((0u8..4, "[a-c]", 0i64..5), 0..30)) {
        let mut model = std::collections::BTreeMap::new();
        let mut doc = json!({});
        for (kind, key, number) in ops {
            let path = format!("/{key}");
            let (operation, fits) = match kind {
                0 => {
                    model.insert(key, number);
                    (json!({"op": "add", "path": path, "value": number}), true)
                }
                1 => (json!({"op": "remove", "path": path}), model.remove(&key).is_some()),
                2 => {
                    model.insert(key, number);
                    (json!({"op": "replace", "path": path, "value": number}), true)
                }
                _ => (json!({"op": "test", "path": path, "value": number}), model.get(&key) == Some(&number)),
            };
            prop_assert_eq!(apply(&mut doc, &json!([operation])).is_ok(), fits);
            prop_assert_eq!(&doc, &json!(model));
        }
    }

    #[test]
    fn a_list_behaves_like_a_vector(ops in prop::collection::vec((0u8..3, -6i64..6, 0i64..5), 0..30)) {
        let mut model: Vec<i64> = Vec::new();
        let mut doc = json!({"l": []});
        for (kind, index, number) in ops {
            let path = format!("/l/{index}");
            let place = |len: usize| {
                let place = if index < 0 { index + len as i64 } else { index };
                (0..len as i64).contains(&place).then_some(place as usize)
            };
            let (operation, place) = match kind {
                0 => {
                    let place = place(model.len() + 1);
                    if let Some(place) = place {
                        model.insert(place, number);
                    }
                    (json!({"op": "add", "path": path, "value": number}), place)
                }
                1 => {
                    let place = place(model.len());
                    if let Some(place) = place {
                        model.remove(place);
                    }
                    (json!({"op": "remove", "path": path}), place)
                }
                _ => {
                    let place = place(model.len());
                    if let Some(place) = place {
                        model[place] = number;
                    }
                    (json!({"op": "replace", "path": path, "value": number}), place)
                }
            };
            prop_assert_eq!(apply(&mut doc, &json!([operation])).is_ok(), place.is_some());
            prop_assert_eq!(&doc["l"], &json!(model));
        }
    }

    #[test]
    fn nothing_panics_and_failure_changes_nothing(
        doc in any_value(),
        ops in prop::collection::vec(
            (prop_oneof!["add", "remove", "replace", "move", "copy", "test"], "(/[a-c0-2~-]{0,2}){0,3}",
             "(/[a-c0-2]){0,3}", any_value()), 0..6),
    ) {
        let ops: Vec<Value> = ops.into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        let mut patched = doc.clone();
        if apply(&mut patched, &Value::Array(ops)).is_err() {
            prop_assert_eq!(patched, doc);
        }
    }
}
