//! Lists: pages from one snapshot, versions, selectors.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Server, version};

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_show_one_snapshot() {
    let server = Server::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        server.config_map(name, json!({})).await;
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    // What happens between two pages is in neither.
    server
        .delete(&format!("{CONFIG_MAPS}/c"), json!({}))
        .await
        .expect(200);
    server.config_map("cc", json!({})).await;
    let mut seen: Vec<String> = Vec::new();
    let mut token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    loop {
        let page = server
            .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
            .await
            .expect(200);
        assert_eq!(version(&page), version(&first));
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["c", "d", "e"]);
}

#[tokio::test]
async fn filtered_pages_are_full_and_know_their_end() {
    let server = Server::start().await;
    for number in 0..20 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata":
            {"name": format!("n{number:02}"), "labels": {"odd": (number % 2).to_string()}}});
        server.post(CONFIG_MAPS, body).await.expect(201);
    }
    let first = server
        .get(&format!("{CONFIG_MAPS}?limit=6&labelSelector=odd%3D1"))
        .await
        .expect(200);
    assert_eq!(names(&first), ["n01", "n03", "n05", "n07", "n09", "n11"]);
    assert!(
        first["metadata"].get("remainingItemCount").is_none(),
        "unknown with a selector"
    );
    let token = first["metadata"]["continue"].as_str().unwrap();
    let last = server
        .get(&format!(
            "{CONFIG_MAPS}?limit=6&labelSelector=odd%3D1&continue={token}"
        ))
        .await
        .expect(200);
    assert_eq!(names(&last), ["n13", "n15", "n17", "n19"]);
    assert!(last["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn a_list_can_be_read_as_it_was() {
    let server = Server::start().await;
    let first = server.config_map("a", json!({})).await;
    server.config_map("b", json!({})).await;
    let query = format!("resourceVersion={}&resourceVersionMatch=Exact", version(&first));
    let list = server.get(&format!("{CONFIG_MAPS}?{query}")).await.expect(200);
    assert_eq!(names(&list), ["a"]);
    assert_eq!(version(&list), version(&first));
}

#[tokio::test]
async fn the_future_is_not_waited_for() {
    let server = Server::start().await;
    let answer = server
        .get(&format!("{CONFIG_MAPS}?resourceVersion=99999999"))
        .await;
    assert_eq!(answer.refusal().0, 504);
    assert_eq!(
        answer.value["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test]
async fn fields_select_too() {
    let server = Server::start().await;
    server.config_map("a", json!({})).await;
    server.config_map("ab", json!({})).await;
    let list = server
        .get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da"))
        .await
        .expect(200);
    assert_eq!(names(&list), ["a"]);
    let list = server
        .get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name!%3Da"))
        .await
        .expect(200);
    assert_eq!(names(&list), ["ab"]);
    let all = server
        .get("/api/v1/configmaps?fieldSelector=metadata.namespace%3Ddefault")
        .await
        .expect(200);
    assert_eq!(names(&all), ["a", "ab"]);
    assert_eq!(
        server
            .get(&format!("{CONFIG_MAPS}?fieldSelector=data.x%3D1"))
            .await
            .refusal()
            .0,
        400
    );
}
