//! Watches: initial events, selector transitions, bookmarks, old and future versions, timeouts.

use serde_json::json;

use crate::harness::{CONFIG_MAPS, MERGE, Server, version};

#[tokio::test]
async fn a_watch_without_version_begins_with_what_is_there() {
    let server = Server::start().await;
    server.config_map("a", json!({})).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.brief().await, "ADDED a");
    server.config_map("b", json!({})).await;
    server
        .patch(&format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}}))
        .await
        .expect(200);
    server
        .delete(&format!("{CONFIG_MAPS}/b"), json!({}))
        .await
        .expect(200);
    assert_eq!(watch.brief().await, "ADDED b");
    assert_eq!(watch.brief().await, "MODIFIED a");
    assert_eq!(watch.brief().await, "DELETED b");
}

#[tokio::test]
async fn a_watch_from_a_version_replays_what_came_after_it() {
    let server = Server::start().await;
    let first = server.config_map("a", json!({})).await;
    server.config_map("b", json!({})).await;
    let mut watch = server
        .watch(&format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion={}",
            version(&first)
        ))
        .await;
    assert_eq!(watch.brief().await, "ADDED b");
}

#[tokio::test]
async fn an_object_may_enter_and_leave_a_selection() {
    let server = Server::start().await;
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=tier%3Dweb"))
        .await;
    let made = server.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let entered = server
        .patch(&path, MERGE, json!({"metadata": {"labels": {"tier": "web"}}}))
        .await
        .expect(200);
    server
        .patch(&path, MERGE, json!({"data": {"k": "v"}}))
        .await
        .expect(200);
    let left = server
        .patch(&path, MERGE, json!({"metadata": {"labels": {"tier": null}}}))
        .await
        .expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(
        (event["type"].as_str(), version(&event["object"])),
        (Some("ADDED"), version(&entered))
    );
    assert_eq!(watch.brief().await, "MODIFIED a");
    let event = watch.next().await.unwrap();
    // It is shown as it was, at the version at which it left.
    assert_eq!(
        (event["type"].as_str(), version(&event["object"])),
        (Some("DELETED"), version(&left))
    );
    assert_eq!(event["object"]["metadata"]["labels"]["tier"], "web");
    assert_ne!(version(&made), version(&left));
}

#[tokio::test]
async fn a_deleted_object_carries_the_version_of_its_deletion() {
    let server = Server::start().await;
    let made = server.config_map("a", json!({})).await;
    let mut watch = server
        .watch(&format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion={}",
            version(&made)
        ))
        .await;
    server
        .delete(&format!("{CONFIG_MAPS}/a"), json!({}))
        .await
        .expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert!(version(&event["object"]).parse::<u64>().unwrap() > version(&made).parse().unwrap());
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() {
    let server = Server::start().await;
    server.config_map("a", json!({})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.brief().await, "ADDED a");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    server.config_map("b", json!({})).await;
    assert_eq!(watch.brief().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_bookmarks_while_quiet_and_ends_in_time() {
    let server = Server::start().await;
    let revision = server.api.revision();
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={revision}");
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    let mut bookmarks = 0;
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK");
        assert!(version(&event["object"]).parse::<u64>().unwrap() >= revision);
        bookmarks += 1;
    }
    assert_eq!(bookmarks, 3, "two by the minute, and one at the end");
}

#[tokio::test]
async fn a_version_that_is_too_old_is_an_error_inside_the_stream() {
    let server = Server::start().await;
    // More changes than the history holds.
    for number in 0..12_000 {
        let name = format!("a{}", number % 3);
        let path = format!("{CONFIG_MAPS}/{name}");
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": number.to_string()}});
        let answer = server.put(&path, body.clone()).await;
        if answer.code == 404 {
            server.post(CONFIG_MAPS, body).await.expect(201);
        }
    }
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1"))
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn tables_and_metadata_can_be_watched() {
    use http_body_util::BodyExt as _;
    let server = Server::start().await;
    server.config_map("a", json!({"k": "v"})).await;
    let user = machinery_auth::UserInfo::new("tester", ["system:masters"]);
    for (accept, kind) in [
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "Table"),
        (
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "PartialObjectMetadata",
        ),
    ] {
        let request = http::Request::get(format!("{CONFIG_MAPS}?watch=1"))
            .header("accept", accept)
            .extension(machinery_apiserver::Caller(std::sync::Arc::new(user.clone())))
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        let mut body = server.api.handle(request).await.into_body();
        let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (event["type"].as_str(), event["object"]["kind"].as_str()),
            (Some("ADDED"), Some(kind))
        );
    }
}

/// Nobody was ever told such a version; what came later must not be kept from whoever asks for it.
#[tokio::test]
async fn a_streaming_list_of_the_future_ends_with_an_error() {
    let server = Server::start().await;
    server.config_map("a", json!({"k": "v"})).await;
    let streaming = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?{streaming}&resourceVersion=999999999"))
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 504);
    assert_eq!(
        event["object"]["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn everything_follows_initial_events() {
    let server = Server::start().await;
    let newest = server.config_map("a", json!({"k": "v"})).await;
    let streaming = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let path = format!("{CONFIG_MAPS}?{streaming}&resourceVersion={}", version(&newest));
    let mut watch = server.watch(&path).await;
    assert_eq!(watch.brief().await, "ADDED a");
    server.config_map("b", json!({"k": "v"})).await;
    assert_eq!(watch.brief().await, "ADDED b");
}
