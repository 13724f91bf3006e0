//! Bounds: what is too much is refused, and says so.

use std::sync::Arc;

use machinery_apiserver::Options;
use serde_json::json;

use crate::harness::{CONFIG_MAPS, JSON, JSON_PATCH, Server, pki};

#[tokio::test]
async fn a_body_has_three_mebibytes() {
    let server = Server::start().await;
    let big = "x".repeat(3 * 1024 * 1024 + 1);
    let answer = server.send("POST", CONFIG_MAPS, JSON, big).await;
    assert_eq!(answer.refusal().0, 413);
}

#[tokio::test]
async fn requests_at_once_are_bounded() {
    let mut options = Options::new(pki());
    options.max_in_flight = 1;
    let server = Arc::new(Server::with(options).await);
    // A request whose body never ends holds the only place.
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
    let user = Arc::new(machinery_auth::UserInfo::new("tester", ["system:masters"]));
    let request = http::Request::post(CONFIG_MAPS)
        .extension(machinery_apiserver::Caller(user))
        .body(Endless)
        .unwrap();
    let api = server.api.clone();
    let stuck = tokio::spawn(async move { api.handle(request).await });
    loop {
        let answer = server.get("/version").await;
        if answer.code == 429 {
            assert_eq!(answer.headers["retry-after"], "1");
            break;
        }
        tokio::task::yield_now().await;
    }
    // A watch needs no place.
    server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    stuck.abort();
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
