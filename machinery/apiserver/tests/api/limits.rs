//! Bounds: what is too much is refused, and says so.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use machinery_apiserver::{Caller, Options};
use machinery_auth::UserInfo;
use serde_json::json;

use crate::harness::{CONFIG_MAPS, JSON, JSON_PATCH, Server, pki};

#[tokio::test]
async fn a_body_has_three_mebibytes() {
    let server = Server::start().await;
    let big = "x".repeat(3 * 1024 * 1024 + 1);
    let answer = server.send("POST", CONFIG_MAPS, JSON, big).await;
    assert_eq!(answer.refusal().0, 413);
}

/// A body that never comes.
struct Endless;

impl http_body::Body for Endless {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_flood_of_one_user_starves_no_other() {
    let mut options = Options::new(pki());
    options.max_in_flight = 4;
    let server = Server::with(options).await;
    let flood = Arc::new(UserInfo::new("flood", ["system:masters"]));
    let mut stuck = tokio::task::JoinSet::new();
    for _ in 0..1_100 {
        let request = http::Request::post(CONFIG_MAPS)
            .extension(Caller(flood.clone()))
            .body(Endless)
            .unwrap();
        let api = server.api.clone();
        stuck.spawn(async move { api.handle(request).await });
    }
    // Three hold places, a thousand wait, and the rest are told to come back.
    for _ in 0..97 {
        let answer = stuck.join_next().await.unwrap().unwrap();
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()["retry-after"], "1");
    }
    for number in 0..10 {
        server.config_map(&format!("other-{number}"), json!({})).await;
    }
    // Nor does the flood hide whether the server is well, even from itself.
    let request = http::Request::get("/readyz")
        .extension(Caller(flood.clone()))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    assert_eq!(server.api.handle(request).await.status(), 200);
    // What goes away gives its place back.
    stuck.shutdown().await;
    let request = http::Request::get(CONFIG_MAPS)
        .extension(Caller(flood))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    assert_eq!(server.api.handle(request).await.status(), 200);
}

#[tokio::test]
async fn a_body_that_does_not_come_gives_its_place_back() {
    let mut options = Options::new(pki());
    (options.max_in_flight, options.body_within) = (2, Duration::from_millis(50));
    let server = Server::with(options).await;
    let mut stuck = tokio::task::JoinSet::new();
    // Nobody else would ever get a place.
    for user in ["one", "two"] {
        let user = Arc::new(UserInfo::new(user, ["system:masters"]));
        let request = http::Request::post(CONFIG_MAPS)
            .extension(Caller(user))
            .body(Endless)
            .unwrap();
        let api = server.api.clone();
        stuck.spawn(async move { api.handle(request).await });
    }
    while let Some(answer) = stuck.join_next().await {
        assert_eq!(answer.unwrap().status(), 408);
    }
    server.config_map("c", json!({})).await;
}

#[tokio::test]
async fn watches_that_begin_take_their_turn() {
    let mut options = Options::new(pki());
    options.max_in_flight = 2;
    let server = Server::with(options).await;
    let user = Arc::new(UserInfo::new("watcher", ["system:masters"]));
    let watch = |user: &Arc<UserInfo>| {
        let streaming =
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let request = http::Request::get(format!("{CONFIG_MAPS}?{streaming}"))
            .extension(Caller(user.clone()))
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        let api = server.api.clone();
        async move { api.handle(request).await }
    };
    // One that holds the only place of this user.
    let request = http::Request::post(CONFIG_MAPS)
        .extension(Caller(user.clone()))
        .body(Endless)
        .unwrap();
    let api = server.api.clone();
    let stuck = tokio::spawn(async move { api.handle(request).await });
    tokio::task::yield_now().await;
    let waiting = tokio::time::timeout(Duration::from_millis(50), watch(&user)).await;
    assert!(waiting.is_err(), "a watch began without a place");
    stuck.abort();
    let _ = stuck.await;
    // Once begun, watches hold none: more of them than there are places live on.
    let mut open = Vec::new();
    for _ in 0..10 {
        let answer = watch(&user).await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    server.config_map("c", json!({})).await;
}

#[tokio::test]
async fn a_patch_has_ten_thousand_operations() {
    let server = Server::start().await;
    server.config_map("a", json!({"k": "v"})).await;
    let operations: Vec<_> = (0..10_001)
        .map(|_| json!({"op": "test", "path": "/data/k", "value": "v"}))
        .collect();
    let answer = server
        .patch(&format!("{CONFIG_MAPS}/a"), JSON_PATCH, json!(operations))
        .await;
    assert_eq!(answer.refusal().0, 413);
}

#[tokio::test]
async fn a_slow_watcher_is_let_go_and_holds_up_nobody() {
    let server = Server::start().await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    server.config_map("a", json!({})).await;
    for number in 0..6_000 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": number.to_string()}});
        server.put(&format!("{CONFIG_MAPS}/a"), body).await.expect(200);
    }
    let mut seen = 0;
    while watch.next().await.is_some() {
        seen += 1;
    }
    assert!(seen < 6_001, "it ended before the last event");
}

/// Lists that take long to make, and a change that does not: it need not wait for any of them to end.
#[tokio::test]
async fn long_lists_of_one_user_hold_up_no_other() {
    let server = Server::start().await;
    for number in 0..2_000 {
        server
            .config_map(&format!("c{number}"), json!({"k": "v".repeat(500)}))
            .await;
    }
    let reader = Arc::new(UserInfo::new("reader", ["system:masters"]));
    let requests = [
        ("", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        ("", "application/json"),
        ("?fieldSelector=metadata.namespace%3Ddefault", "application/json"),
        ("?watch=true&timeoutSeconds=0", "application/json"),
    ];
    for (query, accept) in requests {
        let mut reading = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let request = http::Request::get(format!("{CONFIG_MAPS}{query}"))
                .header("accept", accept)
                .extension(Caller(reader.clone()))
                .body(http_body_util::Empty::<bytes::Bytes>::new())
                .unwrap();
            let api = server.api.clone();
            reading.spawn(async move {
                let mut body = api.handle(request).await.into_body();
                let mut length = 0;
                while length < 1_000_000 {
                    let Some(frame) = body.frame().await else { break };
                    length += frame.unwrap().into_data().unwrap().len();
                }
                length
            });
        }
        // This task is behind theirs.
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c0"}, "data": {"q": query}});
        tokio::task::yield_now().await;
        let changed = server.put(&format!("{CONFIG_MAPS}/c0"), object).await;
        changed.expect(200);
        assert!(
            reading.try_join_next().is_none(),
            "{query} {accept} was made in one go"
        );
        while let Some(length) = reading.join_next().await {
            assert!(length.unwrap() > 500_000, "{query} {accept}");
        }
    }
}
