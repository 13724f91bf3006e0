//! Metadata alone: what is asked for and what is carried.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{PartialObjectMeta, PartialObjectMetaExt};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use crate::definitions::{Garden, define, garden};
use crate::harness::{Cluster, labelled, pod, refusal};

both!(
    metadata_is_got_and_listed,
    metadata_has_its_own_api,
    metadata_is_patched,
    custom_kinds_have_metadata_too,
);

fn is_partial<K>(object: &PartialObjectMeta<K>) -> bool {
    let types = object.types.as_ref().unwrap();
    types.kind == "PartialObjectMetadata" && types.api_version == "meta.k8s.io/v1"
}

async fn metadata_is_got_and_listed(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &labelled("a", "x"))
        .await
        .unwrap();
    let meta = api.get_metadata("a").await.unwrap();
    assert!(is_partial(&meta));
    assert_eq!(meta.metadata, made.metadata);
    assert!(api.get_metadata_opt("b").await.unwrap().is_none());
    assert!(refusal(api.get_metadata("b").await).is_not_found());
    let list = api
        .list_metadata(&ListParams::default().labels("app=x"))
        .await
        .unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].metadata, made.metadata);
    let page = api.list_metadata(&ListParams::default().limit(1)).await.unwrap();
    assert!(page.metadata.resource_version.is_some() && page.items.len() == 1);
}

async fn metadata_has_its_own_api(cluster: Cluster) {
    let full: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let made = full.create(&PostParams::default(), &pod("p")).await.unwrap();
    let api: Api<PartialObjectMeta<Pod>> = Api::default_namespaced(cluster.client.clone());
    let meta = api.get("p").await.unwrap();
    assert!(is_partial(&meta));
    assert_eq!(meta.metadata, made.metadata);
    let list = api
        .list(&ListParams::default().fields("status.phase=Pending"))
        .await
        .unwrap();
    assert_eq!(list.items[0].name_any(), "p");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"l": "m"}}}));
    let patched = api.patch("p", &PatchParams::default(), &patch).await.unwrap();
    assert!(is_partial(&patched));
    assert_eq!(patched.labels()["l"], "m");
    api.delete("p", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("p").await.unwrap().is_none());
}

async fn metadata_is_patched(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &labelled("a", "x"))
        .await
        .unwrap();
    let mut wanted = made.metadata.clone();
    wanted.annotations = Some([("n".to_owned(), "1".to_owned())].into());
    let patch = Patch::Merge(wanted.into_request_partial::<ConfigMap>());
    let patched = api
        .patch_metadata("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert!(is_partial(&patched));
    assert_eq!(patched.annotations()["n"], "1");
    assert_eq!(api.get("a").await.unwrap().annotations()["n"], "1");
    let again = api.patch_metadata("a", &PatchParams::default(), &patch).await;
    assert!(
        refusal(again).is_conflict(),
        "the patch names a version that is past"
    );
}

async fn custom_kinds_have_metadata_too(cluster: Cluster) {
    define(&cluster.client).await;
    let full: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let made = full
        .create(&PostParams::default(), &garden("g", &[]))
        .await
        .unwrap();
    let api: Api<PartialObjectMeta<Garden>> = Api::default_namespaced(cluster.client.clone());
    assert_eq!(api.get("g").await.unwrap().metadata, made.metadata);
    let dynamic: Api<PartialObjectMeta<kube::api::DynamicObject>> =
        Api::default_namespaced_with(cluster.client.clone(), &Garden::api_resource());
    let list = dynamic.list(&ListParams::default()).await.unwrap();
    assert!(list.items.iter().all(is_partial));
    assert_eq!(list.items[0].metadata.uid, made.uid());
}
