//! Tests of whole validations, among them the recorded answers of a real server.

use serde_json::json;

use super::*;

/// The CRD of the recorded exchanges.
fn widget() -> CustomSchema {
    CustomSchema::new(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.replicas >= 0", "message": "replicas must be >= 0"}],
                "properties": {
                    "replicas": {"type": "integer", "default": 1},
                    "color": {"type": "string", "maxLength": 20},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}
                        }
                    }
                }
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }
    }))
    .unwrap()
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "lab.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn the_answers_are_those_on_record() {
    let schema = widget();
    let mut created = object(&json!({"color": "red"}));
    assert_eq!(schema.prune(&mut created), Vec::<String>::new());
    schema.apply_defaults(&mut created);
    assert_eq!(created["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(schema.validate(&created, None), []);

    let mut unknown = object(&json!({"bogus": 1}));
    assert_eq!(schema.prune(&mut unknown), ["spec.bogus"]);
    schema.apply_defaults(&mut unknown);
    assert_eq!(unknown["spec"], json!({"replicas": 1}));

    let errors = schema.validate(&object(&json!({"replicas": -1})), None);
    assert_eq!(texts(&errors), ["spec: Invalid value: replicas must be >= 0"]);
    let errors = schema.validate(&object(&json!({"replicas": "x"})), None);
    assert_eq!(
        texts(&errors),
        [
            "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ]
    );
    assert_eq!(errors[0].kind.reason(), "FieldValueTypeInvalid");
}

#[test]
fn the_scale_check_can_go_between() {
    let schema = widget();
    let bad = object(&json!({"replicas": -1}));
    let mut errors = Vec::new();
    schema.check_values(&bad, None, &mut errors);
    errors.push(FieldError::required(&FieldPath::new("between"), ""));
    schema.check_rest(&bad, None, &mut errors);
    assert_eq!(errors[0].field, "between");
    assert!(
        errors[1]
            .message
            .contains("some validation rules were not checked")
    );
}

#[test]
fn a_status_is_named_from_itself_on() {
    let schema = CustomSchema::new(&json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "required": ["a"]},
            "status": {
                "type": "object",
                "required": ["phase"],
                "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}
            }
        }
    }))
    .unwrap();
    let mut errors = Vec::new();
    schema.check_status_values(
        &json!({"spec": {}, "status": {"replicas": "x"}}),
        None,
        &mut errors,
    );
    assert_eq!(
        texts(&errors),
        [
            "status.replicas: Invalid value: \"string\": replicas in body must be of type integer: \"string\"",
            "status.phase: Required value",
        ]
    );
    let old = json!({"status": {"replicas": "x"}});
    errors.clear();
    schema.check_status_values(
        &json!({"status": {"replicas": "x", "phase": "a"}}),
        Some(&old),
        &mut errors,
    );
    assert_eq!(texts(&errors), Vec::<String>::new());
}

/// No limit on the time, which depends on the machine and the build; it is printed for whoever tunes the walks.
#[test]
fn a_typical_object_is_walked_often() {
    let schema = widget();
    let ports: Vec<Value> = (0..80)
        .map(|n| json!({"name": format!("port-{n}"), "port": n}))
        .collect();
    let object = object(&json!({"replicas": 3, "color": "red", "ports": ports}));
    let size = object.to_string().len();
    let rounds: u32 = 200;
    let mut copies = vec![object.clone(); rounds as usize];
    let start = std::time::Instant::now();
    for copy in &mut copies {
        assert!(schema.prune(copy).is_empty());
        schema.apply_defaults(copy);
        assert!(schema.validate(copy, None).is_empty());
    }
    println!(
        "{size} bytes: {:?} for prune, default, validate and one rule",
        start.elapsed() / rounds
    );
    let start = std::time::Instant::now();
    for copy in &copies {
        let mut errors = Vec::new();
        schema.check_values(copy, Some(&object), &mut errors);
        assert!(errors.is_empty());
    }
    println!(
        "{size} bytes: {:?} for the values alone",
        start.elapsed() / rounds
    );
}

#[test]
fn the_same_declaration_is_built_once_while_it_is_used() {
    let declared = |least: Value| json!({"type": "object", "properties": {"shared": {"type": "number", "minimum": least}}});
    let one = CustomSchema::new(&declared(json!(1))).unwrap();
    let same = CustomSchema::new(&declared(json!(1))).unwrap();
    assert!(Arc::ptr_eq(&one.0, &same.0));
    // Another spelling has the same hash, and is another declaration.
    let other = CustomSchema::new(&declared(json!(1.0))).unwrap();
    assert!(!Arc::ptr_eq(&one.0, &other.0));
    assert_eq!(other.declared(), &declared(json!(1.0)));
}
