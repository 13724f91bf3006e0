use std::time::Duration;

use lockgate_sim::SimOptions;
use machinery_apiserver::Local;
use serde_json::{Value, json};

use super::cluster::{Cluster, is_true, reason, workload};

fn fast() -> SimOptions {
    SimOptions {
        delay: Duration::from_secs(2),
        pods: false,
        ..SimOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn without_pods_workloads_get_their_status_directly() {
    let cluster = Cluster::with(fast()).await;
    for kind in ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"] {
        cluster.create(workload(kind, "web", 2, "web:1")).await;
    }
    let ready = |local: &Local| {
        let count = |plural: &str, field: &str| {
            let object = local.get("apps/v1", plural, "default", "web").unwrap_or_default();
            object["status"][field].as_i64().unwrap_or(0)
        };
        count("deployments", "availableReplicas") == 2
            && count("statefulsets", "readyReplicas") == 2
            && count("replicasets", "readyReplicas") == 2
            && count("daemonsets", "numberReady") == 2
    };
    cluster.until("all are ready", ready).await;
    assert!(cluster.pods().is_empty());
    cluster.assert_settled().await;

    let edit =
        |web: &mut Value| web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:pull-error");
    cluster.change("apps/v1", "deployments", "web", edit).await;
    let web = |local: &Local| {
        local
            .get("apps/v1", "deployments", "default", "web")
            .unwrap_or_default()
    };
    let timed_out = |local: &Local| reason(&web(local), "Progressing") == "ProgressDeadlineExceeded";
    cluster.until("the rollout times out", timed_out).await;
    assert_eq!(web(&cluster.local)["status"]["updatedReplicas"], 1);
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn many_deployments_cost_two_writes_each() {
    let cluster = Cluster::with(fast()).await;
    cluster
        .until("there are nodes", |local| {
            local.list("v1", "nodes", "").len() == 2
        })
        .await;
    let before = cluster.server.revision();
    for number in 0..300 {
        cluster
            .create(workload("Deployment", &format!("web-{number}"), 3, "web:1"))
            .await;
    }
    cluster.pass(60).await;
    let all = cluster.local.list("apps/v1", "deployments", "default");
    assert!(all.iter().all(|web| is_true(web, "Available")));
    assert_eq!(
        cluster.server.revision() - before,
        300 * 3,
        "one to create, one when it is seen, one when it is there"
    );
    cluster.assert_settled().await;
}
