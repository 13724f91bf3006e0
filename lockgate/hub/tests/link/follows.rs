//! Following a resource.

use lockgate_hub::{DeleteOptions, Resource};

use crate::harness::{Server, Told, config_map};

both!(changes_are_told_once_and_in_order);

async fn changes_are_told_once_and_in_order(server: Server) {
    let link = &server.link;
    let maps = Resource::config_maps();
    link.create(&maps.collection("default"), config_map("a", "1"))
        .await
        .unwrap();
    let mut told = Told::follow(link);
    told.following.cache.wait_synced().await;
    assert_eq!(told.until("+a=1").await, ["+a=1"]);
    link.replace(&maps.object("default", "a"), config_map("a", "2"))
        .await
        .unwrap();
    link.create(&maps.collection("default"), config_map("b", "1"))
        .await
        .unwrap();
    link.delete(&maps.object("default", "a"), &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(told.until("-a").await, ["+a=1", "a=1>2", "+b=1", "-a"]);
    assert_eq!(told.following.cache.len(), 1);
}
