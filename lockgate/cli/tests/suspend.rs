//! `lockgate suspend` and `lockgate resume` as people type them, on a hub without controllers: what they write, what they
//! say, and what they refuse.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use hub::TestHub;
use serde_json::{Value, json};

const POLICIES: &str = "policy.karmada.io/v1alpha1";

async fn shop() -> TestHub {
    let hub = TestHub::installed().await;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices", "namespace": "shop"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "shop:reader"}, "rules": []}),
    ] {
        hub.local.create(object).await.unwrap();
    }
    for name in ["member1", "member2", "member3"] {
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"},
        });
        hub.local.create(cluster).await.unwrap();
    }
    hub
}

fn policy(hub: &TestHub) -> Option<Value> {
    hub.local
        .get(POLICIES, "rolloutpolicies", "shop", "prices-configmap")
}

/// Runs a command that must succeed.
async fn said(hub: &TestHub, words: &[&str]) -> String {
    let (code, text, error) = hub.run(words).await;
    assert_eq!(code, 0, "{words:?}: {error}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_resource_is_held_back_and_let_go() {
    let hub = shop().await;
    let suspend =
        |more: &'static [&'static str]| [&["suspend", "cm/prices", "--reason", "looking"], more].concat();
    let text = said(&hub, &suspend(&["--cluster", "member2"])).await;
    assert_eq!(
        text,
        "ConfigMap shop/prices is suspended in member2 by RolloutPolicy shop/prices-configmap.\n\
         Members keep what they have; the Works show what would be sent.\n\n\
         Next: lockgate status configmap/prices -n shop\nThen: lockgate resume configmap/prices -n shop\n"
    );
    let written = policy(&hub).unwrap();
    assert_eq!(
        written["spec"],
        json!({
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "prices"}],
            "suspension": {"dispatchingOnClusters": {"clusterNames": ["member2"]}, "reason": "looking"},
        })
    );
    // The same again changes nothing.
    let text = said(&hub, &suspend(&["--cluster", "member2"])).await;
    assert!(text.contains("was suspended in member2 already"), "{text}");
    assert_eq!(
        policy(&hub).unwrap()["metadata"]["resourceVersion"],
        written["metadata"]["resourceVersion"]
    );
    let text = said(&hub, &suspend(&["--cluster", "member1"])).await;
    assert!(text.contains("is suspended in member1, member2"), "{text}");
    let text = said(&hub, &["resume", "cm/prices", "--cluster", "member1"]).await;
    assert!(
        text.contains("is resumed in member1, and stays suspended in member2"),
        "{text}"
    );
    let text = said(&hub, &suspend(&[])).await;
    assert!(text.contains("is suspended in all clusters"), "{text}");
    assert_eq!(
        policy(&hub).unwrap()["spec"]["suspension"],
        json!({"dispatching": true, "reason": "looking"})
    );
    // A part of everything: the others are named, so that nothing else is let go.
    let text = said(&hub, &["resume", "cm/prices", "--cluster", "member3"]).await;
    assert!(text.contains("stays suspended in member1, member2"), "{text}");
    assert!(
        text.contains("a cluster that joins from now on is not among these"),
        "{text}"
    );
    let text = said(&hub, &["resume", "cm/prices", "--reason", "all is well"]).await;
    assert!(
        text.contains("is resumed: RolloutPolicy shop/prices-configmap is deleted"),
        "{text}"
    );
    assert_eq!(policy(&hub), None);
    let text = said(&hub, &["resume", "cm/prices"]).await;
    assert!(text.contains("nothing to do"), "{text}");
    // Each of them left a word on the resource.
    let events = hub.local.list("v1", "events", "shop");
    let told: Vec<&str> = events
        .iter()
        .filter(|event| event["involvedObject"]["name"] == "prices")
        .filter_map(|event| event["message"].as_str())
        .collect();
    assert!(told.contains(&"Suspended in member2: looking"), "{told:?}");
    assert!(told.contains(&"Resumed in all clusters: all is well"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lives_in_no_namespace() {
    let hub = shop().await;
    let text = said(
        &hub,
        &["suspend", "clusterrole", "shop:reader", "--reason", "audit"],
    )
    .await;
    assert!(
        text.contains("by ClusterRolloutPolicy shop.reader-clusterrole"),
        "{text}"
    );
    let found = hub
        .local
        .get(POLICIES, "clusterrolloutpolicies", "", "shop.reader-clusterrole");
    assert_eq!(
        found.unwrap()["spec"]["resourceSelectors"][0]["name"],
        "shop:reader"
    );
    said(&hub, &["resume", "clusterrole/shop:reader"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_else_holds_it_back_is_named() {
    let hub = shop().await;
    for object in [
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "prices-configmap", "namespace": "shop"},
            "spec": {
                "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "prices"},
                "clusters": [{"name": "member1"}, {"name": "member2"}, {"name": "member3"}],
                "suspension": {"dispatchingOnClusters": {"clusterNames": ["member1"]}},
            },
        }),
        json!({
            "apiVersion": POLICIES, "kind": "ClusterRolloutPolicy", "metadata": {"name": "freeze"},
            "spec": {
                "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
                "suspension": {"suspendDispatchingOnClusters": {"clusterNames": ["member2"]}, "reason": "quarter"},
            },
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    said(&hub, &["suspend", "cm/prices", "--reason", "looking"]).await;
    let text = said(&hub, &["resume", "cm/prices"]).await;
    assert!(
        text.contains(
            "STILL HELD BACK   BY\n\
             member1           the policy that places it\n\
             member2           ClusterRolloutPolicy freeze: quarter\n"
        ),
        "{text}"
    );
    let text = said(&hub, &["status", "cm/prices"]).await;
    assert!(
        text.contains("suspended   member2 by ClusterRolloutPolicy freeze: quarter"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slips_are_told_and_change_nothing() {
    let hub = shop().await;
    let reason = ["--reason", "looking"];
    for (words, code, part) in [
        (&["suspend", "cm/prices"][..], 2, "--reason"),
        (&["suspend", "cm/prices", "--reason", " "], 2, "say why"),
        (&["suspend", "cm", "--reason", "a"], 2, "KIND/NAME"),
        (
            &["suspend", "cm/price", "--reason", "a"],
            1,
            "there is no ConfigMap \"price\" in the namespace shop",
        ),
        (
            &["suspend", "cm/prices", "--cluster", "membre1", "--reason", "a"],
            1,
            "there is no cluster \"membre1\"; there are member1, member2, member3",
        ),
        (
            &["suspend", "cluster/member1", "--reason", "a"],
            2,
            "objects of the kind Cluster are never sent",
        ),
        (
            &["resume", "cm/prices", "--cluster", "membre1"],
            1,
            "there is no cluster \"membre1\"",
        ),
    ] {
        let (found, _, error) = hub.run(words).await;
        assert_eq!(found, code, "{words:?}: {error}");
        assert!(error.contains(part), "{words:?}: {error}");
    }
    assert_eq!(policy(&hub), None);
    // A policy of that name that is about more is somebody's own.
    hub.local
        .create(json!({
            "apiVersion": POLICIES, "kind": "RolloutPolicy", "metadata": {"name": "prices-configmap", "namespace": "shop"},
            "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
        }))
        .await
        .unwrap();
    for words in [
        &["suspend", "cm/prices", reason[0], reason[1]][..],
        &["resume", "cm/prices"],
    ] {
        let (code, _, error) = hub.run(words).await;
        assert_eq!(code, 1);
        assert!(
            error.contains("is not about ConfigMap shop/prices alone"),
            "{error}"
        );
    }
    assert!(policy(&hub).unwrap()["spec"]["suspension"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_without_the_definitions() {
    let hub = TestHub::bare().await;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    hub.local.create(object).await.unwrap();
    let (code, _, error) = hub.run(&["suspend", "ns/shop", "--reason", "a"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("lockgate crds"), "{error}");
}
