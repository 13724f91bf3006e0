use serde_json::json;

use super::*;
use crate::managed::Time;
use crate::path::PathElement;
use crate::reset::Reset;

fn conflict(manager: &str, operation: Operation, subresource: &str, path: &[&str]) -> Conflict {
    Conflict {
        manager: Identity::new(manager, operation, "apps/v1", subresource),
        path: Path::of_fields(path),
    }
}

#[test]
fn conflicts_read_as_the_server_words_them() {
    let image = Conflict {
        manager: Identity::new("m1", Operation::Apply, "apps/v1", ""),
        path: Path(vec![
            PathElement::field("containers"),
            PathElement::key([("name", json!("c"))]),
            PathElement::field("image"),
        ]),
    };
    let cases = [
        (
            vec![image.clone()],
            r#"Apply failed with 1 conflict: conflict with "m1": .containers[name="c"].image"#,
        ),
        (
            vec![conflict("k", Operation::Update, "scale", &["spec", "replicas"])],
            r#"Apply failed with 1 conflict: conflict with "k" with subresource "scale" using apps/v1: .spec.replicas"#,
        ),
        (
            vec![
                conflict("z", Operation::Update, "", &["b"]),
                image,
                conflict("z", Operation::Update, "", &["a"]),
            ],
            "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .containers[name=\"c\"].image\nconflicts with \"z\" using apps/v1:\n- .b\n- .a",
        ),
    ];
    for (conflicts, message) in cases {
        assert_eq!(Conflicts(conflicts).to_string(), message);
    }
}

fn write<'a>(versions: &'a dyn crate::shape::Versions, reset: &'a Reset) -> Write<'a> {
    Write {
        versions,
        api_version: "v1",
        kind: "K",
        subresource: "",
        reset,
        manager: "m",
        now: Time::from_seconds(1_700_000_000).unwrap(),
        empty: &Value::Null,
    }
}

#[test]
fn a_second_apply_of_the_same_changes_nothing() {
    let versions: &[(&str, Shape<'_>)] = &[("v1", Shape::deduced())];
    let (reset, wanted) = (
        Reset::default(),
        json!({"apiVersion": "v1", "kind": "K", "a": {"b": 1}}),
    );
    let first = apply(&write(&versions, &reset), &json!({}), &wanted, false).unwrap();
    assert!(first.changed);
    let mut later = write(&versions, &reset);
    later.now = Time::from_seconds(1_800_000_000).unwrap();
    let second = apply(&later, &first.object, &wanted, false).unwrap();
    assert_eq!((second.changed, &second.object), (false, &first.object));

    // A store may keep contents without their type.
    let mut content = first.object.clone();
    content
        .as_object_mut()
        .unwrap()
        .retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    assert_eq!(apply(&later, &content, &wanted, false), Ok(second));
}

#[test]
fn odd_requests_are_answered() {
    let versions: &[(&str, Shape<'_>)] = &[("v1", Shape::deduced())];
    let reset = Reset::default();
    let bad = json!({"metadata": {"managedFields": [{"operation": "x"}]}});
    let wanted = json!({"apiVersion": "v1", "kind": "K"});
    let cases = [
        (
            json!({}),
            json!({"apiVersion": "apps/v1", "kind": "K"}),
            "invalid object type: apps/v1, Kind=K",
        ),
        (json!({}), json!([]), "invalid object type: /, Kind="),
        (
            bad,
            wanted.clone(),
            "failed to decode managed fields: operation must be `Apply` or `Update`",
        ),
    ];
    for (live, sent, message) in cases {
        let error = apply(&write(&versions, &reset), &live, &sent, false).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let mut gone = write(&versions, &reset);
    gone.api_version = "v9";
    let sent = json!({"apiVersion": "v9", "kind": "K"});
    assert!(matches!(
        apply(&gone, &json!({}), &sent, true),
        Err(ApplyError::Failed(_))
    ));
}
