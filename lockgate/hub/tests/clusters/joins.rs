use std::time::Duration;

use jiff::Timestamp;
use lockgate_hub::clusters::join::{JoinError, JoinRequest, refuse_hub};
use lockgate_hub::clusters::rights;
use lockgate_hub::{ClusterChange, Link, Resource};
use serde_json::{Value, json};

use crate::harness::{Server, World, base64, bounded, condition, create, get, patch, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_joins_over_tls_with_a_token_that_lasts() {
    bounded(async {
        let (world, member) = (World::over_tls(Timestamp::now()).await, Server::start().await);
        let request = JoinRequest {
            labels: [("tier".to_owned(), "gold".to_owned())].into(),
            region: "north".into(),
            zones: vec!["a".into(), "b".into()],
            ..member.request("m1")
        };
        let joined = world.try_join(&member, &request).await.unwrap();
        assert!(joined.created);
        assert_eq!(joined.token_until, None, "the member's controller made a token that lasts");
        world.until_ready("m1", "True").await;

        let cluster = world.cluster("m1").await;
        let system = get(&member.link, &Resource::namespaces(), "", "kube-system").await.unwrap();
        assert_eq!(cluster["spec"]["id"], system["metadata"]["uid"]);
        assert_eq!(cluster["spec"]["zones"], json!(["a", "b"]));
        assert_eq!(cluster["metadata"]["finalizers"], json!(["karmada.io/cluster-controller"]));
        assert_eq!(condition(&cluster, "Ready")["reason"], "ClusterReady");
        assert_eq!(condition(&cluster, "CompleteAPIEnablements")["reason"], "Complete");
        assert!(cluster["status"]["kubernetesVersion"].as_str().unwrap().starts_with('v'));
        let apps = cluster["status"]["apiEnablements"].as_array().unwrap().iter();
        let apps = apps.clone().find(|list| list["groupVersion"] == "apps/v1").unwrap();
        let kinds: Vec<&Value> = apps["resources"].as_array().unwrap().iter().map(|r| &r["kind"]).collect();
        assert!(kinds.contains(&&json!("Deployment")), "{kinds:?}");

        let space = get(&world.hub.link, &Resource::namespaces(), "", "karmada-es-m1").await.unwrap();
        assert_eq!(space["metadata"]["labels"]["karmada.io/system"], "true");
        world.events.drained().await;
        assert_eq!(
            world.said("CreateExecutionSpaceSucceed").await,
            ["Created execution space(karmada-es-m1) for cluster(m1)."]
        );
        assert_eq!(world.told(&ClusterChange::Joined("m1".into())), 1);
        assert!(world.clusters.has_space("m1"));

        // The link writes what templates are made of, also roles that grant more than its own.
        let link = world.clusters.link("m1").unwrap();
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "wide"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
        create(&link, role).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_runs_out_is_renewed_in_time_and_the_hub_remembers_it() {
    bounded(async {
        // No controllers: nobody fills token Secrets there.
        let member = Server::with(|options| options.cluster_controllers = false).await;
        let world = World::over_tls(Timestamp::now() + Duration::from_secs(550)).await;
        let request = JoinRequest {
            token_patience: Duration::from_millis(1),
            ..member.request("m1")
        };
        let joined = world.try_join(&member, &request).await.unwrap();
        let until_long = joined.token_until.expect("a token that runs out");
        assert!(
            until_long > Timestamp::now() + Duration::from_secs(365 * 86_400),
            "{until_long}"
        );
        let left = get(
            &member.link,
            &Resource::secrets(),
            rights::MEMBER_NAMESPACE,
            &rights::token_secret_name("m1"),
        )
        .await;
        assert_eq!(left, None, "no empty Secret stays behind");
        world.until_ready("m1", "True").await;

        // A token of ten minutes, of which fifty seconds are left by the controllers' clock.
        let short = short_token(&member.link, "m1").await;
        let secret = Resource::secrets().object("karmada-cluster", "m1");
        patch(
            &world.hub.link,
            &secret,
            json!({"data": {"token": base64(&short)}}),
        )
        .await;
        until(|| async { world.said("RenewTokenSucceed").await.len() == 1 }).await;
        let secret = get(&world.hub.link, &Resource::secrets(), "karmada-cluster", "m1")
            .await
            .unwrap();
        assert_ne!(secret["data"]["token"], base64(&short));
        assert!(
            secret["data"]["caBundle"].is_string(),
            "the rest of the Secret stays"
        );
        let link = world.clusters.link("m1").unwrap();
        assert!(get(&link, &Resource::namespaces(), "", "default").await.is_some());
    })
    .await;
}

async fn short_token(link: &Link, cluster: &str) -> String {
    let path = format!(
        "/api/v1/namespaces/{}/serviceaccounts/{}/token",
        rights::MEMBER_NAMESPACE,
        rights::account_name(cluster)
    );
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let answer = link.create(&path, body.to_string().into_bytes()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_cluster_joins_once() {
    bounded(async {
        let (world, member, other) = (
            World::switched().await,
            Server::start().await,
            Server::start().await,
        );
        world.join(&member, "m1").await;
        let again = world.try_join(&member, &member.request("m2")).await;
        assert_eq!(again, Err(JoinError::AlreadyJoined("m1".into())));
        let same = world.try_join(&member, &member.request("m1")).await;
        assert_eq!(same, Err(JoinError::AlreadyJoined("m1".into())));
        let taken = world.try_join(&other, &other.request("m1")).await;
        assert_eq!(taken, Err(JoinError::NameTaken("m1".into())));
        assert_eq!(world.cluster("m2").await, Value::Null);
        assert_eq!(refuse_hub(&world.hub.link, &other.link).await, Ok(()));
        let itself = refuse_hub(&world.hub.link, &world.hub.link).await;
        assert_eq!(itself, Err(JoinError::IsHub));

        // Bringing it up to date is no second join, and writes nothing if nothing changed.
        until(|| async { world.clusters.idle() }).await;
        let revision = (world.hub.api.revision(), member.api.revision());
        let refresh = JoinRequest {
            refresh: true,
            ..member.request("m1")
        };
        let joined = world.try_join(&member, &refresh).await.unwrap();
        assert!(!joined.created);
        assert_eq!((world.hub.api.revision(), member.api.revision()), revision);
        let moved = JoinRequest {
            endpoint: "https://elsewhere.example".into(),
            ..refresh
        };
        world.try_join(&member, &moved).await.unwrap();
        assert_eq!(
            world.cluster("m1").await["spec"]["apiEndpoint"],
            "https://elsewhere.example"
        );
    })
    .await;
}

#[tokio::test]
async fn a_token_that_is_lost_is_given_again() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        world.join(&member, "m1").await;
        let token = || async {
            let secret = get(&world.hub.link, &Resource::secrets(), "karmada-cluster", "m1").await;
            secret.map(|secret| secret["data"]["token"].clone())
        };
        let first = token().await.unwrap();
        let mend = JoinRequest {
            refresh: true,
            renew_token: true,
            token_patience: Duration::ZERO,
            ..member.request("m1")
        };
        // The hub has one, of which nobody knows whether the member still takes it.
        world.try_join(&member, &mend).await.unwrap();
        let second = token().await.unwrap();
        assert_ne!(first, second);
        let path = Resource::secrets().object("karmada-cluster", "m1");
        let deletion = lockgate_hub::DeleteOptions::default();
        world.hub.link.delete(&path, &deletion).await.unwrap();
        world.try_join(&member, &mend).await.unwrap();
        assert!(token().await.is_some());
        world.until_ready("m1", "True").await;
    })
    .await;
}

#[tokio::test]
async fn a_namespace_that_becomes_reserved_is_named() {
    bounded(async {
        let (world, member) = (World::switched().await, Server::start().await);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m1"}});
        create(&world.hub.link, namespace).await;
        let mut said = Vec::new();
        let request = member.request("m1");
        let mut report = |line: &str| said.push(line.to_owned());
        lockgate_hub::clusters::join::join_member(&world.hub.link, &member.link, &request, &mut report)
            .await
            .unwrap();
        assert!(
            said.iter()
                .any(|line| line.contains("the namespace m1 is reserved")),
            "{said:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_hub_without_definitions_says_what_to_do() {
    bounded(async {
        let (hub, member) = (Server::start().await, Server::start().await);
        let request = member.request("m1");
        let error = lockgate_hub::clusters::join::join_member(&hub.link, &member.link, &request, &mut |_| {})
            .await
            .unwrap_err();
        assert!(error.to_string().contains("lockgate crds"), "{error}");
        let left = get(
            &member.link,
            &Resource::new(
                "rbac.authorization.k8s.io",
                "v1",
                "clusterroles",
                "ClusterRole",
                false,
            ),
            "",
            &rights::role_name("m1"),
        )
        .await;
        assert_eq!(left, None, "nothing was made in the member");
    })
    .await;
}
