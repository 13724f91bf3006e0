//! `lockgate why placement` on a hub without controllers: for every cluster whether it is selected, and what keeps it out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use hub::TestHub;
use serde_json::{Value, json};

const GROUP: &str = "cluster.open-cluster-management.io";

async fn shop() -> TestHub {
    let hub = TestHub::installed().await;
    hub.local
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await
        .unwrap();
    for (name, labels, taints) in [
        ("member1", json!({"tier": "canary", "region": "eu"}), json!([])),
        ("member2", json!({"region": "eu"}), json!([])),
        ("member3", json!({"region": "us"}), json!([])),
        (
            "member4",
            json!({"region": "eu"}),
            json!([{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]),
        ),
    ] {
        let cluster = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": labels},
            "spec": {"hubAcceptsClient": true, "taints": taints},
        });
        let mut cluster = hub.local.create(cluster).await.unwrap();
        let time = "2026-01-01T00:00:00Z";
        cluster["status"] = json!({"conditions": [{
            "type": "ManagedClusterJoined", "status": "True", "reason": "Joined", "message": "", "lastTransitionTime": time,
        }]});
        hub.local.update_status(cluster).await.unwrap();
    }
    for object in [
        json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": "all"},
            "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "all", "namespace": "shop"}, "spec": {"clusterSet": "all"},
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "eu"}}}}],
                "decisionStrategy": {"groupStrategy": {"decisionGroups": [
                    {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"tier": "canary"}}}}]}},
            },
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cluster_and_what_keeps_it_out() {
    let hub = shop().await;
    let (code, text, error) = hub.run(&["why", "placement/web", "-n", "shop"]).await;
    assert_eq!(code, 0, "{error}");
    let line = |name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
    };
    assert!(text.contains("2 selected, from the sets all"), "{text}");
    assert!(
        line("member1").contains("yes") && line("member1").contains("0 (canary)"),
        "{text}"
    );
    assert!(
        line("member2").contains("yes") && line("member2").contains(" 1 "),
        "{text}"
    );
    assert!(
        line("member3").contains("no") && line("member3").contains("labels do not match"),
        "{text}"
    );
    assert!(
        line("member4").contains("no") && line("member4").contains("gpu"),
        "{text}"
    );

    let words = [
        "why",
        "placement/web",
        "-n",
        "shop",
        "--cluster",
        "member3",
        "-o",
        "json",
    ];
    let (code, text, error) = hub.run(&words).await;
    assert_eq!(code, 0, "{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["selected"], 2);
    assert_eq!(answer["clusters"].as_array().unwrap().len(), 1);
    assert_eq!(answer["clusters"][0]["selected"], false);

    let (code, _, error) = hub
        .run(&["why", "placement/web", "-n", "shop", "--cluster", "far"])
        .await;
    assert_eq!(code, 1);
    assert!(error.contains("there is no ManagedCluster \"far\""), "{error}");
    let (code, _, error) = hub.run(&["why", "placement/nothing", "-n", "shop"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("there is no Placement \"nothing\""), "{error}");
}
