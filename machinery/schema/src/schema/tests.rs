//! Tests of building schemas and of what they say.

use serde_json::json;

use super::*;
use crate::merge::Ownership;

fn components() -> SchemaSet {
    SchemaSet::from_components(&json!({
        "Props": {
            "type": "object",
            "properties": {
                "items": {"$ref": "#/components/schemas/Props"},
                "not": {"allOf": [{"$ref": "#/components/schemas/Props"}], "description": "wrapped", "default": {}},
                "properties": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Props"}},
                "name": {"type": "string", "default": "x"}
            }
        },
        "Atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "Alias": {"$ref": "#/components/schemas/Atomic"},
        "Spec": {
            "type": "object",
            "properties": {
                "claim": {
                    "allOf": [{"$ref": "#/components/schemas/Atomic"}],
                    "x-kubernetes-map-type": "granular"
                },
                "strategy": {
                    "allOf": [{"$ref": "#/components/schemas/Atomic"}],
                    "x-kubernetes-patch-strategy": "retainKeys"
                },
                "plain": {"$ref": "#/components/schemas/Atomic"},
                "ports": {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/Atomic"},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a"],
                    "x-kubernetes-patch-merge-key": "a",
                    "x-kubernetes-patch-strategy": "merge"
                },
                "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "args": {"type": "array", "items": {"type": "string"}}
            }
        }
    }))
    .unwrap()
}

#[test]
fn references_may_form_cycles() {
    let set = components();
    let root = set.root("Props").unwrap();
    let deep = root
        .property("not")
        .unwrap()
        .property("items")
        .unwrap()
        .property("not")
        .unwrap();
    assert_eq!(deep.property("name").unwrap().default_value(), Some(&json!("x")));
    let value = root.property("properties").unwrap().field("anything").unwrap();
    assert!(value.property("items").is_some());
    let mut object = json!({"items": {"not": {}}, "properties": {"p": {}}});
    crate::apply_defaults(root, &mut object);
    assert_eq!(
        object,
        json!({"name": "x", "items": {"name": "x", "not": {"name": "x"}}, "properties": {"p": {"name": "x"}}})
    );
}

#[test]
fn fields_may_say_more_than_the_schema_they_refer_to() {
    let set = components();
    let spec = set.root("Spec").unwrap();
    let ownership = |name: &str| spec.property(name).unwrap().ownership();
    assert_eq!(ownership("claim"), Ownership::Fields);
    assert_eq!(ownership("plain"), Ownership::Atomic);
    assert_eq!(ownership("ports"), Ownership::Keyed(&["a".into()]));
    assert_eq!(ownership("finalizers"), Ownership::Set);
    assert_eq!(ownership("args"), Ownership::Atomic);
    assert_eq!(set.root("Alias").unwrap().ownership(), Ownership::Atomic);
    assert_eq!(
        spec.property("strategy").unwrap().patch_strategy(),
        Some("retainKeys")
    );
    assert_eq!(spec.property("strategy").unwrap().ownership(), Ownership::Atomic);
    assert!(spec.property("strategy").unwrap().property("a").is_some());
    assert_eq!(spec.property("ports").unwrap().patch_merge_key(), Some("a"));
}

#[test]
fn schemas_that_cannot_be_represented_are_refused() {
    for (schema, text) in [
        (json!([]), "<nil>: must be an object"),
        (
            json!({"properties": {"a": {"maxLength": "x"}}}),
            "properties[a].maxLength: must be an integer",
        ),
        (json!({"required": "a"}), "required: must be an array"),
        (
            json!({"x-kubernetes-validations": [1]}),
            "x-kubernetes-validations[0]: must be an object",
        ),
    ] {
        assert_eq!(SchemaSet::from_crd(&schema).unwrap_err().to_string(), text);
    }
    let dangling = json!({"A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}}});
    assert_eq!(
        SchemaSet::from_components(&dangling).unwrap_err(),
        SchemaError::UnknownRef("B".to_owned())
    );
    let mut deep = json!({"type": "string"});
    for _ in 0..300 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(matches!(
        SchemaSet::from_crd(&deep),
        Err(SchemaError::TooLarge(_))
    ));
}

#[test]
fn strategic_patches_merge_by_the_keys_of_the_schema() {
    let set = components();
    let mut object = json!({"ports": [{"a": "x", "n": 1}, {"a": "y"}], "args": ["1"]});
    let patch = json!({"ports": [{"a": "x", "n": 2}], "args": ["2"]});
    machinery_value::strategic::apply(set.root("Spec").unwrap(), &mut object, &patch).unwrap();
    assert_eq!(
        object,
        json!({"ports": [{"a": "x", "n": 2}, {"a": "y"}], "args": ["2"]})
    );
}
