//! Writes: conflicts, no-ops, generations, patches, subresources, dry runs.

use serde_json::json;

use crate::harness::{CONFIG_MAPS, JSON_PATCH, MERGE, STRATEGIC, Server, version};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> serde_json::Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}})
}

#[tokio::test]
async fn a_stale_update_loses() {
    let server = Server::start().await;
    let old = server.config_map("a", json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    server
        .patch(&path, MERGE, json!({"data": {"k": "2"}}))
        .await
        .expect(200);
    let answer = server.put(&path, old).await;
    assert_eq!(answer.refusal().0, 409);
    assert_eq!(server.get(&path).await.value["data"]["k"], "2");
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let server = Server::start().await;
    let made = server.config_map("a", json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let revision = server.api.revision();
    for answer in [
        server.put(&path, made.clone()).await,
        server.patch(&path, MERGE, json!({"data": {"k": "1"}})).await,
        server
            .patch(
                &path,
                JSON_PATCH,
                json!([{"op": "test", "path": "/data/k", "value": "1"}]),
            )
            .await,
    ] {
        assert_eq!(version(&answer.expect(200)), version(&made));
    }
    assert_eq!(server.api.revision(), revision);
}

#[tokio::test]
async fn generation_moves_with_the_spec_alone() {
    let server = Server::start().await;
    let made = server.post(DEPLOYMENTS, deployment("d")).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{DEPLOYMENTS}/d");
    let labelled = server
        .patch(&path, MERGE, json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .expect(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let scaled = server
        .patch(&path, MERGE, json!({"spec": {"replicas": 3}}))
        .await
        .expect(200);
    assert_eq!(scaled["metadata"]["generation"], 2);
    let status = json!({"spec": {"replicas": 9}, "status": {"replicas": 3, "observedGeneration": 2}});
    let told = server
        .patch(&format!("{path}/status"), MERGE, status)
        .await
        .expect(200);
    assert_eq!(
        (&told["spec"]["replicas"], &told["status"]["replicas"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(told["metadata"]["generation"], 2);
    let kept = server
        .patch(&path, MERGE, json!({"status": {"replicas": 7}}))
        .await
        .expect(200);
    assert_eq!(kept["status"]["replicas"], 3);
}

#[tokio::test]
async fn strategic_patches_merge_lists_by_key() {
    let server = Server::start().await;
    server.post(DEPLOYMENTS, deployment("d")).await.expect(201);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1"}, {"name": "c", "image": "nginx:2"}]}}}});
    let patched = server
        .patch(&format!("{DEPLOYMENTS}/d"), STRATEGIC, patch)
        .await
        .expect(200);
    let containers = patched["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    let images: Vec<_> = containers
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["image"].as_str().unwrap()))
        .collect();
    assert_eq!(images, [("side", "busybox:1"), ("c", "nginx:2")]);
}

#[tokio::test]
async fn scale_is_a_small_view() {
    let server = Server::start().await;
    server.post(DEPLOYMENTS, deployment("d")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = server.get(&path).await.expect(200);
    assert_eq!(
        (
            scale["kind"].as_str(),
            &scale["spec"]["replicas"],
            &scale["status"]["selector"]
        ),
        (Some("Scale"), &json!(1), &json!("app=d"))
    );
    let scaled = server
        .patch(&path, MERGE, json!({"spec": {"replicas": 4}}))
        .await
        .expect(200);
    assert_eq!(scaled["spec"]["replicas"], 4);
    assert_eq!(
        server.get(&format!("{DEPLOYMENTS}/d")).await.value["spec"]["replicas"],
        4
    );
    let mut stale = scale;
    stale["spec"]["replicas"] = json!(9);
    assert_eq!(server.put(&path, stale).await.code, 409);
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let server = Server::start().await;
    let revision = server.api.revision();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let answer = server
        .post(&format!("{CONFIG_MAPS}?dryRun=All"), body)
        .await
        .expect(201);
    assert!(answer["metadata"].get("resourceVersion").is_none());
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    assert_eq!(server.api.revision(), revision);
}

#[tokio::test]
async fn lost_races_of_patches_are_run_again() {
    let server = std::sync::Arc::new(Server::start().await);
    server.config_map("a", json!({})).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let server = server.clone();
        tasks.spawn(async move {
            let patch = json!({"data": {format!("k{number}"): "v"}});
            server
                .patch(&format!("{CONFIG_MAPS}/a"), MERGE, patch)
                .await
                .expect(200);
        });
    }
    while tasks.join_next().await.is_some() {}
    let data = server.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    assert_eq!(data["data"].as_object().unwrap().len(), 10);
}

#[tokio::test]
async fn events_are_one_thing_in_two_shapes() {
    let server = Server::start().await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "lab", "reportingInstance": "lab-1", "action": "Act",
        "reason": "Why", "type": "Normal", "note": "hello", "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"}});
    server
        .post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        .await
        .expect(201);
    let core = server
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Da")
        .await
        .expect(200);
    assert_eq!(core["items"][0]["message"], "hello");
    assert_eq!(core["items"][0]["reportingComponent"], "lab");
    let patch = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    let patched = server
        .patch("/apis/events.k8s.io/v1/namespaces/default/events/e", MERGE, patch)
        .await
        .expect(200);
    assert_eq!(
        (patched["note"].as_str(), &patched["series"]["count"]),
        (Some("hello"), &json!(2))
    );
}
