//! Waiting for conditions: each waiter begins before what it waits for.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::{CustomResourceExt, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::definitions::{Garden, define};
use crate::harness::{Cluster, config_map, deployment, parse, pod};

both!(
    creation_and_deletion_are_awaited,
    definitions_become_established,
    workloads_complete,
);

/// Waits for a condition while something is done that brings it about.
async fn meanwhile<K, T>(
    cluster: &Cluster,
    api: &Api<K>,
    name: &str,
    condition: impl Condition<K>,
    act: impl Future<Output = T>,
) -> (Option<K>, T)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let path = format!("{}?", api.resource_url());
    let before = cluster.requests.with(&path).len();
    let waiter = async { await_condition(api.clone(), name, condition).await.unwrap() };
    let actor = async {
        cluster.requests.reach(before + 1, &path).await;
        act.await
    };
    futures::future::join(waiter, actor).await
}

async fn creation_and_deletion_are_awaited(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let post = PostParams::default();
    let wanted = config_map("a", "1");
    let create = api.create(&post, &wanted);
    let (seen, made) = meanwhile(&cluster, &api, "a", conditions::is_created(), create).await;
    let made = made.unwrap();
    assert_eq!(seen.as_ref(), Some(&made));
    let uid = made.uid().unwrap();
    let gone = conditions::is_deleted(&uid);
    let params = DeleteParams::default();
    let (seen, _) = meanwhile(&cluster, &api, "a", gone, api.delete("a", &params)).await;
    assert!(seen.is_none());
    // Deleted and made again is deleted, too.
    let anew = api.create(&post, &wanted).await.unwrap();
    let seen = await_condition(api.clone(), "a", conditions::is_deleted(&uid))
        .await
        .unwrap();
    assert_eq!(seen, Some(anew));
}

async fn definitions_become_established(cluster: Cluster) {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let established = conditions::is_crd_established();
    let name = Garden::crd_name();
    let (seen, made) = meanwhile(&cluster, &api, name, established, define(&cluster.client)).await;
    assert_eq!(seen.unwrap().uid(), made.uid());
    let uid = made.uid().unwrap();
    let gone = conditions::is_deleted(&uid);
    let params = DeleteParams::default();
    let (seen, _) = meanwhile(&cluster, &api, name, gone, api.delete(name, &params)).await;
    assert!(seen.is_none());
}

async fn workloads_complete(cluster: Cluster) {
    let client = &cluster.client;
    let post = PostParams::default();
    let status = |status: Value| Patch::Merge(json!({"status": status}));
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let params = PatchParams::default();

    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&post, &deployment("d")).await.unwrap();
    let patch = status(json!({"observedGeneration": 1, "replicas": 2,
        "conditions": [condition("Progressing", "NewReplicaSetAvailable")]}));
    let act = deployments.patch_status("d", &params, &patch);
    let wait = conditions::is_deployment_completed();
    let (seen, patched) = meanwhile(&cluster, &deployments, "d", wait, act).await;
    assert_eq!(seen, Some(patched.unwrap()));

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&post, &pod("p")).await.unwrap();
    let patch = status(json!({"phase": "Running"}));
    let act = pods.patch_status("p", &params, &patch);
    let (seen, patched) = meanwhile(&cluster, &pods, "p", conditions::is_pod_running(), act).await;
    assert_eq!(seen, Some(patched.unwrap()));

    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let job: Job = parse(json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "main:1"}]}}}}));
    jobs.create(&post, &job).await.unwrap();
    let patch = status(
        json!({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z", "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet", "CompletionsReached"), condition("Complete", "CompletionsReached")]}),
    );
    let act = jobs.patch_status("j", &params, &patch);
    let (seen, patched) = meanwhile(&cluster, &jobs, "j", conditions::is_job_completed(), act).await;
    assert_eq!(seen, Some(patched.unwrap()));

    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    services.create(&post, &parse(service)).await.unwrap();
    let patch = status(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}));
    let act = services.patch_status("s", &params, &patch);
    let wait = conditions::is_service_loadbalancer_provisioned();
    let (seen, patched) = meanwhile(&cluster, &services, "s", wait, act).await;
    assert_eq!(seen, Some(patched.unwrap()));
}
