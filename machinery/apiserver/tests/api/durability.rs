//! A durable server comes back as it was.

use machinery_apiserver::Options;
use serde_json::json;

use crate::harness::{CONFIG_MAPS, MERGE, Server, pki, version};

#[tokio::test]
async fn nothing_is_lost_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(pki());
    options.path = Some(directory.path().join("store.db"));
    let server = Server::with(options.clone()).await;
    let first = server.config_map("a", json!({"k": "1"})).await;
    server
        .patch(
            &format!("{CONFIG_MAPS}/a"),
            MERGE,
            json!({"metadata": {"labels": {"x": "y"}}}),
        )
        .await
        .expect(200);
    let before = server.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let revision = server.api.revision();
    server.api.stop().await;

    let server = Server::with(options.clone()).await;
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.expect(200), before);
    assert_eq!(
        server
            .get(&format!("{CONFIG_MAPS}?labelSelector=x%3Dy"))
            .await
            .value["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let next = server.config_map("b", json!({})).await;
    assert!(
        version(&next).parse::<u64>().unwrap() > revision,
        "no revision is given twice"
    );
    // The history before the restart is gone, and a watch from there is told so.
    let mut watch = server
        .watch(&format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion={}",
            version(&first)
        ))
        .await;
    assert_eq!(watch.next().await.unwrap()["object"]["code"], 410);
    server.api.stop().await;
}

#[tokio::test]
async fn a_settled_server_writes_nothing_when_it_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(pki());
    options.path = Some(directory.path().join("store.db"));
    let server = Server::with(options.clone()).await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        server
            .until(
                &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                "default",
                |_| true,
            )
            .await;
    }
    let revision = server.api.revision();
    server.api.stop().await;
    let server = Server::with(options).await;
    // A request goes through the whole server, and its controllers have had their start.
    server.config_map("a", json!({})).await;
    server
        .delete(&format!("{CONFIG_MAPS}/a"), json!({}))
        .await
        .expect(200);
    assert_eq!(server.api.revision(), revision + 2);
}
