//! Kinds that are known only at run time: discovery and dynamic objects.

use std::collections::BTreeSet;

use kube::api::{
    Api, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::ApiResource;
use kube::discovery::{self, ApiCapabilities, Scope, verbs};
use kube::{CustomResourceExt, Discovery, Resource, ResourceExt};
use serde_json::json;

use crate::definitions::{Garden, define, garden};
use crate::harness::{Cluster, refusal};

both!(
    both_discoveries_say_the_same,
    everything_discovered_can_be_listed,
    one_kind_is_found_by_name,
    dynamic_objects_live_and_die,
    custom_kinds_are_dynamic_objects_too,
    the_server_says_its_version,
);

fn line((resource, abilities): &(ApiResource, ApiCapabilities)) -> String {
    let mut operations = abilities.operations.clone();
    operations.sort();
    let mut parts: Vec<_> = abilities
        .subresources
        .iter()
        .map(|(sub, _)| sub.plural.clone())
        .collect();
    parts.sort();
    format!(
        "{} {} {} {:?} {operations:?} {parts:?}",
        resource.api_version, resource.kind, resource.plural, abilities.scope
    )
}

async fn both_discoveries_say_the_same(cluster: Cluster) {
    define(&cluster.client).await;
    let stepwise = Discovery::new(cluster.client.clone()).run().await.unwrap();
    let aggregated = Discovery::new(cluster.client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let lines = |discovery: &Discovery| -> BTreeSet<String> {
        let groups = discovery.groups();
        let resources = groups.flat_map(|group| {
            let versions = group.versions();
            versions.flat_map(|version| group.versioned_resources(version))
        });
        resources.map(|resource| line(&resource)).collect()
    };
    assert_eq!(lines(&stepwise), lines(&aggregated));
    for group in ["", "apps", "lab.io", "events.k8s.io", "coordination.k8s.io"] {
        assert!(stepwise.has_group(group), "{group}");
    }
    let (resource, abilities) = stepwise
        .resolve_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"))
        .unwrap();
    assert_eq!(resource.plural, "deployments");
    assert_eq!(abilities.scope, Scope::Namespaced);
    let subs: BTreeSet<_> = abilities
        .subresources
        .iter()
        .map(|(s, _)| s.plural.as_str())
        .collect();
    assert_eq!(subs, BTreeSet::from(["scale", "status"]));
}

async fn everything_discovered_can_be_listed(cluster: Cluster) {
    define(&cluster.client).await;
    let discovery = Discovery::new(cluster.client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let mut listed = 0;
    for group in discovery.groups() {
        for (resource, abilities) in group.recommended_resources() {
            if !abilities.supports_operation(verbs::LIST) {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
            let list = api.list(&ListParams::default()).await;
            let list = list.unwrap_or_else(|e| panic!("{resource:?}: {e}"));
            assert!(list.metadata.resource_version.is_some(), "{resource:?}");
            listed += 1;
        }
    }
    assert!(listed > 40, "{listed}");
}

async fn one_kind_is_found_by_name(cluster: Cluster) {
    let client = &cluster.client;
    let gvk = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let (resource, abilities) = discovery::pinned_kind(client, &gvk).await.unwrap();
    assert_eq!(resource.plural, "leases");
    assert!(abilities.supports_operation(verbs::WATCH));
    let core = discovery::group(client, "").await.unwrap();
    let (node, abilities) = core.recommended_kind("Node").unwrap();
    assert_eq!((node.plural.as_str(), abilities.scope), ("nodes", Scope::Cluster));
    let apps = discovery::pinned_group(client, &"apps/v1".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(apps.preferred_version_or_latest(), "v1");

    // A kind is found as soon as it is defined, and not before.
    let gvk = GroupVersionKind::gvk("lab.io", "v1", "Garden");
    assert!(discovery::pinned_kind(client, &gvk).await.is_err());
    define(client).await;
    let (resource, _) = discovery::pinned_kind(client, &gvk).await.unwrap();
    assert_eq!(resource, Garden::api_resource());
    assert_eq!(resource, ApiResource::erase::<Garden>(&()));
}

async fn dynamic_objects_live_and_die(cluster: Cluster) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &resource);
    let wanted = DynamicObject::new("a", &resource).data(json!({"data": {"v": "1"}}));
    let made = api.create(&PostParams::default(), &wanted).await.unwrap();
    assert_eq!(made.types, wanted.types);
    let mut changed = made.clone();
    changed.data["data"]["v"] = json!("2");
    let changed = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"w": "3"}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data["data"], json!({"v": "2", "w": "3"}));
    assert_ne!(patched.resource_version(), changed.resource_version());
    let listed = api
        .list(&ListParams::default().fields("metadata.name=a"))
        .await
        .unwrap();
    assert_eq!(listed.items[0].data, patched.data);
    assert!(
        api.delete("a", &DeleteParams::default())
            .await
            .unwrap()
            .is_right()
    );
    assert!(refusal(api.get("a").await).is_not_found());
}

async fn custom_kinds_are_dynamic_objects_too(cluster: Cluster) {
    define(&cluster.client).await;
    let resource = Garden::api_resource();
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &resource);
    let wanted = DynamicObject::new("g", &resource).data(json!({"spec": {"plants": ["rose"]}}));
    let made = api.create(&PostParams::default(), &wanted).await.unwrap();
    let typed: Garden = made.clone().try_parse().unwrap();
    assert_eq!(typed.spec, garden("g", &["rose"]).spec);
    let patch = Patch::Merge(json!({"status": {"planted": 1}}));
    let patched = api
        .patch_status("g", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.data["status"], json!({"planted": 1}));
    assert_eq!(patched.meta().generation, Some(1));
    assert_eq!(api.get_scale("g").await.unwrap().status.unwrap().replicas, 1);
}

async fn the_server_says_its_version(cluster: Cluster) {
    let version = cluster.client.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
    assert!(
        version.minor.trim_end_matches('+').parse::<u32>().unwrap() >= 33,
        "{version:?}"
    );
}
