//! `lockgate render` as people type it, on a hub without controllers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use hub::TestHub;
use serde_json::{Value, json};

/// A Deployment on one of two clusters, and an override for both, of which one fits.
async fn shop() -> TestHub {
    let hub = TestHub::installed().await;
    let cluster = |name: &str| {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"},
        })
    };
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        cluster("member1"),
        cluster("member2"),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "replicas": 6, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                             "spec": {"containers": [{"name": "web", "image": "nginx:1.19"}]}},
            },
        }),
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "web-deployment", "namespace": "shop"},
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
                "replicas": 6, "clusters": [{"name": "member1", "replicas": 2}],
            },
        }),
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"overrideRules": [
                {"overriders": {"imageOverrider": [{"component": "Registry", "operator": "replace", "value": "r.io"}]}},
                {"targetCluster": {"clusterNames": ["member2"]},
                 "overriders": {"plaintext": [{"path": "/spec/none", "operator": "remove"}]}},
            ]},
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cluster_gets_and_why() {
    let hub = shop().await;
    let (code, text, error) = hub
        .run(&["render", "deployment/web", "-n", "shop", "--cluster", "member1"])
        .await;
    assert_eq!((code, error.as_str()), (0, ""));
    let notes = "# Deployment shop/web for cluster member1: it has no Work there yet\n\
                 # replicas are given out:\n\
                 #   /spec/replicas: 6 → 2\n\
                 # OverridePolicy shop/web, overrideRules[0]:\n\
                 #   /spec/template/spec/containers/0/image: \"nginx:1.19\" → \"r.io/nginx:1.19\"\n";
    assert!(text.starts_with(notes), "{text}");
    let manifest = machinery_value::decode::from_yaml(text.as_bytes()).unwrap().value;
    assert_eq!(manifest["spec"]["replicas"], 2);
    assert_eq!(manifest["kind"], "Deployment");
    assert_eq!(manifest["metadata"]["labels"]["karmada.io/managed"], "true");
    assert!(manifest.get("status").is_none());

    let (code, text, _) = hub
        .run(&[
            "render", "deploy", "web", "-n", "shop", "-c", "member1", "-o", "json",
        ])
        .await;
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0);
    assert_eq!(value["manifest"], manifest);
    assert_eq!(value["placed"], true);
    assert_eq!(value["overrides"][0]["rule"], "overrideRules[0]");
}

/// A namespace goes to every cluster without a binding, and its Work holds what no binding says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_goes_by_itself() {
    let hub = shop().await;
    let arguments = ["render", "ns/shop", "--cluster", "member1"];
    let (code, text, _) = hub.run(&arguments).await;
    assert_eq!(code, 0);
    let note = "# Namespace shop for cluster member1: it goes to every cluster by itself, and has no Work there yet\n";
    assert!(text.starts_with(note), "{text}");
    assert!(
        !text.contains("clusterresourcebinding") && !text.contains("conflict-resolution"),
        "{text}"
    );
    let manifest = machinery_value::decode::from_yaml(text.as_bytes()).unwrap().value;
    let marks = &manifest["metadata"];
    let (name, id) = (
        marks["annotations"]["work.karmada.io/name"].clone(),
        marks["labels"]["work.karmada.io/permanent-id"].clone(),
    );
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-es-member1"}}),
        json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": {"name": name, "namespace": "karmada-es-member1",
                         "labels": {"work.karmada.io/permanent-id": id}},
            "spec": {"workload": {"manifests": [manifest]}},
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    let (_, text, _) = hub.run(&arguments).await;
    assert!(
        text.starts_with("# Namespace shop for cluster member1: its Work there holds this\n"),
        "{text}"
    );
    let (_, text, _) = hub
        .run(&["render", "ns/shop", "-c", "member1", "-o", "json"])
        .await;
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["placed"], true);
}

/// Names of bindings and Works leave something out: what has another's is not placed by that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_another_object_is_not_shown() {
    let hub = shop().await;
    let role = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": name, "namespace": "shop"}, "rules": [],
        })
    };
    for object in [
        role("shop:reader"),
        role("shop.reader"),
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "shop.reader-role", "namespace": "shop"},
            "spec": {
                "resource": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "namespace": "shop", "name": "shop:reader"},
                "clusters": [{"name": "member1"}],
            },
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    for (name, note) in [
        ("role/shop:reader", "it has no Work there yet"),
        ("role/shop.reader", "nothing places it there"),
    ] {
        let (_, text, _) = hub.run(&["render", name, "-n", "shop", "-c", "member1"]).await;
        assert!(text.lines().next().unwrap().contains(note), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_never_sent_says_so() {
    let hub = shop().await;
    // A hub has that of the system from the start.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "member2"}});
    hub.local.create(namespace).await.unwrap();
    for (object, why) in [
        (
            "ns/karmada-system",
            "Namespace karmada-system is sent to no cluster: it belongs to the control plane",
        ),
        (
            "ns/member2",
            "the namespace member2 is reserved, because a cluster has its name",
        ),
        (
            "op/web",
            "OverridePolicy shop/web is sent to no cluster: objects of this kind are never propagated",
        ),
        ("rb/web-deployment", "objects of this kind are never propagated"),
        ("cluster/member2", "objects of this kind are never propagated"),
    ] {
        let (code, text, error) = hub.run(&["render", object, "-n", "shop", "-c", "member1"]).await;
        assert_eq!((code, text.as_str()), (1, ""), "{object}");
        assert!(error.contains(why), "{error}");
        let in_json = ["render", object, "-n", "shop", "-c", "member1", "-o", "json"];
        let (code, text, _) = hub.run(&in_json).await;
        let shown: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((code, &shown["placed"]), (1, &json!(false)), "{object}");
        assert!(shown["error"].as_str().unwrap().contains(why), "{text}");
    }
    // A policy may place it.
    let (code, text, _) = hub.run(&["render", "ns/default", "-c", "member1"]).await;
    assert_eq!(code, 0);
    let note = "the namespace default is in every cluster already, and nothing places it there";
    assert!(text.contains(note), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_that_does_not_fit_is_shown() {
    let hub = shop().await;
    let arguments = ["render", "deployment/web", "-n", "shop", "--cluster", "member2"];
    let (code, text, error) = hub.run(&arguments).await;
    assert_eq!(code, 1);
    assert!(
        text.contains(
            "# OverridePolicy shop/web, overrideRules[1]:\n#   fails: /spec/none: remove does not apply"
        ),
        "{text}"
    );
    assert!(!text.contains("apiVersion"), "{text}");
    let place = "error: OverridePolicy shop/web, overrideRules[1], for cluster member2: /spec/none: remove does not apply";
    assert!(error.starts_with(place), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_named() {
    let hub = shop().await;
    for (arguments, code, part) in [
        (
            &["render", "deployment/none", "-n", "shop", "-c", "member1"][..],
            1,
            "there is no Deployment \"none\"",
        ),
        (
            &["render", "deployment/web", "-n", "shop", "-c", "member9"],
            1,
            "there is no cluster \"member9\"",
        ),
        (
            &["render", "deplyoment/web", "-n", "shop", "-c", "member1"],
            2,
            "is it deployment?",
        ),
        (
            &["render", "deployment", "-n", "shop", "-c", "member1"],
            2,
            "say which one: KIND/NAME",
        ),
        (&["render", "deployment/web", "-n", "shop"], 2, "--cluster"),
    ] {
        let (ended, _, error) = hub.run(arguments).await;
        assert_eq!(ended, code, "{error}");
        assert!(error.contains(part), "{error}");
    }
}
