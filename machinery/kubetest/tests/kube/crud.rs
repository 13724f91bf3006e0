//! The plain verbs on ConfigMaps, Pods, Deployments and namespaces, and the entry API on top of them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::entry::{CommitError, Entry};
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::harness::{Cluster, config_map, deployment, labelled, parse, pod, refusal};

both!(
    a_config_map_lives_and_dies,
    a_replace_needs_the_present_version,
    a_pod_is_defaulted_and_answers_its_deletion,
    a_deployment_counts_its_generations,
    names_are_generated,
    dry_runs_leave_no_trace,
    deletes_heed_preconditions,
    collections_are_deleted_by_selector,
    a_namespace_takes_its_objects_with_it,
    entries_create_and_modify,
    entries_tell_of_lost_races,
);

fn post() -> PostParams {
    PostParams::default()
}

async fn a_config_map_lives_and_dies(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    assert!(api.get_opt("a").await.unwrap().is_none());
    let made = api.create(&post(), &config_map("a", "1")).await.unwrap();
    assert_eq!(made.namespace().as_deref(), Some("default"));
    assert!(made.uid().is_some() && made.resource_version().is_some());
    assert!(made.creation_timestamp().is_some());
    assert_eq!(api.get("a").await.unwrap(), made);
    assert_eq!(api.get_opt("a").await.unwrap(), Some(made.clone()));

    let mut wanted = made.clone();
    wanted.data.get_or_insert_default().insert("w".into(), "2".into());
    let changed = api.replace("a", &post(), &wanted).await.unwrap();
    assert_eq!(changed.data, wanted.data);
    assert_eq!(changed.uid(), made.uid());
    assert_ne!(changed.resource_version(), made.resource_version());
    let again = api.replace("a", &post(), &changed).await.unwrap();
    assert_eq!(again, changed, "what changes nothing is no change");

    let answer = api.delete("a", &DeleteParams::default()).await.unwrap();
    let status = answer.right().expect("a ConfigMap's deletion answers a status");
    assert!(status.is_success());
    let details = status.details.unwrap();
    assert_eq!(
        (details.name.as_str(), details.kind.as_str()),
        ("a", "configmaps")
    );
    assert_eq!(Some(details.uid), made.uid());
    assert!(api.get_opt("a").await.unwrap().is_none());
}

async fn a_replace_needs_the_present_version(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &config_map("a", "1")).await.unwrap();
    let mut first = made.clone();
    first.data.get_or_insert_default().insert("v".into(), "2".into());
    api.replace("a", &post(), &first).await.unwrap();
    let mut late = made.clone();
    late.data.get_or_insert_default().insert("v".into(), "3".into());
    let status = refusal(api.replace("a", &post(), &late).await);
    assert!(status.is_conflict());
    assert_eq!(api.get("a").await.unwrap().data, first.data);
    // Without a version the last one wins.
    late.metadata.resource_version = None;
    let replaced = api.replace("a", &post(), &late).await.unwrap();
    assert_eq!(replaced.data, late.data);
}

async fn a_pod_is_defaulted_and_answers_its_deletion(cluster: Cluster) {
    let api: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &pod("p")).await.unwrap();
    let spec = made.spec.as_ref().unwrap();
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
    assert_eq!(made.status.as_ref().unwrap().phase.as_deref(), Some("Pending"));
    let answer = api.delete("p", &DeleteParams::default()).await.unwrap();
    let going = answer.left().expect("a Pod's deletion answers the Pod");
    assert_eq!(going.uid(), made.uid());
    // On no node, so there is nobody to wait for.
    let uid = made.uid().unwrap();
    await_condition(api.clone(), "p", conditions::is_deleted(&uid))
        .await
        .unwrap();

    // On a node, it waits for the kubelet to say that it has stopped.
    let mut bound = pod("q");
    bound.spec.as_mut().unwrap().node_name = Some("n1".into());
    let made = api.create(&post(), &bound).await.unwrap();
    let going = api.delete("q", &DeleteParams::default()).await.unwrap();
    let going = going.left().unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    assert!(api.get_opt("q").await.unwrap().is_some());
    let now = DeleteParams::default().grace_period(0);
    api.delete("q", &now).await.unwrap();
    assert!(api.get_opt("q").await.unwrap().is_none(), "{made:?}");
}

async fn a_deployment_counts_its_generations(cluster: Cluster) {
    let api: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &deployment("d")).await.unwrap();
    assert_eq!(made.meta().generation, Some(1));
    let spec = made.spec.as_ref().unwrap();
    assert_eq!(spec.revision_history_limit, Some(10));
    assert_eq!(
        spec.strategy.as_ref().unwrap().type_.as_deref(),
        Some("RollingUpdate")
    );
    let mut wanted = made.clone();
    wanted.labels_mut().insert("note".into(), "x".into());
    let labelled = api.replace("d", &post(), &wanted).await.unwrap();
    assert_eq!(labelled.meta().generation, Some(1), "labels are not the spec");
    // Of all kinds, a Deployment's annotations count.
    let mut wanted = labelled.clone();
    wanted.annotations_mut().insert("note".into(), "x".into());
    let annotated = api.replace("d", &post(), &wanted).await.unwrap();
    assert_eq!(annotated.meta().generation, Some(2));
    let mut wanted = annotated.clone();
    wanted.spec.as_mut().unwrap().replicas = Some(5);
    let scaled = api.replace("d", &post(), &wanted).await.unwrap();
    assert_eq!(scaled.meta().generation, Some(3));
}

async fn names_are_generated(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let wanted: ConfigMap = parse(json!({"metadata": {"generateName": "some-"}}));
    let (one, two) = (
        api.create(&post(), &wanted).await.unwrap().name_unchecked(),
        api.create(&post(), &wanted).await.unwrap().name_unchecked(),
    );
    assert!(one.starts_with("some-") && one.len() > "some-".len(), "{one}");
    assert_ne!(one, two);
}

async fn dry_runs_leave_no_trace(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let dry = PostParams {
        dry_run: true,
        ..post()
    };
    let shown = api.create(&dry, &config_map("a", "1")).await.unwrap();
    assert!(shown.uid().is_some());
    assert!(api.get_opt("a").await.unwrap().is_none());
    let made = api.create(&post(), &config_map("a", "1")).await.unwrap();
    let mut wanted = made.clone();
    wanted.data = None;
    assert_eq!(api.replace("a", &dry, &wanted).await.unwrap().data, None);
    api.delete("a", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(api.get("a").await.unwrap(), made);
}

async fn deletes_heed_preconditions(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &config_map("a", "1")).await.unwrap();
    let only = |uid: Option<String>, resource_version: Option<String>| {
        DeleteParams::default().preconditions(Preconditions {
            uid,
            resource_version,
        })
    };
    for wrong in [
        only(Some("00000000-0000-0000-0000-000000000000".into()), None),
        only(None, Some("1".into())),
    ] {
        assert!(refusal(api.delete("a", &wrong).await).is_conflict(), "{wrong:?}");
    }
    let right = only(made.uid(), made.resource_version());
    assert!(api.delete("a", &right).await.unwrap().is_right());
}

async fn collections_are_deleted_by_selector(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        api.create(&post(), &labelled(name, app)).await.unwrap();
    }
    let doomed = ListParams::default().labels("app=x");
    let answer = api
        .delete_collection(&DeleteParams::default(), &doomed)
        .await
        .unwrap();
    let mut names: Vec<_> = answer.left().unwrap().iter().map(ResourceExt::name_any).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert!(api.get_opt("c").await.unwrap().is_some());
    let dry = DeleteParams::default().dry_run();
    api.delete_collection(&dry, &ListParams::default()).await.unwrap();
    assert!(api.get_opt("c").await.unwrap().is_some());
}

async fn a_namespace_takes_its_objects_with_it(cluster: Cluster) {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let made = namespaces
        .create(&post(), &parse(json!({"metadata": {"name": "brief"}})))
        .await
        .unwrap();
    let inside: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "brief");
    inside.create(&post(), &config_map("a", "1")).await.unwrap();
    let everywhere: Api<ConfigMap> = Api::all(cluster.client.clone());
    let named = ListParams::default().fields("metadata.name=a");
    assert_eq!(everywhere.list(&named).await.unwrap().items.len(), 1);
    let answer = namespaces
        .delete("brief", &DeleteParams::default())
        .await
        .unwrap();
    let phase = answer.left().unwrap().status.unwrap().phase;
    assert_eq!(phase.as_deref(), Some("Terminating"));
    let uid = made.uid().unwrap();
    await_condition(namespaces, "brief", conditions::is_deleted(&uid))
        .await
        .unwrap();
    assert!(everywhere.list(&named).await.unwrap().items.is_empty());
}

async fn entries_create_and_modify(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for round in ["first", "second", "third"] {
        let mut entry = api
            .entry("a")
            .await
            .unwrap()
            .or_insert(|| config_map("a", "new"))
            .and_modify(|map| {
                map.data
                    .get_or_insert_default()
                    .insert(round.into(), "seen".into());
            });
        entry.commit(&post()).await.unwrap();
        // A second commit of the same entry has nothing to do.
        let version = entry.get().resource_version();
        entry.commit(&post()).await.unwrap();
        assert_eq!(entry.get().resource_version(), version);
    }
    let keys: Vec<_> = api.get("a").await.unwrap().data.unwrap().into_keys().collect();
    assert_eq!(keys, ["first", "second", "third", "v"]);
}

async fn entries_tell_of_lost_races(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let save = |error: CommitError| match error {
        CommitError::Save(kube::Error::Api(status)) => status,
        other => panic!("{other:?}"),
    };
    let entry = api.entry("a").await.unwrap();
    assert!(matches!(entry, Entry::Vacant(_)));
    api.create(&post(), &config_map("a", "theirs")).await.unwrap();
    let mut late = entry.or_insert(|| config_map("a", "ours"));
    assert!(save(late.commit(&post()).await.unwrap_err()).is_already_exists());

    let change = |map: &mut ConfigMap| {
        map.data.get_or_insert_default().insert("v".into(), "ours".into());
    };
    let Entry::Occupied(entry) = api.entry("a").await.unwrap() else {
        panic!("it is there");
    };
    let mut entry = entry.and_modify(change);
    api.replace("a", &post(), &config_map("a", "again theirs"))
        .await
        .unwrap();
    assert!(save(entry.commit(&post()).await.unwrap_err()).is_conflict());
}
