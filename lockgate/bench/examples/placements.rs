//! What placements of Open Cluster Management cost: `cargo run --release -p lockgate-bench --example placements -- [CLUSTERS]
//! [PLACEMENTS] [ROUNDS]`. The labels of clusters are changed in as many rounds, of another cluster each. The hub is in this process and in memory; all clusters are reached through one member.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement may end where it likes, and prints"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use lockgate_hub::{ConnectError, Connector, Guard, Hub, HubOptions, Link, Resource};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every cluster is this server.
struct OneMember(ApiServer);

impl Connector for OneMember {
    fn connect<'a>(
        &'a self,
        _: &'a lockgate_api::Cluster,
        _: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let client = kube::Client::new(self.0.as_user(administrator()), "default");
        Box::pin(async move { Ok(client) })
    }
}

fn administrator() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters", "system:authenticated"])
}

struct World {
    hub: ApiServer,
    member: ApiServer,
    link: Link,
}

impl World {
    async fn start() -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let hub = ApiServer::start(Options::new(pki.clone())).await.unwrap();
        let member = ApiServer::start(Options::new(pki)).await.unwrap();
        let link = Link::new(kube::Client::new(hub.as_user(administrator()), "default"));
        lockgate_hub::install::install(&link).await.unwrap();
        Self { hub, member, link }
    }

    async fn control(&self) -> Hub {
        let client = kube::Client::new(self.hub.as_user(administrator()), "default");
        let mut options = HubOptions::inside(client);
        options.connector = Arc::new(OneMember(self.member.clone()));
        Hub::start(options).await.unwrap()
    }

    async fn create(&self, resource: Resource, namespace: &str, object: Value) {
        let mut object = object;
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        let body = object.to_string().into_bytes();
        self.link
            .create(&resource.collection(namespace), body)
            .await
            .unwrap();
    }

    /// The versions of all objects of a kind.
    async fn versions(&self, resource: &Resource) -> BTreeMap<String, String> {
        let path = resource.collection("");
        let list: Value = serde_json::from_slice(&self.link.get(&path).await.unwrap()).unwrap();
        let items = list["items"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        items
            .iter()
            .map(|item| {
                (
                    text(&item["metadata"]["name"]),
                    text(&item["metadata"]["resourceVersion"]),
                )
            })
            .collect()
    }

    /// The versions of all decisions.
    async fn decisions(&self) -> BTreeMap<String, String> {
        self.versions(&Resource::placement_decisions()).await
    }

    /// Waits until nothing is left to do but to send events, which go out at a slow pace of their own.
    async fn quiet(&self, control: &Hub) -> Instant {
        let mut since = Instant::now();
        loop {
            // Asking looks at every cluster, on the cores that are measured.
            tokio::time::sleep(Duration::from_millis(5)).await;
            if !control.idle() {
                since = Instant::now();
            }
            if since.elapsed() > Duration::from_millis(300) {
                return since;
            }
        }
    }
}

/// When the last event of a kind came, followed from now on. Nothing is read of it: that would be done on the cores that are
/// measured.
async fn follow(client: kube::Client, resource: &Resource) -> Arc<Mutex<Instant>> {
    let path = resource.collection("");
    let ask = |query: &str| {
        let request = http::Request::get(format!("{path}?{query}"));
        client.send(request.body(kube::client::Body::empty()).unwrap())
    };
    let listed = ask("limit=1").await.unwrap().into_body();
    let listed = listed.collect().await.unwrap().to_bytes();
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let from = listed["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let answer = ask(&format!("watch=true&resourceVersion={from}")).await;
    let mut events = answer.unwrap().into_body();
    let last = Arc::new(Mutex::new(Instant::now()));
    let seen = Arc::clone(&last);
    tokio::spawn(async move {
        // As long as its client.
        let _client = client;
        while let Some(Ok(_)) = events.frame().await {
            *seen.lock().unwrap() = Instant::now();
        }
    });
    last
}

/// How many objects are new or other than before.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> usize {
    let same = |name: &String, version: &String| before.get(name) == Some(version);
    after
        .iter()
        .filter(|(name, version)| !same(name, version))
        .count()
}

/// The least, the middle and the most.
fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    format!(
        "{:.0}/{:.0}/{:.0}",
        at(0),
        at(times.len() / 2),
        at(times.len().saturating_sub(1))
    )
}

fn placement(number: usize) -> Value {
    let tier = format!("t{}", number % 4);
    json!({
        "metadata": {"name": format!("p{number:03}"), "namespace": "bench"},
        "spec": {
            "predicates": [
                {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": tier}}}},
                {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"everywhere": "yes"}}}},
            ],
            "decisionStrategy": {"groupStrategy": {
                "clustersPerDecisionGroup": "10%",
                "decisionGroups": [{"groupName": "canary", "groupClusterSelector": {
                    "labelSelector": {"matchLabels": {"canary": "yes"}}}}],
            }},
        },
    })
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: usize| arguments.next().map_or(otherwise, |text| text.parse().unwrap());
    let (clusters, placements, rounds) = (number(1000), number(100), number(5));
    let world = World::start().await;
    let control = world.control().await;

    let begun = Instant::now();
    futures::stream::iter(1..=clusters)
        .for_each_concurrent(16, |number| {
            let labels = json!({"tier": format!("t{}", number % 4), "canary": if number % 50 == 0 { "yes" } else { "no" }});
            let object = json!({
                "metadata": {"name": format!("c{number:05}"), "labels": labels},
                "spec": {"syncMode": "Push", "apiEndpoint": format!("https://c{number}.invalid")},
            });
            world.create(Resource::clusters(), "", object)
        })
        .await;
    let end = world.quiet(&control).await;
    println!(
        "{clusters} clusters joined in {:.1} s",
        end.duration_since(begun).as_secs_f64()
    );

    // The clusters are one: each of a thousand would stamp the one namespace there as its own, again and again.
    let alone =
        json!({"metadata": {"name": "bench", "labels": {lockgate_api::keys::SKIP_AUTO_PROPAGATION: "true"}}});
    world.create(Resource::namespaces(), "", alone).await;
    let binding =
        json!({"metadata": {"name": "global", "namespace": "bench"}, "spec": {"clusterSet": "global"}});
    world
        .create(Resource::managed_cluster_set_bindings(), "bench", binding)
        .await;
    let begun = Instant::now();
    for number in 1..=placements {
        world
            .create(Resource::placements(), "bench", placement(number))
            .await;
    }
    let end = world.quiet(&control).await;
    let decided = world.decisions().await;
    println!(
        "{placements} placements decided in {:.2} s: {} decisions",
        end.duration_since(begun).as_secs_f64(),
        decided.len()
    );

    let client = kube::Client::new(world.hub.as_user(administrator()), "default");
    let last = follow(client, &Resource::placement_decisions()).await;
    // A label that one cluster gets: every placement is decided again, and takes it.
    for (what, patch) in [
        (
            "a label that all placements ask for",
            json!({"everywhere": "yes"}),
        ),
        ("the same label gone again", json!({"everywhere": null})),
        ("a label that nobody asks for", json!({"colour": "red"})),
        ("from one tier to another", json!({"tier": "t3"})),
    ] {
        let mut written = BTreeSet::new();
        let (mut decided, mut quiet) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let before = world.decisions().await;
            // The clusters of the first tier are every fourth.
            let number = (clusters / 2 + 4 * round) % clusters;
            let path = Resource::clusters().object("", &format!("c{number:05}"));
            let body = json!({"metadata": {"labels": patch}}).to_string().into_bytes();
            let begun = Instant::now();
            world.link.merge_patch(&path, body).await.unwrap();
            let end = world.quiet(&control).await;
            let milliseconds = |end: Instant| end.saturating_duration_since(begun).as_secs_f64() * 1000.0;
            decided.push(milliseconds(*last.lock().unwrap()));
            quiet.push(milliseconds(end));
            written.insert(changed(&before, &world.decisions().await));
        }
        println!(
            "{what}: decided after {} ms, {written:?} decisions written; nothing left to do after {} ms",
            spread(decided),
            spread(quiet),
        );
    }
    control.stop().await;

    let kinds = [
        Resource::clusters(),
        Resource::managed_clusters(),
        Resource::placements(),
        Resource::placement_decisions(),
    ];
    let mut before = Vec::new();
    for kind in &kinds {
        before.push(world.versions(kind).await);
    }
    let begun = Instant::now();
    let control = world.control().await;
    let end = world.quiet(&control).await;
    let mut written = 0;
    for (kind, before) in kinds.iter().zip(&before) {
        written += changed(before, &world.versions(kind).await);
    }
    println!(
        "started again in {:.2} s, {written} objects written",
        end.duration_since(begun).as_secs_f64(),
    );
    control.stop().await;
}
