//! Patches of every type.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::harness::{Cluster, Way, bounded, config_map, deployment, parse, refusal};

both!(
    merge_patches_replace_and_remove,
    strategic_patches_merge_lists_by_key,
    json_patches_are_all_or_nothing,
    patches_with_a_version_are_conditional,
    unknown_fields_are_found_on_request,
    concurrent_patches_are_all_kept,
);

fn plain() -> PatchParams {
    PatchParams::default()
}

/// A JSON patch from its operations.
fn json_patch(operations: Value) -> Patch<()> {
    Patch::Json(parse(operations))
}

async fn merge_patches_replace_and_remove(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    api.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let patch = json!({"data": {"v": null, "w": "2"}, "metadata": {"labels": {"l": "m"}}});
    let patched = api.patch("a", &plain(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(
        patched.data.clone().unwrap().into_iter().collect::<Vec<_>>(),
        [("w".into(), "2".into())]
    );
    assert_eq!(patched.labels()["l"], "m");
    let again = api.patch("a", &plain(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(again, patched, "the same patch again changes nothing");
    let dry = api
        .patch("a", &plain().dry_run(), &Patch::Merge(json!({"data": null})))
        .await
        .unwrap();
    assert_eq!(dry.data, None);
    assert_eq!(api.get("a").await.unwrap(), patched);
    // A typed object is a patch as well: what it leaves out stays.
    let typed: ConfigMap = parse(json!({"data": {"x": "3"}}));
    let merged = api.patch("a", &plain(), &Patch::Merge(&typed)).await.unwrap();
    assert_eq!(merged.data.unwrap().len(), 2);
    let status = refusal(api.patch("b", &plain(), &Patch::Merge(&patch)).await);
    assert!(status.is_not_found());
}

async fn strategic_patches_merge_lists_by_key(cluster: Cluster) {
    let api: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    api.create(&PostParams::default(), &deployment("d"))
        .await
        .unwrap();
    let containers = |value: Value| json!({"spec": {"template": {"spec": {"containers": value}}}});
    let images = |d: &Deployment| -> Vec<(String, String)> {
        let pod = d.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        pod.containers
            .iter()
            .map(|c| (c.name.clone(), c.image.clone().unwrap()))
            .collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let patch = containers(json!([{"name": "log", "image": "log:2"}]));
    let patched = api.patch("d", &plain(), &Patch::Strategic(&patch)).await.unwrap();
    assert_eq!(images(&patched), [pair("web", "web:1"), pair("log", "log:2")]);
    assert_eq!(patched.meta().generation, Some(2));
    let patch = containers(json!([{"name": "log", "$patch": "delete"}]));
    let patched = api.patch("d", &plain(), &Patch::Strategic(&patch)).await.unwrap();
    assert_eq!(images(&patched), [pair("web", "web:1")]);
    // A merge patch knows no keys: the list is the list.
    let patch = containers(json!([{"name": "only", "image": "only:1"}]));
    let patched = api.patch("d", &plain(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(images(&patched), [pair("only", "only:1")]);

    let services: Api<Service> = Api::default_namespaced(cluster.client.clone());
    let ports = |list: Value| json!({"spec": {"ports": list}});
    let mut service = ports(json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]));
    service["metadata"] = json!({"name": "s"});
    services
        .create(&PostParams::default(), &parse(service))
        .await
        .unwrap();
    let patch = ports(json!([{"port": 81, "name": "c"}]));
    let patched = services
        .patch("s", &plain(), &Patch::Strategic(&patch))
        .await
        .unwrap();
    let names: Vec<_> = patched
        .spec
        .unwrap()
        .ports
        .unwrap()
        .into_iter()
        .map(|p| p.name.unwrap())
        .collect();
    assert_eq!(names, ["a", "c"]);
}

async fn json_patches_are_all_or_nothing(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let good = json_patch(json!([
        {"op": "test", "path": "/data/v", "value": "1"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/x~1y", "value": "z"},
        {"op": "copy", "from": "/data/v", "path": "/data/w"},
        {"op": "move", "from": "/data/v", "path": "/data/u"},
    ]));
    let patched = api.patch("a", &plain(), &good).await.unwrap();
    let keys: Vec<_> = patched.data.clone().unwrap().into_keys().collect();
    assert_eq!(keys, ["u", "w"]);
    assert_eq!(patched.annotations()["x/y"], "z");
    assert_eq!(patched.uid(), made.uid());
    for bad in [
        json!([{"op": "add", "path": "/data/n", "value": "1"}, {"op": "test", "path": "/data/u", "value": "2"}]),
        json!([{"op": "add", "path": "/data/n", "value": "1"}, {"op": "remove", "path": "/data/gone"}]),
        json!([{"op": "replace", "path": "/no/such/path", "value": 1}]),
    ] {
        let status = refusal(api.patch("a", &plain(), &json_patch(bad.clone())).await);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{bad}");
    }
    assert_eq!(api.get("a").await.unwrap(), patched);
    // What the test names may be absent, if absence is what it asks for.
    let lenient = json_patch(json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/data/n", "value": "1"},
    ]));
    api.patch("a", &plain(), &lenient).await.unwrap();
}

async fn patches_with_a_version_are_conditional(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let patch = |v: &str| {
        let version = made.resource_version();
        Patch::Merge(json!({"metadata": {"resourceVersion": version}, "data": {"v": v}}))
    };
    api.patch("a", &plain(), &patch("2")).await.unwrap();
    assert!(refusal(api.patch("a", &plain(), &patch("3")).await).is_conflict());
    assert_eq!(api.get("a").await.unwrap().data.unwrap()["v"], "2");
}

async fn unknown_fields_are_found_on_request(cluster: Cluster) {
    let api: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    api.create(&PostParams::default(), &deployment("d"))
        .await
        .unwrap();
    let patch = Patch::Merge(json!({"spec": {"replicaz": 3}}));
    for params in [plain(), plain().validation_ignore(), plain().validation_warn()] {
        let patched = api.patch("d", &params, &patch).await.unwrap();
        assert_eq!(patched.meta().generation, Some(1), "{params:?}");
    }
    let status = refusal(api.patch("d", &plain().validation_strict(), &patch).await);
    assert!(
        status.message.contains("unknown field \"spec.replicaz\""),
        "{status:?}"
    );
}

async fn concurrent_patches_are_all_kept(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    api.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let patches = || {
        let patches = (0..60).map(|n| {
            let api = api.clone();
            async move {
                let patch = Patch::Merge(json!({"data": {format!("k{n}"): n.to_string()}}));
                api.patch("a", &plain(), &patch).await
            }
        });
        futures::future::join_all(patches)
    };
    for result in patches().await {
        result.unwrap();
    }
    assert_eq!(api.get("a").await.unwrap().data.unwrap().len(), 61);

    // Nor does a delete give way to them.
    let clear = Patch::Merge(json!({"data": null}));
    api.patch("a", &plain(), &clear).await.unwrap();
    let delete = DeleteParams::default();
    let (patched, deleted) = futures::future::join(patches(), api.delete("a", &delete)).await;
    assert!(deleted.unwrap().is_right());
    for result in patched {
        assert!(result.is_ok() || refusal(result).is_not_found());
    }
    assert!(api.get_opt("a").await.unwrap().is_none());
}

/// On disk every write waits for its turn, and many wait with the same version in mind.
#[tokio::test]
async fn concurrent_patches_on_disk_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    bounded(async {
        let cluster = Cluster::with(Way::InProcess, |options| options.path = Some(path)).await;
        concurrent_patches_are_all_kept(cluster).await;
    })
    .await;
}
