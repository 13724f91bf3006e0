//! Lists: selectors, pages, and lists of the past.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, GetParams, ListParams, PostParams, VersionMatch};
use kube::core::{Expression, ObjectList, Selector};
use serde_json::json;

use crate::harness::{Cluster, config_map, labelled, parse, pod, refusal};

both!(
    labels_and_fields_select,
    pages_are_of_one_moment,
    lists_of_the_past,
    page_tokens_that_make_no_sense,
);

fn names<K: ResourceExt + Clone>(list: &ObjectList<K>) -> Vec<String> {
    list.iter().map(ResourceExt::name_any).collect()
}

async fn labels_and_fields_select(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "kube-public");
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "z")] {
        api.create(&PostParams::default(), &labelled(name, app))
            .await
            .unwrap();
    }
    api.create(&PostParams::default(), &config_map("d", "1"))
        .await
        .unwrap();
    let all = ListParams::default();
    let among: Selector = Expression::In("app".into(), ["x".into(), "z".into()].into()).into();
    let table: [(ListParams, &[&str]); 8] = [
        (all.clone().labels("app=x"), &["a"]),
        (all.clone().labels("app!=x,app"), &["b", "c"]),
        (all.clone().labels("app in (x, y)"), &["a", "b"]),
        (all.clone().labels_from(&among), &["a", "c"]),
        (
            all.clone()
                .labels_from(&Expression::DoesNotExist("app".into()).into()),
            &["d"],
        ),
        (all.clone().fields("metadata.name=b"), &["b"]),
        (
            all.clone()
                .labels("app")
                .fields("metadata.name!=b,metadata.namespace=kube-public"),
            &["a", "c"],
        ),
        (
            all.clone().labels("app=x").fields("metadata.name=b").limit(1),
            &[],
        ),
    ];
    for (params, expected) in table {
        assert_eq!(names(&api.list(&params).await.unwrap()), expected, "{params:?}");
    }

    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let mut bound = pod("p");
    bound.spec.as_mut().unwrap().node_name = Some("n1".into());
    pods.create(&PostParams::default(), &bound).await.unwrap();
    pods.create(&PostParams::default(), &pod("q")).await.unwrap();
    for (fields, expected) in [
        ("spec.nodeName=n1", vec!["p"]),
        ("spec.nodeName=", vec!["q"]),
        ("status.phase=Pending", vec!["p", "q"]),
        ("status.phase!=Pending", vec![]),
    ] {
        let list = pods.list(&all.clone().fields(fields)).await.unwrap();
        assert_eq!(names(&list), expected, "{fields}");
    }
    let status = refusal(pods.list(&all.clone().fields("spec.colour=red")).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    let opaque = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let made = secrets
        .create(&PostParams::default(), &parse(opaque))
        .await
        .unwrap();
    assert_eq!(made.data.unwrap()["k"].0, b"v");
    let list = secrets.list(&all.fields("type=Opaque")).await.unwrap();
    assert_eq!(names(&list), ["s"]);
}

async fn pages_are_of_one_moment(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        api.create(&PostParams::default(), &labelled(name, "x"))
            .await
            .unwrap();
    }
    // With a selector nobody knows how many remain, as on the real server.
    let mut params = ListParams::default().labels("app=x").limit(3);
    let mut seen = Vec::new();
    let mut versions = Vec::new();
    loop {
        let page = api.list(&params).await.unwrap();
        assert!(page.items.len() <= 3);
        assert_eq!(page.metadata.remaining_item_count, None);
        seen.extend(names(&page));
        versions.push(page.metadata.resource_version.clone().unwrap());
        // Changes after the first page are none of its followers' business.
        api.create(
            &PostParams::default(),
            &labelled(&format!("z{}", seen.len()), "x"),
        )
        .await
        .unwrap();
        let _ = api.delete("g", &Default::default()).await;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e", "f", "g"]);
    versions.dedup();
    assert_eq!(versions.len(), 1);

    let page = api.list(&ListParams::default().limit(2)).await.unwrap();
    let total = api.list(&ListParams::default()).await.unwrap().items.len();
    let rest = page.metadata.remaining_item_count.unwrap();
    assert_eq!(usize::try_from(rest).unwrap() + 2, total);
}

async fn lists_of_the_past(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &labelled("a", "x"))
        .await
        .unwrap();
    let then = made.resource_version().unwrap();
    api.create(&PostParams::default(), &labelled("b", "x"))
        .await
        .unwrap();
    let apps = ListParams::default().labels("app=x");
    for (params, expected) in [
        (apps.clone().at(&then).matching(VersionMatch::Exact), vec!["a"]),
        (
            apps.clone().at(&then).matching(VersionMatch::NotOlderThan),
            vec!["a", "b"],
        ),
        (apps.clone().match_any(), vec!["a", "b"]),
        (apps.clone(), vec!["a", "b"]),
    ] {
        assert_eq!(names(&api.list(&params).await.unwrap()), expected, "{params:?}");
    }
    assert_eq!(api.get_with("a", &GetParams::any()).await.unwrap(), made);
    assert_eq!(api.get_with("a", &GetParams::at(&then)).await.unwrap(), made);
}

async fn page_tokens_that_make_no_sense(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for token in ["x", "e30", "%%%"] {
        let params = ListParams::default().limit(1).continue_token(token);
        let status = refusal(api.list(&params).await);
        assert_eq!(
            (status.code, status.reason.as_str()),
            (400, "BadRequest"),
            "{token}"
        );
    }
}
