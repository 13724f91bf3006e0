use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_hub::{ClusterChange, DeleteOptions, Resource};
use serde_json::{Value, json};

use crate::harness::{Fault, Server, World, base64, bounded, condition, create, get, patch, until, widgets};

#[tokio::test]
async fn a_settled_cluster_is_not_written_not_even_by_a_restart() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        // Two probes, so that the pass of the first is over; more than a minute, so that the closer look is among them.
        for _ in 0..8 {
            world.tick(&member).await;
        }
        let revision = world.hub.api.revision();
        for _ in 0..8 {
            world.tick(&member).await;
        }
        assert_eq!(
            world.hub.api.revision(),
            revision,
            "a member that only breathes is not written"
        );
        let world = world.restarted();
        until(|| async { world.clusters.kinds("m1").is_some() }).await;
        world.tick(&member).await;
        world.tick(&member).await;
        assert_eq!(world.hub.api.revision(), revision, "a restart writes nothing");
    })
    .await;
}

#[tokio::test]
async fn a_member_that_stops_answering_is_not_ready_after_a_while_and_ready_again_after_another() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        let own = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        let path = Resource::clusters().object("", "m1");
        patch(&world.hub.link, &path, json!({"spec": {"taints": own}})).await;

        member.set(Fault::Refuse);
        world.tick(&member).await;
        world.tick(&member).await;
        assert_eq!(
            condition(&world.cluster("m1").await, "Ready")["status"],
            "True",
            "a short outage"
        );
        until(|| async {
            world.clock.advance(Duration::from_secs(10));
            condition(&world.cluster("m1").await, "Ready")["reason"] == "ClusterNotReachable"
        })
        .await;
        let not_ready = json!([{"key": "gpu", "effect": "NoSchedule"},
            {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}]);
        until(|| async { world.cluster("m1").await["spec"]["taints"] == not_ready }).await;
        assert!(world.told(&ClusterChange::Fingerprint("m1".into())) > 0);
        let kept = world.cluster("m1").await;
        assert!(
            !kept["status"]["apiEnablements"].as_array().unwrap().is_empty(),
            "what was known stays"
        );

        member.set(Fault::Unhealthy);
        until(|| async {
            world.clock.advance(Duration::from_secs(10));
            condition(&world.cluster("m1").await, "Ready")["reason"] == "ClusterNotReady"
        })
        .await;

        member.set(Fault::None);
        world.tick(&member).await;
        world.tick(&member).await;
        assert_eq!(
            condition(&world.cluster("m1").await, "Ready")["status"],
            "False",
            "too soon"
        );
        until(|| async {
            world.clock.advance(Duration::from_secs(10));
            world.cluster("m1").await["spec"]["taints"] == own
        })
        .await;
        assert_eq!(condition(&world.cluster("m1").await, "Ready")["status"], "True");
    })
    .await;
}

#[tokio::test]
async fn a_member_that_hangs_delays_only_itself() {
    bounded(async {
        let (world, dead, member) = (
            World::switched().await,
            Server::start().await,
            Server::start().await,
        );
        dead.set(Fault::Hang);
        world.try_join(&dead, &dead.request("dead")).await.unwrap();
        until(|| async { dead.probes.load(Ordering::SeqCst) > 0 }).await;
        let begun = std::time::Instant::now();
        world.join(&member, "m1").await;
        assert!(
            begun.elapsed() < Duration::from_secs(4),
            "the time-out of the dead one is longer"
        );
        world.until_ready("dead", "False").await;
    })
    .await;
}

#[tokio::test]
async fn a_definition_that_is_added_in_a_member_is_noticed_by_the_next_probe() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        let served = |cluster: &Value| cluster["status"]["apiEnablements"].to_string().contains("Widget");
        assert!(!served(&world.cluster("m1").await));
        create(&member.link, widgets()).await;
        world.tick(&member).await;
        until(|| async { served(&world.cluster("m1").await) }).await;
        assert!(
            world
                .clusters
                .kinds("m1")
                .unwrap()
                .get("example.com/v1", "Widget")
                .is_some()
        );
        let path = Resource::crds().object("", "widgets.example.com");
        member
            .link
            .delete(&path, &DeleteOptions::default())
            .await
            .unwrap();
        world.tick(&member).await;
        until(|| async { !served(&world.cluster("m1").await) }).await;
    })
    .await;
}

#[tokio::test]
async fn an_execution_namespace_is_made_again_and_labelled_again() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        let path = Resource::namespaces().object("", "karmada-es-m1");
        let before = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1")
            .await
            .unwrap();
        world
            .hub
            .link
            .delete(&path, &DeleteOptions::default())
            .await
            .unwrap();
        until(|| async {
            world.clock.advance(Duration::from_secs(2));
            let now = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1").await;
            now.is_some_and(|now| {
                now["metadata"]["uid"] != before["metadata"]["uid"]
                    && now["metadata"]["labels"]["karmada.io/system"] == "true"
            })
        })
        .await;
        until(|| async { world.told(&ClusterChange::Joined("m1".into())) >= 2 }).await;
        patch(
            &world.hub.link,
            &path,
            json!({"metadata": {"labels": {"karmada.io/system": null}}}),
        )
        .await;
        until(|| async {
            let now = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1").await;
            now.is_some_and(|now| now["metadata"]["labels"]["karmada.io/system"] == "true")
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_follows_its_secret() {
    bounded(async {
        let (world, member) = (
            World::over_tls(jiff::Timestamp::now()).await,
            Server::start().await,
        );
        world.join(&member, "m1").await;
        let links = world.told(&ClusterChange::Link("m1".into()));
        let path = Resource::secrets().object("karmada-cluster", "m1");
        let secret = get(&world.hub.link, &Resource::secrets(), "karmada-cluster", "m1")
            .await
            .unwrap();
        patch(
            &world.hub.link,
            &path,
            json!({"data": {"token": base64("stolen")}}),
        )
        .await;
        until(|| async { world.told(&ClusterChange::Link("m1".into())) > links }).await;
        until(|| async {
            world.clock.advance(Duration::from_secs(10));
            let ready = condition(&world.cluster("m1").await, "Ready");
            ready["reason"] == "ClusterNotReady" && ready["message"].as_str().unwrap().contains("401")
        })
        .await;
        world
            .hub
            .link
            .delete(&path, &DeleteOptions::default())
            .await
            .unwrap();
        until(|| async { world.clusters.link("m1").is_none() }).await;
        until(|| async {
            let ready = condition(&world.cluster("m1").await, "Ready");
            ready["reason"] == "StatusCollectionFailed"
                && ready["message"]
                    .as_str()
                    .unwrap()
                    .contains("Secret karmada-cluster/m1 is not there")
        })
        .await;
        let again = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": secret["data"],
            "metadata": {"namespace": "karmada-cluster", "name": "m1"}});
        create(&world.hub.link, again).await;
        until(|| async {
            world.clock.advance(Duration::from_secs(10));
            condition(&world.cluster("m1").await, "Ready")["status"] == "True"
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_cluster_in_pull_mode_is_told_that_it_is_not_served() {
    bounded(async {
        let world = World::switched().await;
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "pulling"}, "spec": {"syncMode": "Pull"}});
        create(&world.hub.link, cluster).await;
        until(|| async {
            let cluster = world.cluster("pulling").await;
            condition(&cluster, "Ready")["reason"] == "PullModeNotServed"
                && cluster["spec"]["taints"][0]["key"] == "cluster.karmada.io/not-ready"
        })
        .await;
        assert!(world.clusters.link("pulling").is_none());
    })
    .await;
}
