//! `lockgate rollout` on a policy of Open Cluster Management, as people type it: what is shown of each cluster, and that every
//! verb asks for what it says. What controllers would answer is answered here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use hub::TestHub;
use lockgate_api::keys;
use lockgate_engine::gate::record::{RolloutRecord, Verb};
use serde_json::{Value, json};

const API_VERSION: &str = "policy.open-cluster-management.io/v1";
const REVISION: &str = "policy.open-cluster-management.io/rollout-revision";

fn policy(namespace: &str, name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Policy",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations, "labels": {
            "policy.open-cluster-management.io/root-policy": name,
        }},
        "spec": {"disabled": false, "remediationAction": "enforce", "policy-templates": [{"objectDefinition": {
            "apiVersion": API_VERSION, "kind": "ConfigurationPolicy", "metadata": {"name": "box"},
        }}]},
    })
}

/// A hub with a policy that waits in one of its two clusters.
async fn policies() -> TestHub {
    let hub = TestHub::installed().await;
    for name in ["policies", "member1", "member2"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        hub.local.create(namespace).await.unwrap();
    }
    let record = RolloutRecord {
        revision: 2,
        digest: "b".to_owned(),
        ..RolloutRecord::default()
    };
    let record = serde_json::to_string(&record).unwrap();
    let mut root = policy("policies", "settings", &json!({ keys::ROLLOUT: record }));
    root["metadata"]["labels"] = json!({});
    let mut root = hub.local.create(root).await.unwrap();
    let cluster =
        |name: &str, state: &str, reason: &str| json!({"name": name, "state": state, "reason": reason});
    root["status"] = json!({"rolloutStatus": "Failed", "rollout": {
        "policy": "Policy policies/settings", "phase": "Failed", "revision": 2, "message": "0 of 2 clusters are done",
        "groups": [
            {"index": 0, "name": "canary", "clusters": [cluster("member1", "Failed", "failed")]},
            {"index": 1, "name": "", "clusters": [cluster("member2", "ToApply", "waits for group 0 (canary)")]},
        ],
    }});
    hub.local.update_status(root).await.unwrap();
    for (member, mark) in [("member1", "2.b.1000000"), ("member2", "0.b.1000000")] {
        let replica = policy(member, "policies.settings", &json!({ REVISION: mark }));
        let mut replica = hub.local.create(replica).await.unwrap();
        replica["status"] = json!({"compliant": "NonCompliant", "evaluatedRevision": mark, "details": [{
            "templateMeta": {"name": "box"}, "compliant": "NonCompliant",
            "history": [{"message": "NonCompliant; violation - configmaps [box] not found in namespace shop"}],
        }]});
        hub.local.update_status(replica).await.unwrap();
    }
    hub
}

/// Answers requests as controllers do, until it is dropped.
fn answering(hub: &TestHub) -> tokio::task::JoinHandle<()> {
    let local = hub.local.clone();
    tokio::spawn(async move {
        loop {
            let mut root = local
                .get(API_VERSION, "policies", "policies", "settings")
                .unwrap();
            let text = root["metadata"]["annotations"][keys::ROLLOUT].as_str().unwrap();
            let mut record: RolloutRecord = serde_json::from_str(text).unwrap();
            if let Some(request) = record.unseen(&root) {
                record.obey(request, "intent", None, local.now());
                let text = serde_json::to_string(&record).unwrap();
                root["metadata"]["annotations"][keys::ROLLOUT] = json!(text);
                // Somebody else may have been faster, and then it is looked at again.
                let _ = local.update(root).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_asks_for_what_it_says() {
    let hub = policies().await;
    let answers = answering(&hub);
    for (verb, asked, told) in [
        ("pause", Verb::Pause, "nothing more starts until it is resumed"),
        ("resume", Verb::Resume, "it goes on"),
        (
            "promote",
            Verb::Promote,
            "the present soak or wait of revision 2 is over",
        ),
        ("retry", Verb::Retry, "what failed in revision 2 starts again"),
        (
            "abort",
            Verb::Abort,
            "revision 2 is given up. No revision has succeeded everywhere",
        ),
    ] {
        let words = [
            "rollout",
            verb,
            "policy/settings",
            "-n",
            "policies",
            "--reason",
            "because",
        ];
        let (code, text, error) = hub.run(&words).await;
        assert_eq!(code, 0, "{verb}: {error}");
        assert!(text.contains(told), "{verb}: {text}");
        assert!(
            text.ends_with("Next: lockgate rollout status policy/settings -n policies\n"),
            "{text}"
        );
        let root = hub.local.get(API_VERSION, "policies", "policies", "settings");
        let root: lockgate_api::ocm::Policy = serde_json::from_value(root.unwrap()).unwrap();
        let command = RolloutRecord::of(&root.metadata).unwrap().command.unwrap();
        assert_eq!(
            (command.request.verb, command.request.reason.as_str()),
            (asked, "because")
        );
    }
    answers.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cluster_says_what_it_does() {
    let hub = policies().await;
    let (code, text, error) = hub
        .run(&["rollout", "status", "policy/settings", "-n", "policies"])
        .await;
    assert_eq!(code, 0, "{error}");
    for words in [
        "Policy policies/settings",
        "group 0 (canary)",
        "member1  Failed",
        "non-compliant: configmaps [box] not found",
        "member2  ToApply",
        "enforces nothing now; would change: configmaps [box]",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let (code, _, error) = hub
        .run(&["rollout", "pause", "policy/nobody", "-n", "policies"])
        .await;
    assert_eq!(code, 1);
    assert!(error.contains("nobody"), "{error}");
}
