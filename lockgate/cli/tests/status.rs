//! `lockgate status` and `lockgate crds` as people type them, on a hub without controllers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use hub::TestHub;
use serde_json::{Value, json};

async fn shop() -> TestHub {
    let hub = TestHub::installed().await;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices", "namespace": "shop"}}),
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "member1"}, "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"},
        }),
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "web"}], "placement": {}},
        }),
    ] {
        hub.local.create(object).await.unwrap();
    }
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_hub_in_every_form() {
    let hub = shop().await;
    let (code, text, error) = hub.run(&["status"]).await;
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(
        text.starts_with("1 policy, 0 templates, 1 cluster: 1 cluster is not well\n"),
        "{text}"
    );
    assert!(
        text.contains("PropagationPolicy shop/web   • Claims nothing"),
        "{text}"
    );
    assert!(text.contains("it has not been reached yet"), "{text}");
    assert!(!text.contains('\x1b'), "no colour in a pipe");

    let (_, text, _) = hub.run(&["status", "-A", "-o", "json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&report["kind"], &report["policies"][0]["claimed"]),
        (&json!("FleetStatus"), &json!(0))
    );
    let (_, text, _) = hub.run(&["status", "-o", "yaml"]).await;
    assert!(text.contains("kind: FleetStatus"), "{text}");
    let (_, text, _) = hub.run(&["status", "--no-headers", "-o", "wide"]).await;
    assert!(!text.contains("CLUSTER "), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_by_all_their_names() {
    let hub = shop().await;
    // The context's namespace is shop.
    for words in [
        &["cm/prices"][..],
        &["configmaps", "prices"],
        &["ConfigMap/prices", "-n", "shop"],
    ] {
        let (code, text, error) = hub.run(&[&["status"], words].concat()).await;
        assert_eq!(code, 0, "{error}");
        assert!(
            text.starts_with("ConfigMap shop/prices   • Not propagated\n"),
            "{text}"
        );
        assert!(
            text.contains("PropagationPolicy shop/web does not match: it selects the name web"),
            "{text}"
        );
    }
    for (words, part) in [
        (&["pp/web"][..], "PropagationPolicy shop/web"),
        (&["cluster/member1"], "Cluster member1   ? Unknown"),
        (
            &["ns/shop"],
            "namespaces are sent to every cluster without a policy",
        ),
    ] {
        let (code, text, error) = hub.run(&[&["status"], words].concat()).await;
        assert_eq!(code, 0, "{error}");
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_answered_with_what_is_right() {
    let hub = shop().await;
    for (words, code, part) in [
        (&["deplyoment/web"][..], 2, "is it deployment?"),
        (&["deployment"], 2, "KIND/NAME"),
        (&["deployment/"], 2, "not of the form KIND/NAME"),
        (&["deployment/web", "-A"], 2, "cannot be used with"),
        (
            &["deployment/web"],
            1,
            "there is no Deployment \"web\" in the namespace shop",
        ),
        (&["cluster/member9"], 1, "there is no Cluster \"member9\""),
        (&["--context", "nowhere"], 2, "there are hub"),
        (&["-o", "xml"], 2, "table, wide, json, yaml"),
    ] {
        let (found, _, error) = hub.run(&[&["status"], words].concat()).await;
        assert_eq!(found, code, "{words:?}: {error}");
        assert!(error.contains(part), "{words:?}: {error}");
    }
    let bare = TestHub::bare().await;
    let (code, _, error) = bare.run(&["status"]).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("lockgate crds | kubectl apply --server-side -f -"),
        "{error}"
    );
}

/// What the client logs names no server: the error does, and stands alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_not_there() {
    let hub = TestHub::bare().await;
    let text = std::fs::read_to_string(hub.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    std::fs::write(hub.kubeconfig(), config.to_string()).unwrap();
    let (code, _, error) = hub.run(&["status"]).await;
    assert_eq!(code, 1);
    assert!(
        error.starts_with("error: failed to reach https://127.0.0.1:1: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_prints_what_changed() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let hub = shop().await;
    let mut watch = hub
        .command(&["status", "cm/prices", "--watch"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut reports = 0;
    tokio::time::timeout(hub::PATIENCE, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if !line.starts_with("ConfigMap shop/prices") {
                continue;
            }
            reports += 1;
            if reports == 2 {
                break;
            }
            let mut prices = hub.local.get("v1", "configmaps", "shop", "prices").unwrap();
            prices["metadata"]["labels"] = json!({"resourcetemplate.karmada.io/claimed-by": "somebody"});
            hub.local.update(prices).await.unwrap();
        }
    })
    .await
    .expect("the change was not shown");
    watch.kill().await.unwrap();
    assert_eq!(reports, 2);
}

/// What is printed is what is installed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_install() {
    let hub = TestHub::bare().await;
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_lockgate"))
        .arg("crds")
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let documents: Vec<&str> = text
        .split("---\n")
        .filter(|document| !document.trim().is_empty())
        .collect();
    assert_eq!(documents.len(), lockgate_api::definitions::definitions().len());
    for document in documents {
        let object = machinery_value::decode::from_yaml(document.as_bytes())
            .unwrap()
            .value;
        hub.local.create(object).await.unwrap();
    }
    let (code, text, error) = hub.run(&["status"]).await;
    assert_eq!(code, 0, "{error}");
    assert!(
        text.starts_with("0 policies, 0 templates, 0 clusters: all is well"),
        "{text}"
    );
}
