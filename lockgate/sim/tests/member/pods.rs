use std::time::Duration;

use lockgate_sim::{BEHAVIOUR, NodeOptions, SimOptions};
use machinery_apiserver::Local;
use serde_json::{Value, json};

use super::cluster::{Cluster, condition, is_true, reason, workload};

fn pod(name: &str, image: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": image, "resources": resources}]},
    })
}

fn get(local: &Local, name: &str) -> Value {
    local.get("v1", "pods", "default", name).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_fit_waits_until_it_does() {
    let nodes = NodeOptions {
        cpu: "2".to_owned(),
        ..NodeOptions::default()
    };
    let cluster = Cluster::with(SimOptions {
        nodes,
        ..SimOptions::default()
    })
    .await;
    for name in ["a", "b"] {
        cluster.create(pod(name, "web:1", "1500m")).await;
        cluster
            .until("it runs", |local| is_true(&get(local, name), "Ready"))
            .await;
    }
    assert_ne!(
        get(&cluster.local, "a")["spec"]["nodeName"],
        get(&cluster.local, "b")["spec"]["nodeName"]
    );
    cluster.create(pod("c", "web:1", "1500m")).await;
    cluster
        .until("it is refused", |local| {
            reason(&get(local, "c"), "PodScheduled") == "Unschedulable"
        })
        .await;
    let waiting = get(&cluster.local, "c");
    assert_eq!(waiting["status"]["phase"], "Pending");
    let message = condition(&waiting, "PodScheduled").expect("a condition")["message"]
        .as_str()
        .expect("a text");
    assert!(
        message.starts_with("0/2 nodes are available: 2 Insufficient cpu. "),
        "{message}"
    );
    cluster.assert_settled().await;

    cluster.delete("v1", "pods", "a").await;
    cluster
        .until("it has its room", |local| is_true(&get(local, "c"), "Ready"))
        .await;
    assert_eq!(reason(&get(&cluster.local, "c"), "PodScheduled"), "");
}

#[tokio::test(start_paused = true)]
async fn crashing_pods_restart_with_longer_and_longer_rests() {
    let cluster = Cluster::new().await;
    cluster.create(pod("sick", "web:fail", "1")).await;
    let restarts =
        |local: &Local| get(local, "sick")["status"]["containerStatuses"][0]["restartCount"].clone();
    let begun = tokio::time::Instant::now();
    cluster
        .until("it was restarted three times", |local| restarts(local) == 3)
        .await;
    // It starts after two seconds and rests 10, 20 and 40.
    let passed = begun.elapsed();
    assert!((71..=74).contains(&passed.as_secs()), "{passed:?}");
    let state = get(&cluster.local, "sick")["status"]["containerStatuses"][0]["state"].clone();
    assert_eq!(state["waiting"]["reason"], "CrashLoopBackOff");
}

#[tokio::test(start_paused = true)]
async fn starting_takes_as_long_as_it_says() {
    let options = SimOptions {
        delay: Duration::from_millis(300),
        ..SimOptions::default()
    };
    for (image, wanted) in [
        ("web:1", Duration::from_millis(300)),
        ("web:slow-45s", Duration::from_secs(45)),
    ] {
        let cluster = Cluster::with(options.clone()).await;
        cluster
            .until("there are nodes", |local| {
                local.list("v1", "nodes", "").len() == 2
            })
            .await;
        let begun = tokio::time::Instant::now();
        cluster.create(pod("web", image, "1")).await;
        cluster
            .until("it is ready", |local| is_true(&get(local, "web"), "Ready"))
            .await;
        let passed = begun.elapsed();
        assert!(
            passed >= wanted && passed < wanted + Duration::from_millis(50),
            "{image}: {passed:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_makes_its_pods_unready_and_takes_no_new_ones() {
    let cluster = Cluster::new().await;
    cluster.create(workload("Deployment", "web", 4, "web:1")).await;
    let available = |local: &Local, count: i64| {
        let web = local
            .get("apps/v1", "deployments", "default", "web")
            .unwrap_or_default();
        web["status"]["availableReplicas"].as_i64().unwrap_or(0) == count
    };
    cluster
        .until("all are available", |local| available(local, 4))
        .await;
    let lose = |node: &mut Value| node["metadata"]["annotations"] = json!({BEHAVIOUR: "not-ready"});
    cluster.change("v1", "nodes", "node-1", lose).await;
    cluster
        .until("half of them are left", |local| available(local, 2))
        .await;
    cluster.assert_settled().await;
    cluster
        .change("apps/v1", "deployments", "web", |web| {
            web["spec"]["replicas"] = json!(6)
        })
        .await;
    cluster
        .until("new ones go to the other node", |local| available(local, 4))
        .await;
    let find = |node: &mut Value| node["metadata"]["annotations"] = json!({});
    cluster.change("v1", "nodes", "node-1", find).await;
    cluster.until("all are back", |local| available(local, 6)).await;
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_starts_later_takes_over() {
    let cluster = Cluster::new().await;
    cluster.create(pod("web", "web:1", "1")).await;
    cluster
        .until("it is ready", |local| is_true(&get(local, "web"), "Ready"))
        .await;
    let before = get(&cluster.local, "web");
    // A second member finds everything as it should be.
    let _second = lockgate_sim::Member::start(&cluster.server, SimOptions::default());
    cluster.assert_settled().await;
    assert_eq!(get(&cluster.local, "web"), before);
}

#[tokio::test(start_paused = true)]
async fn a_member_ends_with_its_server() {
    let cluster = Cluster::new().await;
    let run = tokio::spawn(lockgate_sim::Member::run(
        cluster.server.clone(),
        SimOptions::default(),
    ));
    cluster
        .until("there are nodes", |local| {
            local.list("v1", "nodes", "").len() == 2
        })
        .await;
    cluster.server.clone().stop().await;
    let ended = tokio::time::timeout(Duration::from_secs(120), run).await;
    ended
        .expect("it notices that the server is gone")
        .expect("it does not panic");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_mended_starts_after_the_usual_delay() {
    let cluster = Cluster::new().await;
    cluster.create(pod("web", "web:pull-error", "1")).await;
    let waits = |local: &Local| {
        get(local, "web")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
            == "ImagePullBackOff"
    };
    cluster.until("its image cannot be pulled", waits).await;
    cluster.assert_settled().await;
    let begun = tokio::time::Instant::now();
    let mend = |pod: &mut Value| pod["metadata"]["annotations"] = json!({BEHAVIOUR: "well"});
    cluster.change("v1", "pods", "web", mend).await;
    cluster
        .until("it is ready", |local| is_true(&get(local, "web"), "Ready"))
        .await;
    assert_eq!(begun.elapsed().as_secs(), 2);
}
