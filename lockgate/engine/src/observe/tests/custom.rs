//! Kinds without rules of their own: what they say by the customary conditions.

use serde_json::{Value, json};

use machinery_value::encode::encoded_len;

use super::super::{Health, Observed, STATUS_BYTES, observe, observe_by};
use crate::interpret::Interpreters;

fn health(generation: i64, status: Value) -> Health {
    observe(&json!({
        "apiVersion": "example.com/v1", "kind": "Boat",
        "metadata": {"name": "ark", "generation": generation},
        "status": status,
    }))
    .health
}

fn conditions(said: &[(&str, &str)]) -> Value {
    let said = said
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status}));
    Value::Array(said.collect())
}

#[test]
fn the_customary_conditions_count() {
    use Health::{Healthy, Unhealthy, Unknown};
    let table: &[(&[(&str, &str)], Health)] = &[
        (&[], Healthy),
        (&[("Ready", "True")], Healthy),
        (&[("Ready", "False")], Unhealthy),
        (&[("Ready", "Unknown")], Unknown),
        (&[("Available", "True")], Healthy),
        (&[("Available", "False")], Unhealthy),
        // Ready says more than Available.
        (&[("Available", "False"), ("Ready", "True")], Healthy),
        (&[("Available", "True"), ("Ready", "False")], Unhealthy),
        (&[("Stalled", "True")], Unhealthy),
        (&[("Stalled", "False")], Healthy),
        (&[("Failed", "True"), ("Ready", "True")], Unhealthy),
        (&[("Reconciling", "True")], Healthy),
        (&[("Ready", "")], Unhealthy),
    ];
    for (said, expected) in table {
        assert_eq!(
            health(1, json!({"conditions": conditions(said)})),
            *expected,
            "{said:?}"
        );
    }
}

#[test]
fn what_was_said_of_an_older_object_does_not_count() {
    let ready = conditions(&[("Ready", "True")]);
    assert_eq!(
        health(2, json!({"observedGeneration": 1, "conditions": ready})),
        Health::Unhealthy
    );
    assert_eq!(
        health(2, json!({"observedGeneration": 2, "conditions": ready})),
        Health::Healthy
    );
    let own =
        |generation: i64| json!([{"type": "Ready", "status": "True", "observedGeneration": generation}]);
    assert_eq!(health(2, json!({"conditions": own(1)})), Health::Unhealthy);
    assert_eq!(health(2, json!({"conditions": own(2)})), Health::Healthy);
}

#[test]
fn nonsense_is_healthy_or_not_but_no_panic() {
    for status in [
        json!(null),
        json!(3),
        json!([]),
        json!({"conditions": "x"}),
        json!({"conditions": [1, null, {}]}),
    ] {
        assert_eq!(health(1, status), Health::Healthy);
    }
    assert_eq!(health(1, json!({"observedGeneration": "many"})), Health::Healthy);
}

#[test]
fn a_status_that_is_too_long_is_left_out_and_told() {
    let boat = |bytes: usize| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Boat",
            "metadata": {"name": "ark"},
            "status": {"log": "x".repeat(bytes)},
        })
    };
    let longest = boat(STATUS_BYTES - encoded_len(&json!({"log": ""})));
    let (seen, trouble) = observe_by(&longest, None);
    assert_eq!((seen.health, trouble), (Health::Healthy, None));
    assert!(seen.status.is_some());
    let (seen, trouble) = observe_by(&boat(STATUS_BYTES), None);
    let unkept = |health: Health| Observed { status: None, health };
    assert_eq!(seen, unkept(Health::Healthy));
    let mut failing = boat(STATUS_BYTES);
    failing["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    assert_eq!(observe_by(&failing, None).0, unkept(Health::Unhealthy));
    let trouble = trouble.unwrap();
    assert_eq!(trouble.reason, "StatusTooLong");
    assert!(
        trouble
            .message
            .contains("has 524298 bytes, of which at most 524288 are kept")
    );
    // A script says which part is kept, and is named where that is too long.
    let customization = |bytes: usize| {
        let script =
            format!("function ReflectStatus(o) return {{log = string.sub(o.status.log, 1, {bytes})}} end");
        serde_json::from_value(json!({
            "metadata": {"name": "boats"},
            "spec": {
                "target": {"apiVersion": "example.com/v1", "kind": "Boat"},
                "customizations": {"statusReflection": {"luaScript": script}},
            },
        }))
        .unwrap()
    };
    let seen_by = |bytes: usize| {
        let interpreters = Interpreters::of([&customization(bytes)]);
        observe_by(&boat(STATUS_BYTES), interpreters.of_object(&boat(0)).as_deref())
    };
    let (seen, trouble) = seen_by(3);
    assert_eq!((seen.status, trouble), (Some(json!({"log": "xxx"})), None));
    let (seen, trouble) = seen_by(STATUS_BYTES);
    assert_eq!(seen, unkept(Health::Healthy));
    let trouble = trouble.unwrap();
    assert_eq!(
        (trouble.reason, trouble.event),
        ("ScriptFailed", "ReflectStatusFailed")
    );
    assert!(
        trouble
            .message
            .starts_with("ResourceInterpreterCustomization boats, statusReflection: ")
    );
}
