use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decode::tests::any_value;
use crate::merge_patch;

/// A schema made by hand: a pod-like object.
#[derive(Clone, Copy, Debug)]
enum Schema {
    Root,
    Containers,
    Container,
    Env,
    EnvVar,
    Finalizers,
    Args,
    Scalar,
    Strategy,
    Selector,
    Volumes,
    Volume,
    Labels,
    Blank,
}

impl MergeSchema for Schema {
    fn field(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::Root, "containers") => Self::Containers,
            (Self::Root, "finalizers") => Self::Finalizers,
            (Self::Root, "strategy") => Self::Strategy,
            (Self::Root, "selector") => Self::Selector,
            (Self::Root, "volumes") => Self::Volumes,
            (Self::Root, "labels") => Self::Labels,
            (Self::Root, "blank") => Self::Blank,
            (Self::Root, "name") => Self::Scalar,
            (Self::Root, "spec") => Self::Root,
            (Self::Container, "env") => Self::Env,
            (Self::Container, "args") => Self::Args,
            _ => return None,
        })
    }

    fn items(self) -> Option<Self> {
        match self {
            Self::Containers => Some(Self::Container),
            Self::Env => Some(Self::EnvVar),
            Self::Volumes => Some(Self::Volume),
            Self::Finalizers | Self::Args => Some(Self::Scalar),
            _ => None,
        }
    }

    fn map_values(self) -> Option<Self> {
        matches!(self, Self::Labels).then_some(Self::Scalar)
    }

    fn patch_strategy(self) -> PatchStrategy {
        match self {
            Self::Containers | Self::Env | Self::Finalizers | Self::Blank => PatchStrategy::parse("merge"),
            Self::Volumes => PatchStrategy::parse("merge,retainKeys"),
            Self::Strategy => PatchStrategy::parse("retainKeys"),
            Self::Selector => PatchStrategy::parse("replace"),
            _ => PatchStrategy::default(),
        }
    }

    fn merge_key(&self) -> Option<&str> {
        matches!(self, Self::Containers | Self::Env | Self::Volumes).then_some("name")
    }
}

fn check(target: Value, patch: Value, expected: Value) {
    let mut patched = target.clone();
    assert_eq!(
        apply(Schema::Root, &mut patched, &patch),
        Ok(()),
        "{target} with {patch}"
    );
    assert_eq!(patched, expected, "{target} with {patch}");
}

fn check_fails(target: Value, patch: Value, expected: &str) -> u16 {
    let mut patched = target.clone();
    let error = apply(Schema::Root, &mut patched, &patch).expect_err(&format!("{target} with {patch}"));
    assert_eq!(error.to_string(), expected);
    assert_eq!(patched, target, "untouched");
    error.status()
}

#[test]
fn strategies_are_read() {
    let strategy = PatchStrategy::parse("merge,retainKeys");
    assert_eq!(
        strategy,
        PatchStrategy {
            merge: true,
            replace: false,
            retain_keys: true
        }
    );
    assert!(PatchStrategy::parse("replace").replace);
    assert_eq!(PatchStrategy::parse(""), PatchStrategy::default());
}

#[test]
fn maps_are_merged_and_null_deletes() {
    check(
        json!({"labels": {"a": "1", "b": "2"}}),
        json!({"labels": {"a": null, "c": "3"}}),
        json!({"labels": {"b": "2", "c": "3"}}),
    );
    check(
        json!({"name": "x"}),
        json!({"name": null, "other": null}),
        json!({}),
    );
    check(
        json!({"name": "x"}),
        json!({"name": {"a": 1}}),
        json!({"name": {"a": 1}}),
    );
    check(
        json!({"selector": {"a": 1}}),
        json!({"selector": {"b": 2, "c": null}}),
        json!({"selector": {"b": 2}}),
    );
    check(
        json!({}),
        json!({"spec": {"name": "x", "labels": {"a": null}}}),
        json!({"spec": {"name": "x", "labels": {}}}),
    );
    check(
        json!({"unknown": {"l": [1], "a": 1}}),
        json!({"unknown": {"l": [2], "b": 2}}),
        json!({"unknown": {"l": [2], "a": 1, "b": 2}}),
    );
}

#[test]
fn directives_on_maps() {
    check(
        json!({"spec": {"name": "x", "labels": {}}}),
        json!({"spec": {"$patch": "replace", "name": "y"}}),
        json!({"spec": {"name": "y"}}),
    );
    check(
        json!({"spec": {"name": "x"}}),
        json!({"spec": {"$patch": "delete"}}),
        json!({"spec": {}}),
    );
    check(
        json!({"name": "x"}),
        json!({"$patch": "replace", "labels": {}}),
        json!({"labels": {}}),
    );
    check(
        json!({}),
        json!({"spec": {"$patch": "replace", "name": "y"}}),
        json!({}),
    );
    check(
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}),
        json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate"}}),
    );
    check_fails(
        json!({"spec": {}}),
        json!({"spec": {"$patch": "frob", "a": 1}}),
        "unknown patch type: frob in map: map[$patch:frob a:1]",
    );
    check_fails(
        json!({"spec": {}}),
        json!({"spec": {"$patch": "merge"}}),
        "unknown patch type: merge in map: map[$patch:merge]",
    );
    let status = check_fails(
        json!({"strategy": {}}),
        json!({"strategy": {"$retainKeys": ["type"], "other": 1}}),
        "invalid patch format of retainKeys",
    );
    assert_eq!(status, 400);
    check_fails(
        json!({"strategy": {}}),
        json!({"strategy": {"$retainKeys": "type"}}),
        "invalid patch format of retainKeys",
    );
}

#[test]
fn lists_of_maps_are_merged_by_key() {
    let target = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]});
    check(
        target.clone(),
        json!({"containers": [{"name": "b", "image": "3"}]}),
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]}),
    );
    check(
        target.clone(),
        json!({"containers": [{"name": "c", "x": null}]}),
        json!({"containers": [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
    );
    check(
        target.clone(),
        json!({"containers": [{"name": "b", "image": null}, {"name": "a"}]}),
        json!({"containers": [{"name": "b"}, {"name": "a", "image": "1"}]}),
    );
    check(
        target.clone(),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        json!({"containers": [{"name": "b", "image": "2"}]}),
    );
    check(
        target.clone(),
        json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}),
        json!({"containers": [{"name": "z"}]}),
    );
    check(
        target.clone(),
        json!({"containers": [{"$patch": "replace"}]}),
        json!({"containers": []}),
    );
    check(target.clone(), json!({"containers": null}), json!({}));
    check(target.clone(), json!({"containers": []}), target.clone());
    check(
        json!({}),
        json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "x": null}]}),
        json!({"containers": [{"name": "b"}]}),
    );
    check(
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["z"]}]}),
        json!({"containers": [{"name": "a", "args": ["z"],
            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]}),
    );
    check(
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
    );
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let target = json!({"containers": [{"name": "a"}]});
    let status = check_fails(
        target.clone(),
        json!({"containers": [{"image": "httpd"}]}),
        "map: map[image:httpd] does not contain declared merge key: name",
    );
    assert_eq!(status, 500);
    check_fails(
        target.clone(),
        json!({"containers": [{"$patch": "delete"}]}),
        "map: map[$patch:delete] does not contain declared merge key: name",
    );
    check_fails(
        target.clone(),
        json!({"containers": [{"$patch": "merge", "name": "a"}]}),
        "merging lists cannot yet be specified in the patch",
    );
    check_fails(
        target.clone(),
        json!({"containers": [{"$patch": "x", "name": "a"}]}),
        "unknown patch type: x in map: map[$patch:x name:a]",
    );
    check_fails(
        target.clone(),
        json!({"containers": ["a"]}),
        "list element types are not identical: [[map[name:a]] [a]]",
    );
    assert_eq!(
        check_fails(
            json!({"finalizers": [["a"]]}),
            json!({"finalizers": [["b"]]}),
            "lists of lists are not supported"
        ),
        422
    );
    check_fails(
        json!({"blank": [{"a": 1}]}),
        json!({"blank": [{"a": 1}]}),
        "cannot merge lists without merge key for struct",
    );
    assert_eq!(
        apply(Schema::Root, &mut json!([]), &json!({})),
        Err(StrategicError::NotAnObject)
    );
    assert_eq!(
        apply(Schema::Root, &mut json!({}), &json!("x")),
        Err(StrategicError::NotAnObject)
    );
}

#[test]
fn lists_of_scalars_are_united_or_replaced() {
    check(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["c", "a"]}),
        json!({"finalizers": ["c", "a", "b"]}),
    );
    check(
        json!({"finalizers": ["a", "b", "a"]}),
        json!({"finalizers": ["b"]}),
        json!({"finalizers": ["a", "b"]}),
    );
    check(
        json!({"containers": [{"name": "a", "args": ["x"]}]}),
        json!({"containers": [{"name": "a", "args": ["y"]}]}),
        json!({"containers": [{"name": "a", "args": ["y"]}]}),
    );
    check(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
        json!({"finalizers": ["a", "c"]}),
    );
    check(
        json!({"finalizers": ["a"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b"]}),
        json!({"finalizers": ["b"]}),
    );
    check(
        json!({}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
        json!({}),
    );
    check_fails(
        json!({}),
        json!({"$deleteFromPrimitiveList": ["a"]}),
        "invalid patch format of primitive list",
    );
}

#[test]
fn elements_are_ordered_as_told() {
    let named = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let ordered = |server: &[&str], patch: &[&str], order: &[&str], expected: &[&str]| {
        let mut change = json!({"$setElementOrder/containers": named(order)});
        if !patch.is_empty() {
            change["containers"] = named(patch);
        }
        check(
            json!({"containers": named(server)}),
            change,
            json!({"containers": named(expected)}),
        );
    };
    ordered(&["a", "b", "c"], &[], &["c", "b", "a"], &["c", "b", "a"]);
    ordered(&["a", "b"], &["c"], &["a", "b", "c"], &["a", "b", "c"]);
    ordered(&["a", "b"], &["c"], &["c", "a", "b"], &["c", "a", "b"]);
    // What only the server has keeps its place before what followed it.
    ordered(&["s", "a", "b"], &["c"], &["a", "b", "c"], &["s", "a", "b", "c"]);
    ordered(&["a", "s", "b"], &["c"], &["c", "a", "b"], &["c", "a", "s", "b"]);
    ordered(&["a", "b", "s"], &["c"], &["a", "b", "c"], &["a", "b", "c", "s"]);
    ordered(&["a", "s", "b"], &[], &["b", "a"], &["s", "b", "a"]);
    check(
        json!({"finalizers": ["a", "s", "b"]}),
        json!({"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}),
        json!({"finalizers": ["c", "s", "b"]}),
    );
    check(
        json!({}),
        json!({"$setElementOrder/containers": named(&["a"])}),
        json!({}),
    );
    check(
        json!({}),
        json!({"$setElementOrder/containers": named(&["b", "a"]), "containers": named(&["b", "a"])}),
        json!({"containers": named(&["b", "a"])}),
    );
    let delete = json!({"$setElementOrder/containers": named(&["b"]), "containers": [{"name": "a", "$patch": "delete"}]});
    check(
        json!({"containers": named(&["a", "b"])}),
        delete,
        json!({"containers": named(&["b"])}),
    );
}

#[test]
fn orders_that_do_not_fit_are_refused() {
    let target = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let order = |order: Value, list: Value| json!({"$setElementOrder/containers": order, "containers": list});
    check_fails(
        target.clone(),
        order(
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "b"}, {"name": "a"}]),
        ),
        "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]\n",
    );
    check_fails(
        target.clone(),
        order(json!([{"name": "a"}]), json!([{"name": "c"}])),
        "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
    );
    check_fails(
        target.clone(),
        order(json!([{"x": "a"}]), json!([{"name": "c"}])),
        "map: map[x:a] does not contain declared merge key: name",
    );
    check_fails(
        target.clone(),
        order(json!("x"), json!([])),
        "expected a []interface {}, but received a string",
    );
    check_fails(
        target.clone(),
        order(json!([]), json!({})),
        "expected a []interface {}, but received a map[string]interface {}",
    );
    check_fails(
        target,
        json!({"$setElementOrder": []}),
        "invalid patch format of setElementOrder list",
    );
}

#[test]
fn what_kubectl_apply_sends_is_understood() {
    let live = json!({"spec": {
        "containers": [
            {"name": "web", "image": "v1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "sidecar", "image": "s"},
        ],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    }});
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{
            "$setElementOrder/env": [{"name": "C"}, {"name": "A"}],
            "name": "web", "image": "v2",
            "env": [{"name": "C", "value": "3"}, {"$patch": "delete", "name": "B"}],
        }],
        "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
    }});
    check(
        live,
        patch,
        json!({"spec": {
            "containers": [
                {"name": "web", "image": "v2", "env": [{"name": "C", "value": "3"}, {"name": "A", "value": "1"}]},
                {"name": "sidecar", "image": "s"},
            ],
            "strategy": {"type": "Recreate"},
        }}),
    );
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(name, value)| name.starts_with('$') || has_directive(value)),
        Value::Array(items) => items.iter().any(has_directive),
        _ => false,
    }
}

proptest! {
    #[test]
    fn without_a_schema_it_is_a_merge_patch(target in any_value(), patch in any_value()) {
        if target.is_object() && patch.is_object() {
            let (mut strategic, mut plain) = (target.clone(), target);
            apply(NoSchema, &mut strategic, &patch).unwrap();
            merge_patch::apply(&mut plain, &patch);
            prop_assert_eq!(strategic, plain);
        }
    }

    #[test]
    fn merging_lists_loses_and_doubles_nothing(
        server in prop::collection::btree_set("[a-f]", 0..6),
        patch in prop::collection::btree_set("[a-f]", 0..6),
        seed in any::<u64>(),
    ) {
        let shuffled = |names: &std::collections::BTreeSet<String>, seed: u64| -> Vec<String> {
            let mut names: Vec<String> = names.iter().cloned().collect();
            names.sort_by_key(|name| seed.wrapping_mul(u64::from(name.as_bytes()[0])).rotate_left(17));
            names
        };
        let (server_list, patch_list) = (shuffled(&server, seed), shuffled(&patch, !seed));
        let mut target = json!({"finalizers": server_list});
        apply(Schema::Root, &mut target, &json!({"finalizers": patch_list})).unwrap();
        let merged: Vec<String> = serde_json::from_value(target["finalizers"].clone()).unwrap();
        let expected: std::collections::BTreeSet<String> = server.union(&patch).cloned().collect();
        prop_assert_eq!(merged.len(), expected.len());
        prop_assert_eq!(merged.iter().cloned().collect::<std::collections::BTreeSet<_>>(), expected);
        let of = |set: &std::collections::BTreeSet<String>| -> Vec<String> {
            merged.iter().filter(|name| set.contains(*name)).cloned().collect()
        };
        prop_assert_eq!(of(&patch), patch_list);
        let server_only: std::collections::BTreeSet<String> = server.difference(&patch).cloned().collect();
        let expected: Vec<String> = server_list.into_iter().filter(|name| server_only.contains(name)).collect();
        prop_assert_eq!(of(&server_only), expected);
    }

    #[test]
    fn no_directive_survives(
        target in any_value(),
        patch in prop::collection::btree_map(
            prop_oneof!["[a-c]", Just("$patch".to_owned()), Just("$retainKeys".to_owned()),
                Just("$setElementOrder/a".to_owned()), Just("$deleteFromPrimitiveList/a".to_owned()),
                Just("finalizers".to_owned()), Just("spec".to_owned())],
            prop_oneof![any_value(), Just(json!("replace")), Just(json!(["a", "b"])), Just(json!({"$patch": "delete"})),
                Just(json!([{"name": "x", "q": {"$retainKeys": ["y"], "y": null}}]))], 0..5),
    ) {
        let mut patched = json!({"spec": target});
        if apply(Schema::Root, &mut patched, &json!({"spec": patch})).is_ok() {
            prop_assert!(!has_directive(&patched), "{}", patched);
        }
    }
}
