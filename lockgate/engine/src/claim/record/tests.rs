use serde_json::json;

use super::*;

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "shop", "name": "web", "uid": "uid-1", "resourceVersion": "10", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": { "app": "a" },
            "managedFields": [{ "manager": "kubectl" }],
        },
        "spec": { "replicas": 2 },
        "status": { "replicas": 1 },
    })
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": "web", "uid": "uid-1", "resourceVersion": "10" },
        "data": { "key": "value" },
    })
}

fn priority_class() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": "high", "uid": "uid-1", "resourceVersion": "10", "generation": 1 },
        "value": 10,
    })
}

fn change(before: &Value, edit: impl FnOnce(&mut Value)) -> Change {
    let record = Record::of(before);
    let mut after = before.clone();
    edit(&mut after);
    record.compare(&after, &ContentHashes::of(&after))
}

/// A place in an object, and what is written there.
type Edit = (&'static str, Value);

fn write(object: &mut Value, edits: &[Edit]) {
    for (pointer, value) in edits {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        let mut at = &mut *object;
        for part in parent.split('/').skip(1) {
            at = &mut at[part];
        }
        at[key.as_str()] = value.clone();
    }
}

#[test]
fn what_counts_as_the_users_change() {
    let moved = || ("/metadata/generation", json!(4));
    let table: Vec<(&str, Value, Vec<Edit>, Change)> = vec![
        ("nothing", deployment(), vec![], Change::None),
        (
            "status, managers and version",
            deployment(),
            vec![
                ("/status/replicas", json!(2)),
                ("/metadata/managedFields", json!([])),
                ("/metadata/resourceVersion", json!("11")),
            ],
            Change::None,
        ),
        (
            "our claim",
            deployment(),
            vec![
                (
                    "/metadata/labels/propagationpolicy.karmada.io~1permanent-id",
                    json!("id"),
                ),
                (
                    "/metadata/annotations/propagationpolicy.karmada.io~1name",
                    json!("p"),
                ),
                moved(),
            ],
            Change::ByClaim,
        ),
        (
            "our claim on a kind without generation",
            config_map(),
            vec![(
                "/metadata/labels/propagationpolicy.karmada.io~1permanent-id",
                json!("id"),
            )],
            Change::None,
        ),
        ("generation alone", deployment(), vec![moved()], Change::ByClaim),
        (
            "an annotation",
            deployment(),
            vec![("/metadata/annotations/reconcileAt", json!("now")), moved()],
            Change::ByUser,
        ),
        (
            "an annotation on a kind that does not count them",
            config_map(),
            vec![("/metadata/annotations/reconcileAt", json!("now"))],
            Change::ByUser,
        ),
        (
            "replicas",
            deployment(),
            vec![("/spec/replicas", json!(3)), moved()],
            Change::ByUser,
        ),
        (
            "data",
            config_map(),
            vec![("/data/key", json!("other"))],
            Change::ByUser,
        ),
        (
            "a system label",
            deployment(),
            vec![("/metadata/labels/foo.karmada.io~1bar", json!("x"))],
            Change::None,
        ),
        (
            "a system annotation",
            deployment(),
            vec![
                (
                    "/metadata/annotations/work.karmada.io~1conflict-resolution",
                    json!("overwrite"),
                ),
                moved(),
            ],
            Change::ByClaim,
        ),
        (
            "a label of the user's, though it sounds alike",
            deployment(),
            vec![("/metadata/labels/karmada.io~1foo", json!("x"))],
            Change::ByUser,
        ),
        (
            "auto propagation",
            deployment(),
            vec![(
                "/metadata/labels/namespace.karmada.io~1skip-auto-propagation",
                json!("true"),
            )],
            Change::ByUser,
        ),
        (
            "a label",
            deployment(),
            vec![("/metadata/labels/app", json!("b"))],
            Change::ByUser,
        ),
        (
            "a finalizer",
            deployment(),
            vec![("/metadata/finalizers", json!(["example.org/x"]))],
            Change::ByUser,
        ),
        (
            "an owner",
            deployment(),
            vec![("/metadata/ownerReferences", json!([{ "name": "x" }]))],
            Change::ByUser,
        ),
        (
            "empty maps and lists",
            deployment(),
            vec![
                ("/metadata/annotations", json!({})),
                ("/metadata/finalizers", json!([])),
            ],
            Change::None,
        ),
        (
            "a default",
            deployment(),
            vec![("/spec/paused", json!(false))],
            Change::ByDefaults,
        ),
        (
            "an edit",
            deployment(),
            vec![("/spec/paused", json!(false)), moved()],
            Change::ByUser,
        ),
        (
            "re-created",
            deployment(),
            vec![
                ("/metadata/uid", json!("uid-2")),
                ("/metadata/generation", json!(1)),
            ],
            Change::ByUser,
        ),
        (
            "re-created, and equal",
            config_map(),
            vec![("/metadata/uid", json!("uid-2"))],
            Change::ByUser,
        ),
        (
            "a generation that means nothing",
            priority_class(),
            vec![("/description", json!("x"))],
            Change::ByUser,
        ),
        (
            "a new generation at the same content",
            priority_class(),
            vec![moved()],
            Change::None,
        ),
        // Storage restored from a backup: an older generation is another one too.
        (
            "restored",
            deployment(),
            vec![("/spec/replicas", json!(1)), ("/metadata/generation", json!(2))],
            Change::ByUser,
        ),
    ];
    for (name, before, edits, expected) in table {
        assert_eq!(
            change(&before, |object| write(object, &edits)),
            expected,
            "{name}"
        );
    }
}

#[test]
fn the_order_of_fields_is_no_change() {
    let record = Record::of(&deployment());
    let text = r#"{"status":{},"spec":{"replicas":2},"metadata":{"generation":3,"labels":{"app":"a"},"uid":"uid-1",
        "name":"web","namespace":"shop"},"kind":"Deployment","apiVersion":"apps/v1"}"#;
    let same: Value = serde_json::from_str(text).unwrap();
    assert_eq!(record.compare(&same, &ContentHashes::of(&same)), Change::None);
}

#[test]
fn records_are_read_back_as_they_were_written() {
    let record = Record::of(&deployment()).by("id-1", 7);
    let mut template = deployment();
    template["metadata"]["annotations"][keys::ACTIVATED] = json!(record.encode());
    assert_eq!(Record::find(&template, None), Some(record.clone()));

    let mut binding = Binding::default();
    assert_eq!(
        Record::find(&template, Some(&binding)),
        None,
        "the binding's word counts alone"
    );
    let other = record.by("id-2", 1);
    binding
        .metadata
        .annotations
        .insert(keys::ACTIVATED.to_owned(), other.encode());
    assert_eq!(Record::find(&template, Some(&binding)), Some(other));
}

#[test]
fn what_is_not_a_whole_record_is_none() {
    let whole = Record::of(&deployment());
    let without = |field: &str| {
        let mut record = serde_json::to_value(&whole).unwrap();
        record.as_object_mut().unwrap().remove(field);
        record.to_string()
    };
    let table = [
        ("not json".to_owned(), false),
        (String::new(), false),
        ("null".to_owned(), false),
        ("{}".to_owned(), false),
        (without("uid"), false),
        (without("metadata"), false),
        (without("content"), false),
        (without("generation"), true),
        (whole.encode(), true),
        (whole.encode().replace('}', r#","later":1}"#), true),
    ];
    for (text, expected) in table {
        let mut template = deployment();
        template["metadata"]["annotations"][keys::ACTIVATED] = json!(text);
        assert_eq!(Record::find(&template, None).is_some(), expected, "{text}");
    }
}

#[test]
fn a_record_on_a_template_knows_what_its_own_write_does() {
    let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": { "generation": 3 } });
    let widget =
        json!({ "apiVersion": "example.org/v1", "kind": "Deployment", "metadata": { "generation": 3 } });
    let relabelled = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["labels"] = json!({ keys::PP_ID: "id" });
        object
    };
    let table = [
        (deployment(), relabelled(&deployment()), 4),
        (deployment(), deployment(), 4),
        (slice.clone(), relabelled(&slice), 4),
        (slice.clone(), slice, 3),
        (widget.clone(), relabelled(&widget), 3),
        (config_map(), relabelled(&config_map()), 0),
    ];
    for (before, marked, expected) in table {
        let record = Record::of(&before).on_template(&before, &marked);
        assert_eq!(record.generation, expected, "{}", before["kind"]);
    }
}

#[test]
fn requests_are_asked_once() {
    // The template's request, the recorded one, whether it is asked.
    let table = [
        (None, None, false),
        (Some(""), None, false),
        (Some("a"), None, true),
        (Some("a"), Some("a"), false),
        (Some("b"), Some("a"), true),
        (None, Some("a"), false),
    ];
    for (request, recorded, expected) in table {
        let mut template = config_map();
        let mut record = Record::of(&template);
        record.request = recorded.map(str::to_owned);
        template["metadata"]["annotations"] = json!({ keys::ACTIVATED: record.encode() });
        if let Some(request) = request {
            template["metadata"]["annotations"][keys::ACTIVATE] = json!(request);
        }
        let past = Past::of(&template, None);
        assert_eq!(past.asked, expected, "{request:?} {recorded:?}");
        assert_eq!(past.change, Change::None, "a request is no change");
    }
}

#[test]
fn what_was_activated_is_remembered_while_defaults_move_it() {
    let before = deployment();
    let activated = Record::of(&before).by("p", 1);
    assert_eq!(activated.basis, None);
    let mut defaulted = before.clone();
    defaulted["spec"]["paused"] = json!(false);
    let once = activated.following(&defaulted);
    assert_eq!(once.basis.as_ref(), Some(&activated.content));
    assert_eq!(
        once.compare(&defaulted, &ContentHashes::of(&defaulted)),
        Change::None
    );
    let mut again = defaulted.clone();
    again["spec"]["progressDeadlineSeconds"] = json!(600);
    assert_eq!(once.following(&again).basis, Some(activated.content.clone()));
    // The default goes again, or the template is activated as it is now.
    assert_eq!(once.following(&before), activated);
    assert_eq!(Record::of(&defaulted).basis, None);
}

/// Records of newer controllers may say more, and those of older ones less.
#[test]
fn records_of_other_versions_are_read() {
    let template = deployment();
    let record = Record::of(&template).by("p", 1);
    let mut more: Value = serde_json::from_str(&record.encode()).unwrap();
    more["unheard"] = json!({ "of": true });
    let mut binding = Binding::default();
    binding
        .metadata
        .annotations
        .insert(keys::ACTIVATED.to_owned(), more.to_string());
    assert_eq!(Record::find(&template, Some(&binding)), Some(record));
}
