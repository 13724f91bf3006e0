//! `lockgate rollout` as people type it, on a fleet with its controllers: every verb, who asked and why, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Connection, Fleet};
use tokio::process::Command;

/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop";

struct Shop {
    hub: Connection,
    kubeconfig: PathBuf,
    _fleet: Fleet,
}

impl Shop {
    async fn start(directory: &Path) -> Self {
        let fleet = Fleet::start(&["--port", "0", "--members", "3"], directory).await;
        let mut shop = Self {
            hub: fleet.connect("hub").await,
            kubeconfig: directory.join("kubeconfig"),
            _fleet: fleet,
        };
        let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
        shop.create(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        )
        .await;
        shop.create(
            &format!("{POLICIES}/propagationpolicies"),
            json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "web"},
                "spec": {"resourceSelectors": selectors, "placement": {"clusterAffinity": {}}},
            }),
        )
        .await;
        shop.create(
            "/apis/apps/v1/namespaces/shop/deployments",
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {
                    "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                    },
                },
            }),
        )
        .await;
        shop.until("the first version is everywhere", |binding| {
            let applied = binding["status"]["aggregatedStatus"].as_array();
            applied
                .is_some_and(|items| items.len() == 3 && items.iter().all(|item| item["health"] == "Healthy"))
        })
        .await;
        // Nobody waits for a soak of an hour: what moves is what the commands move.
        shop.create(
            &format!("{POLICIES}/rolloutpolicies"),
            json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "web"},
                "spec": {
                    "resourceSelectors": selectors,
                    "strategy": {
                        "type": "Progressive",
                        "progressive": {"maxConcurrency": 1, "minSuccessTime": "1h", "progressDeadline": "2h"},
                    },
                },
            }),
        )
        .await;
        shop.until_phase("Succeeded", 1).await;
        shop
    }

    async fn create(&mut self, path: &str, object: Value) {
        let (code, answer) = self.hub.send("POST", path, Some(&object)).await.unwrap();
        assert_eq!(code, 201, "{answer}");
    }

    async fn image(&mut self, image: &str) {
        loop {
            let (_, mut deployment) = self.hub.send("GET", DEPLOYMENT, None).await.unwrap();
            deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
            let (code, answer) = self.hub.send("PUT", DEPLOYMENT, Some(&deployment)).await.unwrap();
            // Its status may have been written in between.
            if code != 409 {
                assert_eq!(code, 200, "{answer}");
                return;
            }
        }
    }

    /// Waits until the binding is as it should be.
    async fn until(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let (_, binding) = self.hub.send("GET", BINDING, None).await.unwrap();
                if is(&binding) {
                    return binding;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(binding) => binding,
            Err(_) => {
                let (_, binding) = self.hub.send("GET", BINDING, None).await.unwrap();
                panic!("never: {what}: {}", binding["status"]["rollout"])
            }
        }
    }

    async fn until_phase(&mut self, phase: &str, revision: i64) -> Value {
        self.until(&format!("revision {revision} is {phase}"), |binding| {
            let rollout = &binding["status"]["rollout"];
            rollout["phase"] == phase && rollout["revision"] == revision
        })
        .await
    }

    /// Waits until these clusters are well with the new version, and the others wait.
    async fn until_soaking(&mut self, names: &[&str]) -> Value {
        self.until(&format!("{names:?} soak"), |binding| {
            let clusters = binding["status"]["rollout"]["groups"][0]["clusters"].as_array();
            let well = |state: &Value| state == "Succeeded";
            clusters.is_some_and(|clusters| {
                clusters.iter().all(|cluster| {
                    well(&cluster["state"]) == names.iter().any(|name| cluster["name"] == *name)
                })
            })
        })
        .await
    }

    async fn run(&self, words: &[&str]) -> (i32, String, String) {
        let command = Command::new(env!("CARGO_BIN_EXE_lockgate"))
            .arg("rollout")
            .args(words)
            .args(["-n", "shop", "--kubeconfig"])
            .arg(&self.kubeconfig)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, command).await.unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Runs a verb that must succeed.
    async fn said(&self, verb: &[&str], reason: &str) -> String {
        let words = [verb, &["deployment/web", "--reason", reason]].concat();
        let (code, text, error) = self.run(&words).await;
        assert_eq!(code, 0, "{words:?}: {text}{error}");
        text
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_does_what_it_says_and_says_who_asked() {
    let directory = tempfile::tempdir().unwrap();
    let mut shop = Shop::start(directory.path()).await;
    shop.image("web:2").await;
    shop.until_soaking(&["member1"]).await;

    let text = shop.said(&["pause"], "lunch").await;
    assert!(text.contains("nothing more starts until it is resumed"), "{text}");
    let binding = shop.until_phase("Paused", 2).await;
    let command = binding["status"]["rollout"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let (before, by) = command.split_once(" by ").unwrap();
    let (by, reason) = by.split_once(": ").unwrap();
    assert_eq!((before, reason), ("pause", "lunch"));
    assert!(!by.is_empty(), "{command}");
    let (_, text, _) = shop.run(&["status", "deployment/web"]).await;
    assert!(text.contains("‖ Paused") && text.contains(&command), "{text}");
    assert!(
        text.contains("Next: lockgate rollout resume deployment/web -n shop"),
        "{text}"
    );

    let text = shop.said(&["resume"], "back").await;
    assert!(text.contains("it goes on"), "{text}");
    let binding = shop.until_phase("Progressing", 2).await;
    let waits = binding["status"]["conditions"].as_array().unwrap();
    let rolled_out = waits
        .iter()
        .find(|condition| condition["type"] == "RolledOut")
        .unwrap();
    assert_eq!(
        (&rolled_out["status"], &rolled_out["reason"]),
        (&json!("False"), &json!("Progressing"))
    );

    shop.said(&["promote"], "looks good").await;
    shop.until_soaking(&["member1", "member2"]).await;
    // What was promoted stays so, whatever is asked for later.
    shop.said(&["pause"], "look").await;
    shop.said(&["resume"], "fine").await;
    shop.until_soaking(&["member1", "member2"]).await;
    let text = shop.said(&["promote", "--full"], "all of it").await;
    assert!(text.contains("goes to all clusters that are left"), "{text}");
    let binding = shop.until_phase("Succeeded", 2).await;
    let conditions = binding["status"]["conditions"].as_array().unwrap();
    let is_out = |condition: &&Value| condition["type"] == "RolledOut" && condition["status"] == "True";
    assert!(
        conditions.iter().any(|condition| is_out(&condition)),
        "{conditions:?}"
    );

    shop.image("web:3").await;
    shop.until_soaking(&["member1"]).await;
    let text = shop.said(&["retry"], "again").await;
    assert!(text.contains("what failed in revision 3 starts again"), "{text}");
    let text = shop.said(&["abort"], "no").await;
    assert!(
        text.contains("revision 3 is given up, and its clusters go back to revision 2"),
        "{text}"
    );
    let binding = shop.until_phase("RolledBack", 4).await;
    assert!(
        binding["status"]["rollout"]["message"]
            .as_str()
            .unwrap()
            .contains(": no")
    );
    let text = shop.said(&["abort"], "again").await;
    assert!(
        text.contains("revision 3 was given up before, and there is nothing more to give up"),
        "{text}"
    );

    let (code, text, _) = shop.run(&["history", "deployment/web"]).await;
    assert_eq!(code, 0);
    let line = |part: &str| {
        text.lines()
            .find(|line| line.contains(part))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(line("web:2").contains("current, good"), "{text}");
    assert!(line("web:3").contains("given up"), "{text}");
    assert!(!line("web:1").contains("given up"), "{text}");

    // Without a number it goes to the one before, and not to what was given up.
    shop.said(&["undo"], "older").await;
    shop.until_soaking(&["member1"]).await;
    shop.said(&["promote", "--full"], "all of it").await;
    shop.until_phase("Succeeded", 5).await;
    let (_, text, _) = shop.run(&["history", "deployment/web"]).await;
    let current = text
        .lines()
        .find(|line| line.contains("current, good"))
        .unwrap_or_default();
    assert!(current.contains("web:1"), "{text}");

    // Old revisions go, also when none of the new ones ever succeeds.
    shop.said(&["pause"], "many changes").await;
    for number in 6..20 {
        shop.image(&format!("web:{number}")).await;
        shop.until(&format!("revision {number}"), |binding| {
            binding["status"]["rollout"]["revision"] == number
        })
        .await;
    }
    let (_, text, _) = shop.run(&["history", "deployment/web", "--no-headers"]).await;
    let kept = text.lines().take_while(|line| !line.is_empty()).count();
    assert!((10..=12).contains(&kept), "{text}");
    assert!(
        text.lines()
            .any(|line| line.contains("last good") && line.contains("web:1")),
        "{text}"
    );
    shop.said(&["resume"], "go on").await;
    shop.said(&["promote", "--full"], "all of it").await;
    shop.until_phase("Succeeded", 19).await;

    let (code, _, error) = shop.run(&["undo", "deployment/web", "--to-revision", "77"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("there is no revision 77"), "{error}");
    let (code, _, error) = shop.run(&["pause", "deployment/nobody"]).await;
    assert_eq!(code, 1);
    assert!(error.contains("nobody"), "{error}");
    let (code, text, _) = shop.run(&["status", "deployment/web", "--watch"]).await;
    assert_eq!(code, 0, "{text}");
}
