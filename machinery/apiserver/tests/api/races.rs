//! Requests that get in each other's way.

use std::time::Duration;

use futures::future::join_all;
use machinery_apiserver::Options;
use machinery_auth::UserInfo;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{CONFIG_MAPS, MERGE, Server, pki};

const APPLY: &str = "application/apply-patch+yaml";

/// A server whose writes go to a disk: while one of them is under way, others are asked for.
async fn durable() -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(pki());
    options.path = Some(folder.path().join("store"));
    (Server::with(options).await, folder)
}

#[tokio::test]
async fn of_first_applies_at_once_one_creates_and_the_others_update() {
    let (server, _folder) = durable().await;
    let apply = |number: usize| {
        let path = format!("{CONFIG_MAPS}/shared?fieldManager=m{number}");
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"},
            "data": {format!("k{number}"): "v"}});
        let server = &server;
        async move { server.patch(&path, APPLY, body).await }
    };
    let answers = join_all((0..16).map(apply)).await;
    let mut codes: Vec<u16> = answers.iter().map(|answer| answer.code).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [[200; 15].as_slice(), &[201]].concat(),
        "{}",
        answers[1].value
    );
    let shared = server.get(&format!("{CONFIG_MAPS}/shared")).await.expect(200);
    assert_eq!(shared["data"].as_object().unwrap().len(), 16);
}

#[tokio::test]
async fn of_first_puts_at_once_one_creates_and_the_others_update() {
    let (server, _folder) = durable().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/shared";
    let put = |number: usize| {
        let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {
            "name": "shared", "labels": {"n": number.to_string()}}, "rules": []});
        server.put(roles, body)
    };
    let answers = join_all((0..16).map(put)).await;
    let mut codes: Vec<u16> = answers.iter().map(|answer| answer.code).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [[200; 15].as_slice(), &[201]].concat(),
        "{}",
        answers[1].value
    );
}

/// A Pod that starts to run while it is evicted is its budget's business.
#[tokio::test]
async fn what_was_judged_is_what_is_evicted() {
    let (server, _folder) = durable().await;
    let namespace = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    server.post(namespace, budget).await.expect(201);
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 0}});
    server
        .patch(&format!("{namespace}/b/status"), MERGE, status)
        .await
        .expect(200);
    let pods = "/api/v1/namespaces/default/pods";
    for round in 0..20 {
        let name = format!("p{round}");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        server.post(pods, pod).await.expect(201);
        let runs: Value =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let (path, evictions) = (format!("{pods}/{name}/status"), format!("{pods}/{name}/eviction"));
        let (started, evicted) = tokio::join!(
            server.patch(&path, MERGE, runs),
            server.post(&evictions, eviction)
        );
        assert!(
            matches!((started.code, evicted.code), (200, 429) | (404, 201)),
            "round {round}: {} {} {}",
            started.code,
            evicted.code,
            evicted.value
        );
    }
}

/// A client that goes away while its write is on the way to the disk: what is stored then is in force.
#[tokio::test]
async fn what_is_written_counts_also_if_nobody_waits_for_the_answer() {
    let (server, _folder) = durable().await;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "guest"}]});
    server.post(bindings, binding).await.expect(201);
    let guest = server.by(UserInfo::new("guest", ["system:authenticated"]));
    guest.get(CONFIG_MAPS).await.expect(200);
    {
        let path = format!("{bindings}/b");
        let mut leaving = std::pin::pin!(server.delete(&path, json!({})));
        assert!(futures::poll!(&mut leaving).is_pending());
    }
    server.gone(bindings, "b").await;
    let refused = async {
        while guest.get(CONFIG_MAPS).await.code != 403 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused)
        .await
        .expect("a binding that is gone still grants");
}
