//! Placements on an embedded hub: whoever watches decisions misses nobody who stays selected, whatever changes meanwhile.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use lockgate_api::ocm::PLACEMENT;
use lockgate_hub::{ConnectError, Connector, Guard, Hub, HubOptions, Link, Resource};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Nothing in this test takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// More than fit into one decision.
const CLUSTERS: usize = 120;
/// How often something changes.
const CHANGES: usize = 120;
/// How many clusters the last placement wants: fewer than there ever are.
const WANTED: usize = 60;
/// The placements: one with decisions as large as they may be, one with many groups, one that chooses.
const PLACEMENTS: [&str; 3] = ["all", "groups", "some"];
const NAMESPACE: &str = "shop";

/// Every cluster is this server.
struct OneMember(ApiServer);

impl Connector for OneMember {
    fn connect<'a>(
        &'a self,
        _: &'a lockgate_api::Cluster,
        _: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let client = client(&self.0);
        Box::pin(async move { Ok(client) })
    }
}

fn client(server: &ApiServer) -> kube::Client {
    let user = UserInfo::new("lockgate", ["system:masters", "system:authenticated"]);
    kube::Client::new(server.as_user(user), "default")
}

fn name(number: usize) -> String {
    format!("c{number:03}")
}

/// Every third cluster comes and goes; so everybody behind it moves.
fn comes_and_goes(number: usize) -> bool {
    number.is_multiple_of(3)
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
        let link = Link::new(client(&hub));
        lockgate_hub::install::install(&link).await.unwrap();
        Self { hub, member, link }
    }

    async fn control(&self) -> Hub {
        let mut options = HubOptions::new(client(&self.hub));
        options.connector = Arc::new(OneMember(self.member.clone()));
        Hub::start(options).await.unwrap()
    }

    async fn create(&self, resource: Resource, namespace: &str, mut object: Value) {
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        let path = resource.collection(namespace);
        let body = object.to_string().into_bytes();
        self.link.create(&path, body).await.unwrap();
    }

    async fn patch(&self, path: &str, patch: Value) {
        self.link
            .merge_patch(path, patch.to_string().into_bytes())
            .await
            .unwrap();
    }

    /// Lets placements select a cluster, or not. The label is the ManagedCluster's own.
    async fn select(&self, number: usize, selected: bool) {
        let value = if selected { json!("yes") } else { Value::Null };
        let path = Resource::managed_clusters().object("", &name(number));
        self.patch(&path, json!({"metadata": {"labels": {"selected": value}}}))
            .await;
    }

    /// Follows decisions from now on.
    async fn watch(&self) -> Arc<Mutex<Seen>> {
        let resource = Resource::placement_decisions();
        let kind = ApiResource {
            group: resource.group.clone(),
            version: resource.version.clone(),
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
        };
        let api: Api<DynamicObject> = Api::all_with(client(&self.hub), &kind);
        let listed = api.list(&ListParams::default()).await.unwrap();
        assert!(listed.items.is_empty());
        let from = listed.metadata.resource_version.unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let seeing = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut events = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
            while let Some(event) = events.next().await {
                seeing.lock().take_in(event.unwrap());
            }
        });
        seen
    }
}

/// What a watcher of decisions has seen.
#[derive(Default)]
struct Seen {
    /// The placement of each decision, and its clusters.
    decisions: BTreeMap<String, (String, Vec<String>)>,
    /// The clusters that each placement selects from now on, whatever happens.
    stay: BTreeMap<&'static str, BTreeSet<String>>,
    events: usize,
    /// What should not have been seen.
    wrong: Vec<String>,
}

impl Seen {
    fn take_in(&mut self, event: WatchEvent<DynamicObject>) {
        match event {
            WatchEvent::Added(decision) | WatchEvent::Modified(decision) => {
                let placement = decision.metadata.labels.unwrap()[PLACEMENT].clone();
                let list = decision.data["status"]["decisions"].as_array();
                let clusters = list.into_iter().flatten();
                let clusters = clusters.map(|one| one["clusterName"].as_str().unwrap().to_owned());
                let name = decision.metadata.name.unwrap();
                self.decisions.insert(name, (placement, clusters.collect()));
            }
            WatchEvent::Deleted(decision) => drop(self.decisions.remove(&decision.metadata.name.unwrap())),
            other => panic!("{other:?}"),
        }
        self.events += 1;
        for (name, (_, clusters)) in &self.decisions {
            if clusters.len() > 100 {
                self.wrong.push(format!("{name} has {} clusters", clusters.len()));
            }
        }
        for (placement, stay) in &self.stay {
            let named: BTreeSet<String> = self.named(placement).into_iter().collect();
            let missed: Vec<&String> = stay.difference(&named).collect();
            if !missed.is_empty() {
                self.wrong
                    .push(format!("event {}: {placement} lost {missed:?}", self.events));
            }
        }
    }

    /// The clusters that the decisions of a placement name.
    fn named(&self, placement: &str) -> Vec<String> {
        let own = self.decisions.values().filter(|(of, _)| of == placement);
        let mut named: Vec<String> = own.flat_map(|(_, clusters)| clusters.clone()).collect();
        named.sort();
        named
    }

    /// Whether the placements name these clusters, each once, and the last of them as many of them as it wants.
    fn is(&self, selected: &[String]) -> bool {
        let [all, groups, some] = PLACEMENTS.map(|placement| self.named(placement));
        let chosen: BTreeSet<&String> = some.iter().collect();
        all == selected
            && groups == selected
            && chosen.len() == WANTED
            && some.len() == WANTED
            && some.iter().all(|cluster| selected.contains(cluster))
    }
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("it never came to be: {what}"));
}

/// Numbers that look like chance, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_misses_nobody_who_stays_selected() {
    let world = World::start().await;
    let mut control = world.control().await;
    for number in 0..CLUSTERS {
        let object = json!({
            "metadata": {"name": name(number)},
            "spec": {"syncMode": "Push", "apiEndpoint": format!("https://{}.invalid", name(number))},
        });
        world.create(Resource::clusters(), "", object).await;
    }
    until("clusters join", || control.idle()).await;
    for number in 0..CLUSTERS {
        world.select(number, true).await;
    }
    let alone = json!({lockgate_api::keys::SKIP_AUTO_PROPAGATION: "true"});
    let namespace = json!({"metadata": {"name": NAMESPACE, "labels": alone}});
    world.create(Resource::namespaces(), "", namespace).await;
    let binding = json!({"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}});
    world
        .create(Resource::managed_cluster_set_bindings(), NAMESPACE, binding)
        .await;
    let seen = world.watch().await;
    for placement in PLACEMENTS {
        let selector = json!({"labelSelector": {"matchLabels": {"selected": "yes"}}});
        let mut spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
        if placement != "all" {
            spec["decisionStrategy"] = json!({"groupStrategy": {"clustersPerDecisionGroup": 7}});
        }
        if placement == "some" {
            spec["numberOfClusters"] = json!(WANTED);
        }
        let object = json!({"metadata": {"name": placement}, "spec": spec});
        world.create(Resource::placements(), NAMESPACE, object).await;
    }
    let mut selected: BTreeSet<usize> = (0..CLUSTERS).collect();
    let names = |selected: &BTreeSet<usize>| -> Vec<String> { selected.iter().map(|n| name(*n)).collect() };
    until("all are selected", || seen.lock().is(&names(&selected))).await;
    {
        let mut seen = seen.lock();
        let steady: BTreeSet<String> = (0..CLUSTERS).filter(|n| !comes_and_goes(*n)).map(name).collect();
        for placement in PLACEMENTS {
            let named: BTreeSet<String> = seen.named(placement).into_iter().collect();
            seen.stay.insert(placement, &named & &steady);
        }
        seen.events = 0;
    }

    let mut dice = Dice(7);
    for change in 0..CHANGES {
        match dice.below(6) {
            0 => {
                let placement = PLACEMENTS[1 + dice.below(2)];
                let size = [json!(3), json!("10%"), json!(50), json!("34%")][dice.below(4)].clone();
                let path = Resource::placements().object(NAMESPACE, placement);
                let strategy = json!({"groupStrategy": {"clustersPerDecisionGroup": size}});
                world
                    .patch(&path, json!({"spec": {"decisionStrategy": strategy}}))
                    .await;
            }
            _ => {
                let number = 3 * dice.below(CLUSTERS / 3);
                if !selected.remove(&number) {
                    selected.insert(number);
                }
                world.select(number, selected.contains(&number)).await;
            }
        }
        if change == CHANGES / 2 {
            // In the midst of it: what is half written is taken up by the next.
            control.stop().await;
            control = world.control().await;
        }
        // So that some changes come while decisions are written, and some together.
        tokio::time::sleep(Duration::from_millis(dice.below(9) as u64)).await;
    }
    until("what is selected in the end", || {
        seen.lock().is(&names(&selected))
    })
    .await;
    until("nothing is left to do", || control.idle()).await;
    control.stop().await;
    let seen = seen.lock();
    assert!(seen.is(&names(&selected)), "it was right, and did not stay so");
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    // One that sees little proves little.
    assert!(seen.events > CHANGES, "{} events", seen.events);
}
