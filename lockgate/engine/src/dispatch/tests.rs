use serde_json::json;

use super::*;

fn manifest() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop",
            "labels": {"app": "web", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "w"},
            "annotations": {
                "work.karmada.io/name": "web-1", "work.karmada.io/namespace": "karmada-es-member1",
                "work.karmada.io/conflict-resolution": "abort",
                "resourcetemplate.karmada.io/managed-labels": "app,karmada.io/managed,work.karmada.io/permanent-id",
                "resourcetemplate.karmada.io/managed-annotations": "work.karmada.io/name",
            },
        },
        "spec": {"replicas": 2, "strategy": {"type": "Recreate"}},
    })
}

/// The member's object right after the manifest was sent.
fn live() -> Value {
    let mut live = manifest();
    let metadata = live["metadata"].as_object_mut().unwrap();
    for (field, value) in [
        ("uid", json!("u")),
        ("resourceVersion", json!("10")),
        ("generation", json!(1)),
        ("creationTimestamp", json!("2026-11-15T08:59:21Z")),
    ] {
        metadata.insert(field.to_owned(), value);
    }
    live["status"] = json!({"replicas": 2});
    live
}

fn last_applied() -> LastApplied {
    LastApplied {
        work_generation: 1,
        uid: "u".to_owned(),
        version: "gen:1".to_owned(),
        replicas: None,
    }
}

/// The decision in one word, with the path of a drift.
fn word(manifest: &Value, live: Option<&Value>, last: Option<&LastApplied>, work_generation: i64) -> String {
    let decided = dispatch(&DispatchInput {
        manifest,
        live,
        last_applied: last,
        work_generation,
        interpreter: None,
    });
    match decided {
        Dispatch::Create(_) => "create".to_owned(),
        Dispatch::Update(_, None) => "update".to_owned(),
        Dispatch::Update(_, Some(drift)) => format!("drift {}", drift.path),
        Dispatch::Nothing => "nothing".to_owned(),
        Dispatch::Wait => "wait".to_owned(),
        Dispatch::Refuse { reason, .. } => format!("refuse {reason:?}"),
    }
}

#[test]
fn what_is_written_follows_from_what_is_there() {
    type Change = fn(&mut Value);
    let unmark: Change = |live| {
        drop(
            live["metadata"]["labels"]
                .as_object_mut()
                .unwrap()
                .remove("karmada.io/managed"),
        )
    };
    let table: [(&str, Change, Option<LastApplied>, i64, &str); 15] = [
        ("just sent", |_| {}, Some(last_applied()), 1, "nothing"),
        ("sent and not recorded", |_| {}, None, 1, "nothing"),
        (
            "the Work moved, the content did not",
            |_| {},
            Some(last_applied()),
            2,
            "nothing",
        ),
        (
            "being deleted",
            |live| live["metadata"]["deletionTimestamp"] = json!("t"),
            None,
            1,
            "wait",
        ),
        ("not ours", unmark, None, 1, "refuse Conflict"),
        (
            "other status",
            |live| live["status"] = json!({"replicas": 1}),
            Some(last_applied()),
            1,
            "nothing",
        ),
        // The version says that the content is the same, so it is not compared.
        (
            "same version",
            |live| live["spec"]["replicas"] = json!(5),
            Some(last_applied()),
            1,
            "nothing",
        ),
        (
            "changed by somebody",
            |live| {
                live["spec"]["replicas"] = json!(5);
                live["metadata"]["generation"] = json!(2);
            },
            Some(last_applied()),
            1,
            "drift spec.replicas",
        ),
        (
            "changed and changed back",
            |live| live["metadata"]["generation"] = json!(3),
            Some(last_applied()),
            1,
            "nothing",
        ),
        (
            "never sent",
            |live| live["spec"]["replicas"] = json!(5),
            None,
            1,
            "update",
        ),
        (
            "the Work changed",
            |live| live["spec"]["replicas"] = json!(5),
            Some(last_applied()),
            2,
            "update",
        ),
        (
            "a label that does not move the generation",
            |live| live["metadata"]["labels"]["app"] = json!("x"),
            Some(last_applied()),
            1,
            "drift metadata.labels.app",
        ),
        (
            "our annotation removed",
            |live| {
                drop(
                    live["metadata"]["annotations"]
                        .as_object_mut()
                        .unwrap()
                        .remove("work.karmada.io/name"),
                )
            },
            Some(last_applied()),
            1,
            "drift metadata.annotations[work.karmada.io/name]",
        ),
        (
            "keys and finalizers of others",
            |live| {
                live["metadata"]["labels"]["theirs"] = json!("x");
                live["metadata"]["annotations"]["theirs"] = json!("x");
                live["metadata"]["finalizers"] = json!(["theirs"]);
                live["metadata"]["ownerReferences"] = json!([{"name": "theirs"}]);
            },
            None,
            1,
            "nothing",
        ),
        (
            "another object of that name",
            |live| {
                live["metadata"]["uid"] = json!("v");
                live["spec"]["paused"] = json!(true);
            },
            Some(last_applied()),
            1,
            "drift spec.paused",
        ),
    ];
    for (what, change, last, generation, expected) in table {
        let mut live = live();
        change(&mut live);
        assert_eq!(
            word(&manifest(), Some(&live), last.as_ref(), generation),
            expected,
            "{what}"
        );
    }
    assert_eq!(word(&manifest(), None, Some(&last_applied()), 1), "create");
    assert_eq!(word(&json!({"kind": "X"}), None, None, 1), "refuse Invalid");
    assert_eq!(word(&json!(7), Some(&live()), None, 1), "refuse Invalid");
}

#[test]
fn what_is_not_ours_is_taken_only_if_the_manifest_says_so() {
    let mut theirs = live();
    theirs["metadata"]["labels"] = json!({"app": "theirs", "team": "x"});
    theirs["metadata"]["annotations"] = json!({"note": "y"});
    let aborts = manifest();
    let input = |manifest| DispatchInput {
        manifest,
        live: Some(&theirs),
        last_applied: None,
        work_generation: 1,
        interpreter: None,
    };
    let message = "resource(kind=Deployment, shop/web) already exists in the cluster member1 and the \
                   work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource";
    assert_eq!(
        dispatch(&input(&aborts)),
        Dispatch::Refuse {
            reason: RefuseReason::Conflict,
            message: message.to_owned()
        }
    );
    let mut takes = manifest();
    takes["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = json!("overwrite");
    let Dispatch::Update(taken, None) = dispatch(&input(&takes)) else {
        panic!("it was not taken");
    };
    assert_eq!(taken["metadata"]["labels"]["app"], "web");
    assert_eq!(taken["metadata"]["labels"]["team"], "x");
    assert_eq!(taken["metadata"]["annotations"]["note"], "y");
    assert_eq!(taken["metadata"]["resourceVersion"], "10");
}

#[test]
fn keys_that_were_ours_go_and_others_stay() {
    let mut live = live();
    live["metadata"]["labels"]["gone"] = json!("1");
    live["metadata"]["labels"]["theirs"] = json!("1");
    live["metadata"]["annotations"]["gone"] = json!("1");
    live["metadata"]["annotations"]["theirs"] = json!("1");
    live["metadata"]["annotations"][keys::MANAGED_LABELS] = json!("app,gone,karmada.io/managed");
    live["metadata"]["annotations"][keys::MANAGED_ANNOTATIONS] = json!("gone,work.karmada.io/name");
    let written = retain::retain(&manifest(), &live, None).unwrap();
    let mut expected = manifest()["metadata"].clone();
    expected["resourceVersion"] = json!("10");
    expected["labels"]["theirs"] = json!("1");
    expected["annotations"]["theirs"] = json!("1");
    assert_eq!(written["metadata"], expected);
    assert_eq!(written["status"], live["status"]);
}

#[test]
fn kinds_keep_what_the_member_gave_them() {
    let object = |api: &str, kind: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    let table = [
        (
            "v1",
            "Service",
            json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "nodePort": 30001}, {"port": 80, "protocol": "UDP"}]}),
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 7, "type": "ClusterIP",
                   "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 81, "nodePort": 30009}]}),
            json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 7,
                   "ports": [{"port": 80, "nodePort": 30000}, {"port": 81, "nodePort": 30001}, {"port": 80, "protocol": "UDP"}]}),
        ),
        (
            "v1",
            "Service",
            json!({"type": "ClusterIP", "ports": [{"port": 80}]}),
            json!({"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30000}], "healthCheckNodePort": 0}),
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
        ),
        (
            "v1",
            "Service",
            json!({"type": "ExternalName", "externalName": "x"}),
            json!({"clusterIP": "10.0.0.1"}),
            json!({"type": "ExternalName", "externalName": "x"}),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"resources": {"requests": {"storage": "2Gi"}}}),
            json!({"volumeName": "pv", "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}),
            json!({"volumeName": "pv", "storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}),
        ),
        (
            "v1",
            "PersistentVolume",
            json!({"capacity": 1}),
            json!({"capacity": 2, "claimRef": {"name": "c"}}),
            json!({"capacity": 1, "claimRef": {"name": "c"}}),
        ),
        (
            "batch/v1",
            "Job",
            json!({"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {"app": "x"}}}}),
            json!({"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"app": "x", "uid": "1"}}}}),
            json!({"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"app": "x", "uid": "1"}}}}),
        ),
        (
            "v1",
            "Pod",
            json!({
                "serviceAccountName": "a", "tolerations": [{"key": "mine"}],
                "containers": [{"name": "w", "image": "new", "volumeMounts": []}, {"name": "other"}],
            }),
            json!({
                "nodeName": "n", "serviceAccountName": "b", "volumes": [{"name": "token"}], "priority": 0,
                "tolerations": [{"key": "theirs"}, {"key": "mine"}],
                "containers": [{"name": "w", "image": "old", "volumeMounts": [{"name": "token"}], "resources": {}}],
            }),
            json!({
                "nodeName": "n", "serviceAccountName": "b", "volumes": [{"name": "token"}], "priority": 0,
                "tolerations": [{"key": "mine"}, {"key": "theirs"}],
                "containers": [
                    {"name": "w", "image": "new", "volumeMounts": [{"name": "token"}], "resources": {}}, {"name": "other"},
                ],
            }),
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"replicas": 2}),
            json!({"replicas": 5}),
            json!({"replicas": 2}),
        ),
    ];
    for (api, kind, desired, live, expected) in table {
        let manifest = object(api, kind, desired);
        let written = retain::retain(&manifest, &object(api, kind, live), None).unwrap();
        assert_eq!(written["spec"], expected, "{kind}");
        assert_eq!(
            retain::retain(&manifest, &written, None).unwrap(),
            written,
            "{kind} settles"
        );
    }
    // Things outside of spec, and by label.
    let retained = |desired: Value, live: Value| retain::retain(&desired, &live, None).unwrap();
    assert_eq!(
        retained(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2},
                   "metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}}}),
            json!({"spec": {"replicas": 5}}),
        )["spec"]["replicas"],
        5
    );
    assert_eq!(
        retained(
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "a"}]}),
            json!({"secrets": [{"name": "b"}, {"name": "a"}], "imagePullSecrets": [{"name": "p"}]}),
        ),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "a"}, {"name": "b"}],
               "imagePullSecrets": [{"name": "p"}]}),
    );
    let secret = |kind: &str| {
        let desired = json!({"apiVersion": "v1", "kind": "Secret", "type": kind});
        retained(desired, json!({"data": {"token": "t"}}))["data"].clone()
    };
    assert_eq!(
        secret("kubernetes.io/service-account-token"),
        json!({"token": "t"})
    );
    assert_eq!(secret("Opaque"), Value::Null);
}

#[test]
fn versions_move_with_the_content() {
    assert_eq!(
        version_of(&json!({"metadata": {"generation": 4, "resourceVersion": "9"}})),
        "gen:4"
    );
    assert_eq!(version_of(&json!({"metadata": {"resourceVersion": "9"}})), "rv:9");
}

#[test]
fn a_work_takes_back_only_what_it_made() {
    type Change = fn(&mut Value);
    let delete = || Withdraw::Delete {
        uid: "u".to_owned(),
        resource_version: "10".to_owned(),
    };
    let nothing = || Withdraw::Nothing;
    let table: [(&str, Change, Withdraw); 7] = [
        ("ours", |_| {}, delete()),
        (
            "no mark",
            |live| live["metadata"]["labels"]["karmada.io/managed"] = json!("false"),
            nothing(),
        ),
        (
            "another Work's",
            |live| live["metadata"]["annotations"]["work.karmada.io/name"] = json!("web-2"),
            nothing(),
        ),
        (
            "another cluster's",
            |live| live["metadata"]["annotations"]["work.karmada.io/namespace"] = json!("karmada-es-member2"),
            nothing(),
        ),
        (
            "names removed, id left",
            |live| live["metadata"]["annotations"] = json!({}),
            delete(),
        ),
        (
            "names removed, another id",
            |live| {
                live["metadata"]["annotations"] = json!({});
                live["metadata"]["labels"]["work.karmada.io/permanent-id"] = json!("x");
            },
            nothing(),
        ),
        (
            "going already",
            |live| live["metadata"]["deletionTimestamp"] = json!("t"),
            nothing(),
        ),
    ];
    for (what, change, expected) in table {
        let mut live = live();
        change(&mut live);
        assert_eq!(withdraw(&manifest(), Some(&live), false), expected, "{what}");
        let preserved = withdraw(&manifest(), Some(&live), true);
        assert_eq!(
            preserved == Withdraw::Nothing,
            expected == Withdraw::Nothing,
            "{what}"
        );
    }
    assert_eq!(withdraw(&manifest(), None, false), Withdraw::Nothing);
    assert_eq!(withdraw(&manifest(), None, true), Withdraw::Nothing);
}

#[test]
fn what_is_preserved_is_what_the_member_has() {
    let mut live = live();
    live["spec"]["replicas"] = json!(9);
    live["metadata"]["labels"] = json!({
        "app": "web", "karmada.io/managed": "true", "karmada.io/mine": "1",
        "clusterresourcebinding.karmada.io/permanent-id": "1", "clusterpropagationpolicy.karmada.io/permanent-id": "1",
        "propagationpolicy.karmada.io/permanent-id": "1", "resourcebinding.karmada.io/permanent-id": "1",
        "work.karmada.io/permanent-id": "w", "resourcetemplate.karmada.io/retain-replicas": "true",
    });
    live["metadata"]["annotations"]["clusterresourcebinding.karmada.io/name"] = json!("x");
    live["metadata"]["annotations"]["clusterpropagationpolicy.karmada.io/name"] = json!("x");
    live["metadata"]["managedFields"] = json!([{}]);
    let Withdraw::Strip(stripped) = withdraw(&manifest(), Some(&live), true) else {
        panic!("it was not preserved");
    };
    assert_eq!(stripped["spec"]["replicas"], 9);
    let expected = json!({
        "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "10", "generation": 1,
        "creationTimestamp": "2026-11-15T08:59:21Z", "labels": {"app": "web", "karmada.io/mine": "1"},
    });
    assert_eq!(stripped["metadata"], expected);
}

#[test]
fn a_namespace_with_something_preserved_in_it_stays() {
    let namespace = |annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": "shop", "uid": "u", "resourceVersion": "10",
                "labels": {"karmada.io/managed": "true"},
                "annotations": annotations,
            },
        })
    };
    let work = json!({"work.karmada.io/name": "shop-1", "work.karmada.io/namespace": "karmada-es-member1"});
    let manifest = namespace(work.clone());
    assert!(matches!(
        withdraw(&manifest, Some(&manifest), false),
        Withdraw::Delete { .. }
    ));
    let kept = keeping(&manifest).unwrap();
    assert_eq!(keeping(&kept), None, "it is marked once");
    let Withdraw::Strip(stripped) = withdraw(&manifest, Some(&kept), false) else {
        panic!("it was not kept");
    };
    assert_eq!(stripped["metadata"].get("annotations"), None);
    // What is not ours, or goes already, is not marked.
    let mut others = manifest.clone();
    others["metadata"]["labels"] = json!({});
    assert_eq!(keeping(&others), None);
    let mut going = manifest;
    going["metadata"]["deletionTimestamp"] = json!("t");
    assert_eq!(keeping(&going), None);
}

#[test]
fn a_generation_that_never_moves_says_nothing() {
    let manifest = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high", "labels": {"karmada.io/managed": "true"}},
        "value": 10, "description": "ours",
    });
    let mut live = manifest.clone();
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["generation"] = json!(1);
    live["metadata"]["resourceVersion"] = json!("10");
    let sent = LastApplied {
        version: version_of(&live),
        ..last_applied()
    };
    assert_eq!(word(&manifest, Some(&live), Some(&sent), 1), "nothing");
    live["description"] = json!("theirs");
    live["metadata"]["resourceVersion"] = json!("11");
    assert_eq!(word(&manifest, Some(&live), Some(&sent), 1), "drift description");
}

#[test]
fn works_that_others_wrote() {
    let work = |metadata: Value| {
        let work = json!({"metadata": metadata, "spec": {"workload": {"manifests": [manifest()]}}});
        serde_json::from_value::<Work>(work).unwrap()
    };
    let owned = |kind: &str| json!({"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "shop", "uid": "u", "controller": true}]});
    let table = [
        (
            json!({"labels": {"resourcebinding.karmada.io/permanent-id": "1"}}),
            false,
        ),
        (
            json!({"labels": {"clusterresourcebinding.karmada.io/permanent-id": "1"}}),
            false,
        ),
        (owned("Namespace"), false),
        (owned("Deployment"), true),
        (json!({}), true),
        // Other control planes stamp every Work.
        (json!({"labels": {"work.karmada.io/permanent-id": "1"}}), true),
    ];
    for (metadata, expected) in table {
        assert_eq!(is_stranger(&work(metadata.clone())), expected, "{metadata}");
    }
}
