use serde_json::json;

use super::*;

#[test]
fn metadata_is_that_of_the_built_in_kinds() {
    let own: Value = serde_json::from_str(OBJECT_META).unwrap();
    let components = machinery_kinds::schemas::components();
    for (name, schema) in own.as_object().unwrap() {
        assert_eq!(Some(schema), components.get(name), "{name}");
    }
}

fn places(schema: &Value, check: impl Fn(Shape<'_>)) {
    let set = SchemaSet::from_crd(schema).unwrap();
    check(Shape::custom(set.root("").unwrap()));
}

#[test]
fn a_custom_resource_has_metadata_and_kind() {
    places(
        &json!({"type": "object", "properties": {"metadata": {"type": "object"}}}),
        |root| {
            assert_eq!(root.field("kind").scalar(), Scalar::Text);
            let finalizers = root.field("metadata").field("finalizers");
            assert!(matches!(finalizers.elements(), Elements::Set));
            assert!(root.declared("spec").is_none() && root.undeclared().is_none());
        },
    );
}

#[test]
fn unknown_fields_are_deduced_below_where_they_are_kept() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
        "closed": {"type": "object", "properties": {"a": {"type": "string"}}},
        "bare": {"type": "object"},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true},
    }});
    places(&schema, |root| {
        let deduced = |shape: Shape<'_>| matches!(shape.undeclared(), Some(Shape(Place::Deduced)));
        assert!(deduced(root.field("spec")));
        assert!(deduced(root.field("spec").field("inner")));
        assert!(deduced(root.field("bare")) && root.field("bare").unknown_object());
        assert!(root.field("closed").undeclared().is_none());
        assert!(root.field("template").undeclared().is_none());
        assert!(
            root.field("template")
                .field("metadata")
                .declared("labels")
                .is_some()
        );
    });
}

#[test]
fn raw_extensions_have_one_owner() {
    let revision =
        machinery_kinds::schemas::schema(machinery_kinds::Gvk::new("apps", "v1", "ControllerRevision"));
    let data = Shape::built_in(revision.unwrap()).field("data");
    assert!(data.atomic_object());
    assert_eq!(data.form(Some(&json!([1]))), Form::List);
}
