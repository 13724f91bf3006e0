use serde_json::json;

use super::cluster::{Cluster, workload};

fn budget(name: &str, spec: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

#[tokio::test(start_paused = true)]
async fn a_budget_follows_the_pods_and_their_controller() {
    let cluster = Cluster::new().await;
    cluster
        .create(budget(
            "some",
            &json!({"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        ))
        .await;
    cluster
        .create(budget("all", &json!({"minAvailable": 3, "selector": {}})))
        .await;
    cluster.create(workload("Deployment", "web", 3, "web:1")).await;
    let told = |local: &machinery_apiserver::Local, name: &str, want: [i64; 4]| {
        let budget = local
            .get("policy/v1", "poddisruptionbudgets", "default", name)
            .unwrap_or_default();
        let status = &budget["status"];
        status["observedGeneration"] == budget["metadata"]["generation"]
            && [
                "expectedPods",
                "currentHealthy",
                "desiredHealthy",
                "disruptionsAllowed",
            ]
            .map(|field| status[field].as_i64().unwrap_or(-1))
                == want
    };
    cluster
        .until("all Pods count", |local| {
            told(local, "some", [3, 3, 1, 2]) && told(local, "all", [3, 3, 3, 0])
        })
        .await;
    cluster.assert_settled().await;
    let mut web = cluster
        .local
        .get("apps/v1", "deployments", "default", "web")
        .unwrap_or_default();
    web["spec"]["replicas"] = json!(5);
    cluster.local.update(web).await.expect("it is scaled");
    cluster
        .until("the new Pods count, too", |local| {
            told(local, "some", [5, 5, 2, 3]) && told(local, "all", [5, 5, 3, 2])
        })
        .await;
    cluster.assert_settled().await;
}
