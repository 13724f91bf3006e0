//! `lockgate pending` and `lockgate activate` as people type them, on a `lockgate up` with its controllers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may end where it likes"
)]

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Connection, Fleet};
use tokio::process::Command;

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies";
const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";
/// The label of the claim that nobody writes, and everybody knows.
const BY_NAME: &str = "clusterpropagationpolicy.karmada.io/name=web";
/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn policy(cluster: &str) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "web"},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"app": "web"}},
            }],
            "activationPreference": "Lazy",
            "placement": {"clusterAffinity": {"clusterNames": [cluster]}},
        },
    })
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"owner": "shop"}},
        "data": {"a": "b"},
    })
}

struct World<'a> {
    fleet: &'a Fleet,
    hub: Connection,
    kubeconfig: &'a Path,
}

impl World<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
        command
            .args(words)
            .arg("--kubeconfig")
            .arg(self.kubeconfig)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Exit code, standard output, standard error.
    async fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output();
        let output = tokio::time::timeout(PATIENCE, output)
            .await
            .expect("it hangs")
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    async fn post(&mut self, path: &str, body: &Value) {
        let (code, answer) = self.hub.send("POST", path, Some(body)).await.unwrap();
        assert_eq!(code, 201, "{answer}");
    }

    /// Sends the policy's templates elsewhere, and waits until all of them wait.
    async fn retarget(&mut self, cluster: &str, waiting: i64) {
        let path = format!("{POLICY}/web");
        loop {
            let (_, mut live) = self.hub.send("GET", &path, None).await.unwrap();
            live["spec"]["placement"] = policy(cluster)["spec"]["placement"].clone();
            // The controllers write its status meanwhile.
            if self.hub.send("PUT", &path, Some(&live)).await.unwrap().0 == 200 {
                break;
            }
        }
        self.until_status("pending", waiting).await;
    }

    /// Waits until the policy's newest status says so.
    async fn until_status(&mut self, field: &str, wanted: i64) {
        let path = format!("{POLICY}/web");
        let waiting = async {
            loop {
                let (_, live) = self.hub.send("GET", &path, None).await.unwrap();
                let status = &live["status"];
                if status["observedGeneration"] == live["metadata"]["generation"] && status[field] == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await;
        in_time.unwrap_or_else(|_| panic!("never: {field} is {wanted}"));
    }

    async fn has(&self, cluster: &str, name: &str) -> bool {
        let path = format!("{CONFIG_MAPS}/{name}");
        let mut member = self.fleet.connect(cluster).await;
        member.send("GET", &path, None).await.unwrap().0 == 200
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_shown_and_activated_on_purpose() {
    let directory = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(&["--members", "2", "--port", "0"], directory.path()).await;
    let kubeconfig = directory.path().join("kubeconfig");
    let mut world = World {
        hub: fleet.connect("hub").await,
        fleet: &fleet,
        kubeconfig: &kubeconfig,
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.post("/api/v1/namespaces", &namespace).await;
    world.post(POLICY, &policy("member1")).await;
    for name in ["a", "b", "c"] {
        world.post(CONFIG_MAPS, &config_map(name)).await;
    }
    world.until_status("upToDate", 3).await;
    let (code, text, _) = world.run(&["pending", "-A"]).await;
    assert_eq!(
        (code, text.as_str()),
        (0, "nothing waits: 3 templates are as their policies say\n")
    );

    // What waits, in every form.
    world.retarget("member2", 3).await;
    let (code, text, error) = world.run(&["pending", "-n", "shop", "-o", "json"]).await;
    assert_eq!(code, 0, "{error}");
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["pending"], 3);
    let first = &found["templates"][0];
    assert_eq!((&first["name"], &first["why"]), (&json!("a"), &json!("Lazy")));
    assert_eq!(first["applied"]["generation"], 1);
    assert_eq!(first["current"]["generation"], 2);
    assert_eq!(first["effect"]["added"], json!([{"name": "member2"}]));
    assert_eq!(first["effect"]["removed"], json!([{"name": "member1"}]));
    assert!(first["since"].is_string(), "{first}");
    let (_, text, _) = world.run(&["pending", "--policy", "web"]).await;
    assert!(
        text.contains("configmap/a   cpp/web@1   cpp/web@2   Lazy"),
        "a cluster policy's templates are everywhere: {text}"
    );
    assert!(text.contains("-member1 +member2"), "{text}");
    assert!(
        text.ends_with("3 of 3 wait; next: lockgate activate all --policy web --dry-run\n"),
        "{text}"
    );

    // Nothing moves because somebody looks.
    let (code, text, _) = world.run(&["activate", "all", "-l", BY_NAME, "--dry-run"]).await;
    assert_eq!(code, 0);
    assert!(
        text.ends_with("3 templates: 3 removals from clusters, 3 additions to clusters, 0 changes of replicas; nothing was asked for (dry run)\n"),
        "{text}"
    );
    world.until_status("pending", 3).await;

    // One template, and nothing of it that is the user's.
    let (code, text, error) = world.run(&["activate", "configmap/a", "-n", "shop"]).await;
    assert_eq!((code, text.as_str()), (0, "activated 1 template\n"), "{error}");
    world.until_status("pending", 2).await;
    let (_, template) = world
        .hub
        .send("GET", &format!("{CONFIG_MAPS}/a"), None)
        .await
        .unwrap();
    assert_eq!(template["data"], json!({"a": "b"}));
    let annotations = template["metadata"]["annotations"].as_object().unwrap();
    let users: Vec<&String> = annotations
        .keys()
        .filter(|key| !key.contains(".karmada.io"))
        .collect();
    assert_eq!(users, ["owner"]);

    // The rest by the name of its policy, one at a time.
    let (code, text, error) = world
        .run(&["reconcile", "all", "-l", BY_NAME, "--batch", "1"])
        .await;
    assert_eq!((code, text.as_str()), (0, "activated 2 templates\n"), "{error}");
    world.until_status("pending", 0).await;
    let (code, text, _) = world.run(&["activate", "all", "-l", BY_NAME]).await;
    assert_eq!(
        (code, text.as_str()),
        (0, "nothing waits: 3 templates are as policies say\n")
    );
    let moved = async {
        while !world.has("member2", "c").await || world.has("member1", "c").await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, moved)
        .await
        .expect("it never moved");

    interrupted(&mut world).await;
    mistakes(&world).await;
}

/// Ctrl-C between two batches: what was asked for is activated, the rest waits.
async fn interrupted(world: &mut World<'_>) {
    world.retarget("member1", 3).await;
    let words = ["activate", "-n", "shop", "--batch", "1", "--pause", "1h"];
    let child = world.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    world.until_status("pending", 2).await;
    let pid = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .await
            .unwrap()
            .success()
    );
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.starts_with("stopped: asked for 1 of 3 templates"), "{text}");
    world.until_status("pending", 2).await;
}

async fn mistakes(world: &World<'_>) {
    for (words, code, part) in [
        (&["activate"][..], 2, "say what to activate"),
        (&["activate", "all", "--pause", "1s"], 2, "--batch"),
        (&["activate", "all", "--timeout", "soon"], 2, "like 30s"),
        (
            &["activate", "all", "-n", "nowhere"],
            1,
            "no propagated template matches",
        ),
        (
            &["activate", "all", "-A", "-l", "app=other"],
            1,
            "no propagated template matches",
        ),
        (
            &["activate", "--policy", "nobody"],
            1,
            "there is no policy \"nobody\"; there are ClusterPropagationPolicy web",
        ),
        (
            &["activate", "configmap/none", "-n", "shop"],
            1,
            "there is no ConfigMap \"none\"",
        ),
        (&["pending", "configmop"], 2, "is it configmap?"),
        (&["pending", "-l", "a in ("], 2, "--selector"),
    ] {
        let (found, _, error) = world.run(words).await;
        assert_eq!(found, code, "{words:?}: {error}");
        assert!(error.contains(part), "{words:?}: {error}");
    }
}
