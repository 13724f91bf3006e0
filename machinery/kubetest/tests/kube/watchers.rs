//! Watchers, reflectors and single watched objects, by every way to start them.

use std::pin::{Pin, pin};

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Config, Event, watch_object};
use kube::runtime::{WatchStreamExt, reflector as reflect};
use serde_json::json;

use crate::definitions::{Garden, define, garden};
use crate::harness::{Cluster, config_map, labelled};

both!(
    watchers_start_in_every_way,
    watchers_of_metadata,
    watchers_of_custom_kinds,
    what_leaves_the_selection_is_deleted,
    raw_watches_tell_everything,
    reflectors_hold_what_there_is,
    one_object_is_watched,
    many_watchers_see_the_same,
);

fn post() -> PostParams {
    PostParams::default()
}

/// The next event in words: `Apply(a)`.
pub(crate) async fn next<K, S>(stream: &mut Pin<&mut S>) -> String
where
    K: ResourceExt,
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    stream.next().await.unwrap().unwrap().to_string()
}

/// The events up to the end of the initial ones, in order of their names.
pub(crate) async fn initial<K, S>(stream: &mut Pin<&mut S>) -> String
where
    K: ResourceExt,
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    let mut names = Vec::new();
    assert_eq!(next(stream).await, "Init");
    loop {
        match stream.next().await.unwrap().unwrap() {
            Event::InitApply(object) => names.push(object.name_any()),
            Event::InitDone => break,
            other => panic!("{other}"),
        }
    }
    names.sort();
    names.join(" ")
}

/// All the ways to start a watcher of what is labelled `app`.
fn ways() -> [(&'static str, Config); 6] {
    let config = Config::default().labels("app");
    [
        ("list, then watch", config.clone()),
        ("list of any version", config.clone().any_semantic()),
        ("in pages", config.clone().page_size(2)),
        (
            "in pages of any version",
            config.clone().any_semantic().page_size(2),
        ),
        ("without bookmarks", config.clone().disable_bookmarks()),
        ("streamed", config.streaming_lists()),
    ]
}

async fn watchers_start_in_every_way(cluster: Cluster) {
    for (number, (way, config)) in ways().into_iter().enumerate() {
        let namespace = format!("n{number}");
        make_namespace(&cluster, &namespace).await;
        let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &namespace);
        for name in ["a", "b", "c"] {
            api.create(&post(), &labelled(name, "x")).await.unwrap();
        }
        api.create(&post(), &config_map("unlabelled", "1")).await.unwrap();
        let mut stream = pin!(watcher::watcher(api.clone(), config));
        assert_eq!(initial(&mut stream).await, "a b c", "{way}");
        // The watch may not have begun yet: nothing between list and watch is lost.
        api.create(&post(), &labelled("d", "x")).await.unwrap();
        api.create(&post(), &config_map("other", "1")).await.unwrap();
        assert_eq!(next(&mut stream).await, "Apply(d)", "{way}");
        let patch = Patch::Merge(json!({"data": {"v": "2"}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        api.delete("b", &DeleteParams::default()).await.unwrap();
        assert_eq!(next(&mut stream).await, "Apply(a)", "{way}");
        assert_eq!(next(&mut stream).await, "Delete(b)", "{way}");
    }
}

async fn make_namespace(cluster: &Cluster, name: &str) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client.clone());
    let wanted = crate::harness::parse(json!({"metadata": {"name": name}}));
    namespaces.create(&post(), &wanted).await.unwrap();
}

async fn watchers_of_metadata(cluster: Cluster) {
    let full: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let partial: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(cluster.client.clone());
    full.create(&post(), &labelled("a", "x")).await.unwrap();
    for (number, (way, config)) in ways().into_iter().enumerate() {
        #[expect(deprecated, reason = "controllers watch what they own by it")]
        let old = watcher::metadata_watcher(full.clone(), config.clone());
        let (mut old, mut new) = (pin!(old), pin!(watcher::watcher(partial.clone(), config)));
        assert_eq!(initial(&mut old).await, "a", "{way}");
        assert_eq!(initial(&mut new).await, "a", "{way}");
        let patch = Patch::Merge(json!({"data": {"v": number.to_string()}}));
        let patched = full.patch("a", &PatchParams::default(), &patch).await.unwrap();
        for event in [old.next().await, new.next().await] {
            let Event::Apply(seen) = event.unwrap().unwrap() else {
                panic!("{way}");
            };
            assert_eq!(seen.types.as_ref().unwrap().kind, "PartialObjectMetadata");
            assert_eq!(seen.metadata, patched.metadata, "{way}");
        }
    }
}

async fn watchers_of_custom_kinds(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    for config in [Config::default(), Config::default().streaming_lists()] {
        let mut stream = pin!(watcher::watcher(api.clone(), config));
        assert_eq!(initial(&mut stream).await, "");
        let made = api.create(&post(), &garden("g", &["rose"])).await.unwrap();
        let Event::Apply(seen) = stream.next().await.unwrap().unwrap() else {
            panic!("it was made");
        };
        assert_eq!(seen, made);
        api.delete("g", &DeleteParams::default()).await.unwrap();
        assert_eq!(next(&mut stream).await, "Delete(g)");
    }
}

async fn what_leaves_the_selection_is_deleted(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    api.create(&post(), &labelled("a", "x")).await.unwrap();
    let mut stream = pin!(watcher::watcher(api.clone(), Config::default().labels("app=x")));
    assert_eq!(initial(&mut stream).await, "a");
    for (app, expected) in [("y", "Delete(a)"), ("x", "Apply(a)")] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": app}}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(next(&mut stream).await, expected);
    }
}

async fn raw_watches_tell_everything(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &labelled("a", "x")).await.unwrap();
    let version = made.resource_version().unwrap();
    let patch = Patch::Merge(json!({"data": {"v": "2"}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let params = WatchParams::default().labels("app=x");
    let mut stream = pin!(api.watch(&params, &version).await.unwrap());
    let event = stream.try_next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Modified(seen) if seen == patched));
    let WatchEvent::Deleted(last) = stream.try_next().await.unwrap().unwrap() else {
        panic!("it was deleted");
    };
    assert_eq!(last.data, patched.data);
    let number = |v: Option<String>| v.unwrap().parse::<u64>().unwrap();
    assert!(number(last.resource_version()) > number(patched.resource_version()));

    // The initial events end with a bookmark that says so.
    api.create(&post(), &labelled("b", "x")).await.unwrap();
    let params = WatchParams::streaming_lists().labels("app=x");
    let mut stream = pin!(api.watch(&params, "0").await.unwrap());
    let event = stream.try_next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(seen) if seen.name_any() == "b"));
    let WatchEvent::Bookmark(mark) = stream.try_next().await.unwrap().unwrap() else {
        panic!("the initial events are over");
    };
    assert_eq!(mark.metadata.annotations["k8s.io/initial-events-end"], "true");
    assert_eq!(
        (mark.types.kind.as_str(), mark.types.api_version.as_str()),
        ("ConfigMap", "v1")
    );
    // A watch that the server ends by its timeout says last where it was.
    let params = WatchParams::default().labels("app=x").timeout(1);
    let events: Vec<_> = api
        .watch(&params, &mark.metadata.resource_version)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert!(
        matches!(events.as_slice(), [WatchEvent::Bookmark(_)]),
        "{events:?}"
    );
}

async fn reflectors_hold_what_there_is(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for name in ["a", "b"] {
        api.create(&post(), &labelled(name, "x")).await.unwrap();
    }
    for (way, config) in ways() {
        let (store, writer) = reflector::store();
        let stream = reflect(writer, watcher::watcher(api.clone(), config));
        let mut stream = pin!(stream.applied_objects().default_backoff());
        let names = || {
            let mut names: Vec<_> = store.state().iter().map(|o| o.name_any()).collect();
            names.sort();
            names.join(" ")
        };
        let mut seen = [
            stream.try_next().await.unwrap().unwrap().name_any(),
            stream.try_next().await.unwrap().unwrap().name_any(),
        ];
        seen.sort();
        assert_eq!(seen, ["a", "b"], "{way}");
        api.create(&post(), &labelled("c", "x")).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap().name_any(), "c");
        store.wait_until_ready().await.unwrap();
        assert_eq!(names(), "a b c", "{way}");
        api.delete("c", &DeleteParams::default()).await.unwrap();
        let patch = Patch::Merge(json!({"data": {"way": way}}));
        let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        // A deletion is no applied object: the next one is the patch, and by then "c" is gone.
        assert_eq!(stream.try_next().await.unwrap().unwrap(), patched);
        assert_eq!(names(), "a b", "{way}");
        let held = store.get(&ObjectRef::new("a").within("default")).unwrap();
        assert_eq!(*held, patched, "{way}");
    }
}

async fn one_object_is_watched(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let mut stream = pin!(watch_object(api.clone(), "a"));
    assert!(stream.try_next().await.unwrap().unwrap().is_none());
    api.create(&post(), &config_map("b", "1")).await.unwrap();
    for _ in 0..2 {
        let made = api.create(&post(), &config_map("a", "1")).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), Some(made));
        api.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(stream.try_next().await.unwrap().unwrap().is_none());
    }
}

async fn many_watchers_see_the_same(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let watchers = (0..20).map(|number| {
        let config = ways()[number % 6].1.clone();
        let objects = watcher::watcher(api.clone(), config).applied_objects();
        async move {
            let mut last = pin!(objects.try_skip_while(|o| {
                let done = o.data.as_ref().is_some_and(|d| d["v"] == "49");
                std::future::ready(Ok(!done))
            }));
            last.try_next().await.unwrap().unwrap()
        }
    });
    let writer = async {
        api.create(&post(), &labelled("a", "x")).await.unwrap();
        let mut last = None;
        for v in 0..50 {
            let patch = Patch::Merge(json!({"data": {"v": v.to_string()}}));
            last = Some(api.patch("a", &PatchParams::default(), &patch).await.unwrap());
        }
        last.unwrap()
    };
    let (last, seen) = futures::future::join(writer, futures::future::join_all(watchers)).await;
    assert!(seen.into_iter().all(|object| object == last));
}
