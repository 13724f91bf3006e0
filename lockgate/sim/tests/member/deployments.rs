use lockgate_sim::BEHAVIOUR;
use machinery_apiserver::Local;
use serde_json::{Value, json};

use super::cluster::{Cluster, is_true, reason, workload};

fn web(local: &Local) -> Value {
    local
        .get("apps/v1", "deployments", "default", "web")
        .unwrap_or_default()
}

/// Replicas, updated, ready, available, unavailable.
fn counts(deployment: &Value) -> [i64; 5] {
    [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ]
    .map(|field| deployment["status"][field].as_i64().unwrap_or(0))
}

fn rolled_out(deployment: &Value, replicas: i64) -> bool {
    deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
        && counts(deployment) == [replicas, replicas, replicas, replicas, 0]
        && reason(deployment, "Progressing") == "NewReplicaSetAvailable"
}

async fn set_image(cluster: &Cluster, image: &str) {
    let edit = |web: &mut Value| web["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    cluster.change("apps/v1", "deployments", "web", edit).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_lives_from_first_to_last() {
    let cluster = Cluster::new().await;
    let made = cluster.create(workload("Deployment", "web", 4, "web:1")).await;
    cluster
        .until("the Deployment is available", |local| rolled_out(&web(local), 4))
        .await;
    let pods = cluster.pods();
    assert_eq!(pods.len(), 4);
    for pod in &pods {
        assert!(is_true(pod, "Ready"), "{pod:#}");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
        assert!(pod["status"]["podIP"].is_string() && pod["spec"]["nodeName"].is_string());
    }
    let sets = cluster.local.list("apps/v1", "replicasets", "default");
    assert_eq!(
        sets[0]["metadata"]["ownerReferences"][0]["uid"],
        made["metadata"]["uid"]
    );
    assert_eq!(
        web(&cluster.local)["metadata"]["generation"],
        1,
        "the member changes no spec"
    );
    cluster.assert_settled().await;

    // A bad image comes as far as the strategy allows, and no further.
    set_image(&cluster, "web:fail").await;
    cluster
        .until("the rollout is stuck", |local| {
            counts(&web(local)) == [5, 2, 3, 3, 2]
        })
        .await;
    assert!(is_true(&web(&cluster.local), "Available"));
    cluster.pass(60).await;
    assert_eq!(counts(&web(&cluster.local)), [5, 2, 3, 3, 2]);
    assert_eq!(reason(&web(&cluster.local), "Progressing"), "ReplicaSetUpdated");
    let timed_out = |local: &Local| reason(&web(local), "Progressing") == "ProgressDeadlineExceeded";
    cluster.until("the deadline is over", timed_out).await;

    // Back to the first template, as `kubectl rollout undo` does it.
    set_image(&cluster, "web:1").await;
    cluster
        .until("the Deployment is back", |local| rolled_out(&web(local), 4))
        .await;
    assert_eq!(
        web(&cluster.local)["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "3"
    );
    assert_eq!(cluster.local.list("apps/v1", "replicasets", "default").len(), 2);

    for replicas in [6, 0, 2] {
        let edit = |web: &mut Value| web["spec"]["replicas"] = json!(replicas);
        cluster.change("apps/v1", "deployments", "web", edit).await;
        cluster
            .until("the Deployment is scaled", |local| {
                rolled_out(&web(local), replicas)
            })
            .await;
    }
    cluster.assert_settled().await;

    cluster.delete("apps/v1", "deployments", "web").await;
    let is_empty = |local: &Local| {
        local.list("apps/v1", "replicasets", "default").is_empty()
            && local.list("v1", "pods", "default").is_empty()
    };
    cluster.until("sets and Pods are gone", is_empty).await;
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn pods_end_gracefully_when_their_owner_goes() {
    let cluster = Cluster::new().await;
    cluster.create(workload("Deployment", "web", 1, "web:1")).await;
    cluster
        .until("the Deployment is available", |local| rolled_out(&web(local), 1))
        .await;
    cluster.delete("apps/v1", "deployments", "web").await;
    let going = |local: &Local| {
        local
            .list("v1", "pods", "default")
            .iter()
            .any(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    };
    cluster.until("the Pod terminates", going).await;
    cluster
        .until("the Pod is gone", |local| {
            local.list("v1", "pods", "default").is_empty()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_breaks_a_deployment_that_runs_and_mends_it() {
    let cluster = Cluster::new().await;
    cluster.create(workload("Deployment", "web", 2, "web:1")).await;
    cluster
        .until("the Deployment is available", |local| rolled_out(&web(local), 2))
        .await;
    for (word, available) in [(Some("never-ready"), 0), (None, 2)] {
        let edit = |web: &mut Value| match word {
            Some(word) => web["metadata"]["annotations"][BEHAVIOUR] = json!(word),
            None => {
                web["metadata"]["annotations"]
                    .as_object_mut()
                    .expect("there is one")
                    .remove(BEHAVIOUR);
            }
        };
        cluster.change("apps/v1", "deployments", "web", edit).await;
        let is_so = |local: &Local| counts(&web(local))[3] == available;
        cluster.until("the Pods follow the word", is_so).await;
        assert_eq!(is_true(&web(&cluster.local), "Available"), available > 0);
        cluster.assert_settled().await;
    }
    assert_eq!(
        cluster.local.list("apps/v1", "replicasets", "default").len(),
        1,
        "the template did not change"
    );
}

#[tokio::test(start_paused = true)]
async fn recreating_and_pausing_work_on_a_server() {
    let cluster = Cluster::new().await;
    let mut object = workload("Deployment", "web", 2, "web:1");
    object["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create(object).await;
    cluster
        .until("the Deployment is available", |local| rolled_out(&web(local), 2))
        .await;
    cluster
        .change("apps/v1", "deployments", "web", |web| {
            web["spec"]["paused"] = json!(true)
        })
        .await;
    set_image(&cluster, "web:2").await;
    cluster.assert_settled().await;
    assert_eq!(counts(&web(&cluster.local)), [2, 0, 2, 2, 0]);
    cluster
        .change("apps/v1", "deployments", "web", |web| {
            web["spec"]["paused"] = json!(false)
        })
        .await;
    cluster
        .until("the Deployment is recreated", |local| rolled_out(&web(local), 2))
        .await;
    let images = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
    assert!(cluster.pods().iter().map(images).all(|image| image == "web:2"));
}

#[tokio::test(start_paused = true)]
async fn orphans_are_taken_over() {
    let cluster = Cluster::new().await;
    cluster.create(workload("Deployment", "web", 1, "web:1")).await;
    cluster
        .until("the Deployment is available", |local| rolled_out(&web(local), 1))
        .await;
    let set = cluster.local.list("apps/v1", "replicasets", "default").remove(0);
    let name = set["metadata"]["name"].as_str().expect("a name").to_owned();
    cluster
        .change("apps/v1", "replicasets", &name, |set| {
            set["metadata"]
                .as_object_mut()
                .expect("metadata")
                .remove("ownerReferences");
        })
        .await;
    cluster
        .until("the set has an owner again", |local| {
            let set = local
                .get("apps/v1", "replicasets", "default", &name)
                .unwrap_or_default();
            set["metadata"]["ownerReferences"][0]["name"] == "web"
        })
        .await;
    cluster
        .until("the Deployment has its counts", |local| {
            rolled_out(&web(local), 1)
        })
        .await;
    assert_eq!(cluster.pods().len(), 1);
}
