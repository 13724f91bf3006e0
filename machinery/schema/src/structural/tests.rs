//! Tests of what the recorded behaviour does not cover.

use serde_json::json;

use super::*;

fn check(schema: &Value, status_subresource: bool) -> Vec<String> {
    let path = FieldPath::from("spec.versions[0].schema.openAPIV3Schema");
    let errors = check_crd_schema(schema, &path, StructuralOptions { status_subresource });
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_status_subresource_restricts_the_root() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]});
    assert_eq!(check(&schema, false), Vec::<String>::new());
    let errors = check(&schema, true);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0]
            .contains("fields are allowed at the root of the schema if the status subresource is enabled")
    );
    for (keyword, name) in [
        ("x-kubernetes-list-map-keys", "XListMapKeys"),
        ("maxItems", "MaxItems"),
        ("x-kubernetes-validations", "XValidations"),
    ] {
        assert_eq!(go_field_name(keyword), name);
    }
}

#[test]
fn what_is_no_schema_is_an_error_and_nothing_worse() {
    for schema in [
        json!(null),
        json!("x"),
        json!({"type": 1}),
        json!({"properties": []}),
        json!({"items": 3}),
    ] {
        assert!(!check(&schema, true).is_empty(), "{schema}");
    }
}
