use std::time::Duration;

use lockgate_engine::cluster::{Leaving, Workloads};
use lockgate_hub::{ClusterChange, DeleteOptions, Resource};
use serde_json::{Value, json};

use crate::harness::{Fault, Server, World, bounded, create, get, patch, until};

const ANNOTATION: &str = "lockgate.karmada.io/unjoin-workloads";

async fn ask_to_leave(world: &World, how: Option<&str>) {
    let path = Resource::clusters().object("", "m1");
    if let Some(how) = how {
        patch(
            &world.hub.link,
            &path,
            json!({"metadata": {"annotations": {ANNOTATION: how}}}),
        )
        .await;
    }
    world
        .hub
        .link
        .delete(&path, &DeleteOptions::default())
        .await
        .unwrap();
}

async fn until_gone(world: &World) {
    until(|| async {
        world.clock.advance(Duration::from_secs(2));
        world.cluster("m1").await == Value::Null
    })
    .await;
    until(|| async { world.told(&ClusterChange::Gone("m1".into())) == 1 }).await;
    assert!(world.clusters.link("m1").is_none());
    let secret = get(&world.hub.link, &Resource::secrets(), "karmada-cluster", "m1").await;
    assert_eq!(secret, None, "the token goes with the cluster");
    until(|| async {
        let space = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1").await;
        space.is_none_or(|space| !space["metadata"]["deletionTimestamp"].is_null())
    })
    .await;
}

/// A Work of the member that somebody must still deal with.
fn work() -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"namespace": "karmada-es-m1", "name": "w", "finalizers": ["karmada.io/execution-controller"]},
        "spec": {"workload": {"manifests": []}}})
}

#[tokio::test]
async fn a_cluster_goes_when_no_work_is_left_and_not_before() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        create(&world.hub.link, work()).await;
        // The cache of Works has not seen it yet: the hub is asked before anything goes.
        *world.works.lock() = None;
        ask_to_leave(&world, Some("delete")).await;
        let expected = Leaving {
            workloads: Workloads::Delete,
            abandon: false,
        };
        until(|| async { world.clusters.leaving("m1") == Some(expected) }).await;
        assert_eq!(world.told(&ClusterChange::Leaving("m1".into())), 1);
        for works in [None, Some(1), Some(0)] {
            *world.works.lock() = works;
            world.tick(&member).await;
            world.tick(&member).await;
            let space = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1")
                .await
                .unwrap();
            assert!(space["metadata"]["deletionTimestamp"].is_null(), "{works:?}");
            assert_ne!(world.cluster("m1").await, Value::Null);
        }
        let path = Resource::works().object("karmada-es-m1", "w");
        patch(&world.hub.link, &path, json!({"metadata": {"finalizers": null}})).await;
        world
            .hub
            .link
            .delete(&path, &DeleteOptions::default())
            .await
            .unwrap();
        world.clusters.poke("m1");
        until_gone(&world).await;
        world.events.drained().await;
        assert_eq!(world.said("RemoveExecutionSpaceSucceed").await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_cluster_that_was_deleted_without_a_word_keeps_its_objects() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        *world.works.lock() = None;
        ask_to_leave(&world, None).await;
        until(|| async { world.clusters.leaving("m1").is_some() }).await;
        assert_eq!(world.clusters.leaving("m1").unwrap().workloads, Workloads::Keep);
        *world.works.lock() = Some(0);
        until_gone(&world).await;
    })
    .await;
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_given_up_when_its_objects_stay_anyway() {
    bounded(async {
        for (how, given_up) in [("keep", true), ("delete", false)] {
            let (world, member) = (World::switched().await, Server::start().await);
            world.join(&member, "m1").await;
            *world.works.lock() = Some(3);
            member.set(Fault::Refuse);
            ask_to_leave(&world, Some(how)).await;
            until(|| async {
                world.clock.advance(Duration::from_secs(10));
                !world.said("UnjoinMemberUnreachable").await.is_empty()
            })
            .await;
            let expected = Leaving {
                workloads: if given_up {
                    Workloads::Keep
                } else {
                    Workloads::Delete
                },
                abandon: given_up,
            };
            assert_eq!(world.clusters.leaving("m1"), Some(expected));
            let said = world.said("UnjoinMemberUnreachable").await.remove(0);
            let words = if given_up { "stay on its objects" } else { "=keep" };
            assert!(said.contains(words), "{said}");
            // Whoever owns the Works has let them go.
            *world.works.lock() = Some(0);
            until_gone(&world).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_can_be_used_again() {
    bounded(async {
        let (world, member, other) = (
            World::switched().await,
            Server::start().await,
            Server::start().await,
        );
        world.join(&member, "m1").await;
        ask_to_leave(&world, Some("keep")).await;
        until_gone(&world).await;
        world.try_join(&other, &other.request("m1")).await.unwrap();
        until(|| async {
            world.clock.advance(Duration::from_secs(2));
            world.clusters.has_space("m1")
        })
        .await;
        world.until_ready("m1", "True").await;
    })
    .await;
}
