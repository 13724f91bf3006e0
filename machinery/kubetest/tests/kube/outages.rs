//! What watchers do when a watch ends, lags, or falls out of the server's memory.

use std::pin::{Pin, pin};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::reflector;
use kube::runtime::watcher::{self, Config, Event};
use machinery_auth::UserInfo;
use serde_json::json;

use crate::harness::{Cluster, Way, bounded, labelled};
use crate::watchers::{initial, next};

both!(a_watch_that_ends_is_resumed, a_reader_that_lags_converges);

fn post() -> PostParams {
    PostParams::default()
}

async fn a_watch_that_ends_is_resumed(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for (number, config) in [
        Config::default(),
        Config::default().disable_bookmarks(),
        Config::default().streaming_lists(),
    ]
    .into_iter()
    .enumerate()
    {
        let app = format!("app=x{number}");
        let before = cluster.requests.with("watch=true").len();
        let config = config.labels(&app).timeout(1);
        let mut stream = pin!(watcher::watcher(api.clone(), config));
        assert_eq!(initial(&mut stream).await, "");
        // Each object is made after one more watch has begun, so after the former one has ended.
        let writer = async {
            for watch in 1..=3 {
                cluster.requests.reach(before + watch, "watch=true").await;
                let name = format!("a{number}-{watch}");
                let object = labelled(&name, &app["app=".len()..]);
                api.create(&post(), &object).await.unwrap();
            }
        };
        let reader = async {
            for watch in 1..=3 {
                assert_eq!(next(&mut stream).await, format!("Apply(a{number}-{watch})"));
            }
        };
        futures::future::join(writer, reader).await;
    }
    let lists = cluster.requests.with("limit=500").len();
    assert_eq!(lists, 2, "listed once each, by the two that list");
}

/// How many changes a forgetful server remembers.
const MEMORY: usize = 100;

/// Makes a forgetful server forget.
async fn overflow(cluster: &Cluster) {
    let local = cluster.server.local(UserInfo::apiserver());
    let object = |v: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "busy", "namespace": "kube-public"},
            "data": {"v": v.to_string()}})
    };
    local.create(object(0)).await.unwrap();
    for v in 1..=MEMORY {
        local.update(object(v)).await.unwrap();
    }
    local
        .delete("v1", "configmaps", "kube-public", "busy", None)
        .await
        .unwrap();
}

/// A watcher that is told that its version is too old, and then lists again.
async fn starts_over<S>(stream: &mut Pin<&mut S>, expected: &str)
where
    S: Stream<Item = watcher::Result<Event<ConfigMap>>>,
{
    loop {
        match stream.next().await.unwrap() {
            Err(watcher::Error::WatchError(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
                break;
            }
            // A cut connection may be told of first.
            Err(watcher::Error::WatchFailed(_) | watcher::Error::WatchStartFailed(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(initial(stream).await, expected);
}

async fn too_old_a_version_means_to_start_over(way: Way) {
    let cluster = Cluster::with(way, |options| options.history_events = MEMORY).await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for config in [
        Config::default(),
        Config::default().any_semantic(),
        Config::default().page_size(1),
    ] {
        for name in ["a", "b"] {
            api.create(&post(), &labelled(name, "x")).await.unwrap();
        }
        let (store, writer) = reflector::store();
        let watcher = watcher::watcher(api.clone(), config.labels("app"));
        let mut stream = pin!(kube::runtime::reflector(writer, watcher));
        assert_eq!(initial(&mut stream).await, "a b");
        // Nobody looks, so by the time that the watch begins its version is forgotten.
        api.delete("a", &DeleteParams::default()).await.unwrap();
        api.create(&post(), &labelled("c", "x")).await.unwrap();
        overflow(&cluster).await;
        starts_over(&mut stream, "b c").await;
        let mut names: Vec<_> = store.state().iter().map(|o| o.name_any()).collect();
        names.sort();
        assert_eq!(names, ["b", "c"], "what was deleted unseen is gone");
        api.create(&post(), &labelled("d", "x")).await.unwrap();
        assert_eq!(next(&mut stream).await, "Apply(d)");
        for name in ["b", "c", "d"] {
            api.delete(name, &DeleteParams::default()).await.unwrap();
        }
    }
}

/// So many changes are more than the server keeps for one reader.
const FLOOD: usize = 5000;

async fn a_reader_that_lags_converges(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let local = cluster.server.local(UserInfo::apiserver());
    let object = |v: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default",
            "labels": {"app": "x"}}, "data": {"v": v.to_string(), "padding": "x".repeat(2000)}})
    };
    local.create(object(0)).await.unwrap();
    let mut stream = pin!(watcher::watcher(api.clone(), Config::default().labels("app")));
    assert_eq!(initial(&mut stream).await, "a");
    local.update(object(1)).await.unwrap();
    assert_eq!(next(&mut stream).await, "Apply(a)");
    let before = cluster.requests.with("watch=true").len();
    for v in 2..=FLOOD {
        local.update(object(v)).await.unwrap();
    }
    let mut last = 1;
    while last < FLOOD {
        let Event::Apply(seen) = stream.next().await.unwrap().unwrap() else {
            panic!("nothing was lost, so nothing is listed again");
        };
        let v = seen.data.unwrap()["v"].parse().unwrap();
        assert_eq!(v, last + 1, "every change, once, in order");
        last = v;
    }
    // Over TLS the connection holds some of it, and who knows how much.
    if cluster.way == Way::InProcess {
        assert!(
            cluster.requests.with("watch=true").len() > before,
            "the watch was ended and resumed"
        );
    }
}

/// Cut connections, which there are over TLS only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_resumed() {
    bounded(async {
        let mut cluster = Cluster::start(Way::OverTls).await;
        let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
        let mut stream = pin!(watcher::watcher(api.clone(), Config::default().labels("app")));
        assert_eq!(initial(&mut stream).await, "");
        api.create(&post(), &labelled("a", "x")).await.unwrap();
        assert_eq!(next(&mut stream).await, "Apply(a)");
        cluster.reconnect().await;
        // The pool may still hold a connection that was cut: a write may fail once, a watcher goes on by itself.
        while let Err(error) = api.create(&post(), &labelled("b", "x")).await {
            assert!(!matches!(error, kube::Error::Api(_)), "{error}");
        }
        let event = loop {
            if let Ok(event) = stream.next().await.unwrap() {
                break event;
            }
        };
        assert_eq!(event.to_string(), "Apply(b)", "resumed, not started over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_list_starts_over_too() {
    bounded(async {
        let mut cluster = Cluster::with(Way::OverTls, |options| options.history_events = MEMORY).await;
        let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
        api.create(&post(), &labelled("a", "x")).await.unwrap();
        let config = Config::default().labels("app").streaming_lists();
        let mut stream = pin!(watcher::watcher(api.clone(), config));
        assert_eq!(initial(&mut stream).await, "a");
        cluster.reconnect().await;
        overflow(&cluster).await;
        starts_over(&mut stream, "a").await;
    })
    .await;
}

mod forgetful {
    use crate::harness::{Way, bounded};

    #[tokio::test]
    async fn in_process() {
        bounded(super::too_old_a_version_means_to_start_over(Way::InProcess)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn over_tls() {
        bounded(super::too_old_a_version_means_to_start_over(Way::OverTls)).await;
    }
}
