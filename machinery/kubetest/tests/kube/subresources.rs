//! Subresources: status, scale, eviction, binding and tokens.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, EvictParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::harness::{Cluster, deployment, parse, pod, refusal};

both!(
    status_is_apart_from_the_spec,
    scale_is_a_view_of_the_spec,
    pods_are_bound_and_evicted,
    accounts_get_tokens,
    nodes_are_cordoned,
);

fn post() -> PostParams {
    PostParams::default()
}

async fn status_is_apart_from_the_spec(cluster: Cluster) {
    let api: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    let mut wanted = deployment("d");
    wanted.status = parse(json!({"replicas": 7}));
    let made = api.create(&post(), &wanted).await.unwrap();
    let replicas = |d: &Deployment| d.status.clone().unwrap_or_default().replicas;
    assert_eq!(replicas(&made), None, "a status is not created");

    let patch = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"replicas": 3}}));
    let patched = api
        .patch_status("d", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(replicas(&patched), Some(3));
    assert_eq!(patched.spec.as_ref().unwrap().replicas, Some(2));
    assert_eq!(patched.meta().generation, Some(1));
    assert_eq!(api.get_status("d").await.unwrap(), patched);

    let mut wanted = patched.clone();
    wanted.spec.as_mut().unwrap().replicas = Some(9);
    wanted.status.get_or_insert_default().ready_replicas = Some(2);
    let replaced = api.replace_status("d", &post(), &wanted).await.unwrap();
    assert_eq!(replaced.status.as_ref().unwrap().ready_replicas, Some(2));
    assert_eq!(replaced.spec.as_ref().unwrap().replicas, Some(2));
    assert!(refusal(api.replace_status("d", &post(), &wanted).await).is_conflict());

    let mut wanted = replaced.clone();
    wanted.spec.as_mut().unwrap().replicas = Some(4);
    wanted.status = None;
    let respecified = api.replace("d", &post(), &wanted).await.unwrap();
    assert_eq!(respecified.spec.as_ref().unwrap().replicas, Some(4));
    assert_eq!(respecified.status, replaced.status);
    assert_eq!(respecified.meta().generation, Some(2));
    let absent = api.patch_status("e", &PatchParams::default(), &patch).await;
    assert!(refusal(absent).is_not_found());
}

async fn scale_is_a_view_of_the_spec(cluster: Cluster) {
    let api: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &deployment("d")).await.unwrap();
    let scale = api.get_scale("d").await.unwrap();
    assert_eq!(scale.metadata.uid, made.uid());
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
    assert_eq!(scale.status.as_ref().unwrap().selector.as_deref(), Some("app=d"));

    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let patched = api
        .patch_scale("d", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.spec.as_ref().unwrap().replicas, Some(5));
    assert_eq!(api.get("d").await.unwrap().spec.unwrap().replicas, Some(5));

    let mut wanted = patched.clone();
    wanted.spec.as_mut().unwrap().replicas = Some(6);
    let replaced = api.replace_scale("d", &post(), &wanted).await.unwrap();
    assert_eq!(replaced.spec.as_ref().unwrap().replicas, Some(6));
    assert!(refusal(api.replace_scale("d", &post(), &wanted).await).is_conflict());
    assert_eq!(api.get("d").await.unwrap().meta().generation, Some(3));
    let mut wanted = replaced.clone();
    wanted.spec.as_mut().unwrap().replicas = Some(-1);
    assert!(refusal(api.replace_scale("d", &post(), &wanted).await).is_invalid());
}

async fn pods_are_bound_and_evicted(cluster: Cluster) {
    let api: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    api.create(&post(), &pod("p")).await.unwrap();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}});
    let post = PostParams::default();
    let bind = || api.create_subresource::<_, Status>("binding", "p", &post, &binding);
    assert!(bind().await.unwrap().is_success());
    let bound = api.get("p").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("n1"));
    assert!(refusal(bind().await).is_conflict());

    let running = Patch::Strategic(json!({"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}]}}));
    let params = PatchParams::default();
    let patched = api.patch_status("p", &params, &running).await.unwrap();
    let conditions = patched.status.unwrap().conditions.unwrap();
    let types: Vec<_> = conditions.iter().map(|c| c.type_.as_str()).collect();
    assert!(
        types.contains(&"PodScheduled") && types.contains(&"Ready"),
        "{types:?}"
    );

    let status = api.evict("p", &EvictParams::default()).await.unwrap();
    assert!(status.is_success());
    let going = api.get("p").await.unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert!(refusal(api.evict("q", &EvictParams::default()).await).is_not_found());
}

async fn accounts_get_tokens(cluster: Cluster) {
    let api: Api<ServiceAccount> = Api::default_namespaced(cluster.client.clone());
    let account: ServiceAccount = parse(json!({"metadata": {"name": "robot"}}));
    api.create(&post(), &account).await.unwrap();
    let request: TokenRequest = parse(json!({"spec": {"audiences": [], "expirationSeconds": 3600}}));
    let made = api
        .create_token_request("robot", &post(), &request)
        .await
        .unwrap();
    let status = made.status.unwrap();
    assert_eq!(status.token.split('.').count(), 3);
    assert!(refusal(api.create_token_request("nobody", &post(), &request).await).is_not_found());
    assert!(made.metadata.name.is_none_or(|name| name == "robot"));
}

async fn nodes_are_cordoned(cluster: Cluster) {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let node: Node = parse(json!({"metadata": {"name": "n1"}}));
    api.create(&post(), &node).await.unwrap();
    let closed = api.cordon("n1").await.unwrap();
    assert_eq!(closed.spec.unwrap().unschedulable, Some(true));
    let open = api.uncordon("n1").await.unwrap();
    assert!(!open.spec.unwrap_or_default().unschedulable.unwrap_or_default());
}
