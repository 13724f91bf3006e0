use serde_json::json;

use super::*;

fn namespaced() -> Claim {
    Claim {
        kind: ClaimKind::Namespaced,
        id: "id-1".into(),
        namespace: "shop".into(),
        name: "p".into(),
    }
}

fn cluster() -> Claim {
    Claim {
        kind: ClaimKind::Cluster,
        id: "id-2".into(),
        namespace: String::new(),
        name: "c".into(),
    }
}

/// The labels and annotations of both claims.
fn marks() -> [(&'static str, &'static str, &'static str); 5] {
    [
        ("labels", keys::PP_ID, "id-1"),
        ("annotations", keys::PP_NAMESPACE, "shop"),
        ("annotations", keys::PP_NAME, "p"),
        ("labels", keys::CPP_ID, "id-2"),
        ("annotations", keys::CPP_NAME, "c"),
    ]
}

/// An object with those of the marks that a mask names.
fn marked(mask: u32, value: impl Fn(&'static str) -> &'static str) -> Value {
    let mut object = json!({ "metadata": { "name": "web", "labels": { "app": "a" } } });
    for (index, (field, key, text)) in marks().into_iter().enumerate() {
        if mask & (1 << index) != 0 {
            object["metadata"][field][key] = json!(value(text));
        }
    }
    object
}

fn metadata(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap()
}

#[test]
fn only_a_whole_claim_counts() {
    for mask in 0..32 {
        // All three marks of a PropagationPolicy, else both of a ClusterPropagationPolicy.
        let expected = if mask & 0b111 == 0b111 {
            Some(namespaced())
        } else if mask & 0b11000 == 0b11000 {
            Some(cluster())
        } else {
            None
        };
        let object = marked(mask, |text| text);
        assert_eq!(Claim::on_template(&object), expected, "{mask:05b}");
        assert_eq!(Claim::on_binding(&metadata(&object)), expected, "{mask:05b}");
    }
}

#[test]
fn an_empty_mark_is_none() {
    for empty in 0..5 {
        let text = marks()[empty].2;
        let object = marked(0b11111, |value| if value == text { "" } else { value });
        let expected = if empty < 3 { cluster() } else { namespaced() };
        assert_eq!(Claim::on_template(&object), Some(expected), "{empty}");
    }
    assert_eq!(Claim::on_template(&marked(0b11111, |_| "")), None);
}

#[test]
fn marking_leaves_exactly_one_claim_and_the_rest_alone() {
    for mask in 0..32 {
        for claim in [None, Some(namespaced()), Some(cluster())] {
            let expected = marked(
                match &claim {
                    None => 0,
                    Some(claim) if claim.kind == ClaimKind::Namespaced => 0b111,
                    Some(_) => 0b11000,
                },
                |text| text,
            );
            let before = marked(mask, |text| text);

            let mut object = before.clone();
            let changed = Claim::mark_template(claim.as_ref(), &mut object);
            assert_eq!(object, expected, "{mask:05b}");
            assert_eq!(changed, before != expected, "{mask:05b}");
            assert!(
                !Claim::mark_template(claim.as_ref(), &mut object),
                "a second time"
            );

            let mut metadata = metadata(&before);
            Claim::mark_binding(claim.as_ref(), &mut metadata);
            assert_eq!(Claim::on_binding(&metadata), claim);
            assert_eq!(metadata, self::metadata(&expected), "{mask:05b}");
        }
    }
}

#[test]
fn marking_is_no_change_where_there_is_nothing_to_remove() {
    for object in [
        json!({ "metadata": { "name": "web" } }),
        json!({ "metadata": { "name": "web", "labels": {}, "annotations": {} } }),
        json!({ "metadata": { "name": "web", "labels": null } }),
        json!({ "metadata": null }),
        json!({}),
        json!(null),
    ] {
        let mut marked = object.clone();
        assert!(!Claim::mark_template(None, &mut marked), "{object}");
        assert_eq!(marked, object);
    }
}

#[test]
fn a_policy_claims_with_its_id() {
    let policy = |namespace: &str, labels: Value| -> PropagationPolicy {
        serde_json::from_value(json!({ "metadata": {
            "namespace": namespace, "name": "p", "uid": "uid-1", "labels": labels,
        } }))
        .unwrap()
    };
    let table = [
        (policy("shop", json!({})), ClaimKind::Namespaced, "uid-1"),
        (policy("", json!({})), ClaimKind::Cluster, "uid-1"),
        // Restored from a backup, with the id that it had.
        (
            policy("shop", json!({ keys::PP_ID: "old" })),
            ClaimKind::Namespaced,
            "old",
        ),
        (
            policy("", json!({ keys::CPP_ID: "old" })),
            ClaimKind::Cluster,
            "old",
        ),
    ];
    for (policy, kind, id) in table {
        let claim = Claim::by(&policy);
        assert_eq!(
            (claim.kind, claim.id.as_str(), claim.name.as_str()),
            (kind, id, "p")
        );
        assert_eq!(claim.namespace, policy.metadata.namespace);
    }
}
