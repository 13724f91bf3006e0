//! Following a resource.

use lockgate_hub::{DeleteOptions, Link, Resource, follow};

use crate::harness::{Server, Told, config_map};

both!(
    changes_are_told_once_and_in_order,
    our_own_writes_are_known_at_once
);

async fn changes_are_told_once_and_in_order(server: Server) {
    check(&server.link).await;
}

/// What must hold of every server.
pub(crate) async fn check(link: &Link) {
    let maps = Resource::config_maps();
    let all = maps.collection("default");
    link.create(&all, config_map("a", "1")).await.unwrap();
    let mut told = Told::follow(link);
    told.following.cache.wait_synced().await;
    assert_eq!(told.until("+a=1").await, ["+a=1"]);
    let a = maps.object("default", "a");
    let replaced = link.replace(&a, config_map("a", "2")).await.unwrap();
    link.create(&all, config_map("b", "1")).await.unwrap();
    // What does not match the selector is not told.
    let other = br#"{"metadata":{"name":"other"},"data":{"v":"1"}}"#.to_vec();
    link.create(&all, other).await.unwrap();
    link.delete(&a, &DeleteOptions::default()).await.unwrap();
    assert_eq!(told.until("-a").await, ["+a=1", "a=1>2", "+b=1", "-a"]);
    let cache = &told.following.cache;
    assert_eq!(cache.len(), 1);
    // An answer that comes late changes nothing.
    cache.learn(&replaced).unwrap();
    assert_eq!(cache.len(), 1);
    // Leaving the selection is told as a deletion.
    let b = maps.object("default", "b");
    link.merge_patch(&b, br#"{"metadata":{"labels":null}}"#.to_vec())
        .await
        .unwrap();
    told.until("-b").await;
}

async fn our_own_writes_are_known_at_once(server: Server) {
    let link = &server.link;
    let maps = Resource::config_maps();
    let mut told = Told::follow(link);
    told.following.cache.wait_synced().await;
    let cache = told.following.cache.clone();
    let mut expected = Vec::new();
    for n in 0..50 {
        let name = format!("m{n}");
        let made = link
            .create(&maps.collection("default"), config_map(&name, "1"))
            .await
            .unwrap();
        cache.learn(&made).unwrap();
        let known = cache.find("default", &name).unwrap();
        let path = maps.object("default", &name);
        let replaced = link.replace(&path, config_map(&name, "2")).await.unwrap();
        cache.learn(&replaced).unwrap();
        assert_ne!(
            cache.find("default", &name).unwrap().resource_version,
            known.resource_version
        );
        link.delete(&path, &DeleteOptions::default()).await.unwrap();
        cache.forget(&known.key, &known.uid);
        assert!(cache.find("default", &name).is_none());
        expected.extend([format!("+{name}=1"), format!("{name}=1>2"), format!("-{name}")]);
    }
    let all = told.until_now(&server.server).await;
    assert_eq!(all, expected, "nothing comes twice, nothing comes back");
}

#[tokio::test]
async fn one_namespace_may_be_followed() {
    let server = Server::in_process(|_| {}).await;
    let following = follow(&server.link, &Resource::config_maps(), "default", None, |_| {});
    following.cache.wait_synced().await;
    let elsewhere =
        br#"{"metadata":{"name":"x","namespace":"kube-system","uid":"u","resourceVersion":"9999999"}}"#;
    following.cache.learn(elsewhere).unwrap();
    assert!(
        following
            .cache
            .list()
            .iter()
            .all(|cached| &*cached.key.namespace == "default")
    );
}
