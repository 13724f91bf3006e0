//! The order in which a hub places templates when it takes one after the other: that of their priority classes, the first time
//! and after a restart.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube::client::Body;
use lockgate_hub::{AtOnce, Hub, HubOptions, Link, Resource};
use machinery_apiserver::{ApiServer, Local, Options};
use machinery_auth::{Pki, UserInfo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Nothing in this test takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The groups of templates and the numbers of their classes, in the order in which everything about them is told: what comes
/// last in it is placed first.
const TIERS: [(&str, Option<i32>); 4] = [
    ("a-plain", None),
    ("b-low", Some(1)),
    ("c-high", Some(10)),
    ("d-higher", Some(1000)),
];
/// How many templates are in each.
const EACH: usize = 5;
/// The namespace, and the name, of a template whose binding is held up: what comes meanwhile has to queue.
const DOOR: &str = "door";

/// The way of a hub to its server.
struct Way {
    /// The templates whose bindings were written, in this order.
    written: Mutex<Vec<String>>,
    /// Whether somebody stands before the door.
    waiting: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl Way {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            written: Mutex::default(),
            waiting: watch::Sender::new(false),
            open: watch::Sender::new(false),
        })
    }

    /// The same client, on this way.
    fn of(self: &Arc<Self>, client: kube::Client) -> kube::Client {
        let way = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (way, client) = (way.clone(), client.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                way.pass(&head, &body).await;
                client.send(http::Request::from_parts(head, body.into())).await
            }
        });
        kube::Client::new(service, "default")
    }

    async fn pass(&self, head: &http::request::Parts, body: &[u8]) {
        let path = head.uri.path();
        let is_write = matches!(head.method, Method::POST | Method::PUT);
        if !is_write || !path.contains("/resourcebindings") || path.ends_with("/status") {
            return;
        }
        let binding: Value = serde_json::from_slice(body).unwrap();
        let name = binding["spec"]["resource"]["name"].as_str().unwrap().to_owned();
        if name == DOOR {
            self.waiting.send_replace(true);
            self.open.subscribe().wait_for(|open| *open).await.unwrap();
            return;
        }
        let mut written = self.written.lock();
        if !written.contains(&name) {
            written.push(name);
        }
    }

    /// Returns once somebody stands before the door.
    async fn is_waited_at(&self) {
        let mut waiting = self.waiting.subscribe();
        let _ = waiting.wait_for(|waiting| *waiting).await.unwrap();
    }

    /// Nobody has passed by yet; then all come in the order of their classes.
    async fn opens_in_order(&self) {
        assert_eq!(*self.written.lock(), [""; 0], "the door is closed");
        self.open.send_replace(true);
        assert_eq!(self.order().await, by_rank(), "the first time");
    }

    /// The groups in the order in which their templates were written, once all were.
    async fn order(&self) -> Vec<String> {
        until("all are written", || {
            self.written.lock().len() == TIERS.len() * EACH
        })
        .await;
        let written = std::mem::take(&mut *self.written.lock());
        let tiers = written
            .iter()
            .map(|name| name.rsplit_once('-').unwrap().0.to_owned());
        tiers.collect()
    }
}

/// All of the highest group, then all of the next.
fn by_rank() -> Vec<String> {
    let tiers = TIERS.iter().rev();
    tiers
        .flat_map(|(tier, _)| std::iter::repeat_n((*tier).to_owned(), EACH))
        .collect()
}

struct World {
    server: ApiServer,
    local: Local,
}

impl World {
    /// A hub with classes.
    async fn start() -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let server = ApiServer::start(Options::new(pki)).await.unwrap();
        let local = server.local(user());
        let world = Self { server, local };
        lockgate_hub::install::install(&Link::new(world.client()))
            .await
            .unwrap();
        for namespace in [DOOR, "shop"] {
            world
                .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
                .await;
        }
        for (tier, value) in TIERS {
            if let Some(value) = value {
                let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                   "metadata": {"name": tier}, "value": value});
                world.create(class).await;
            }
        }
        world
    }

    /// All templates but the one of the door; the newest version.
    async fn bring_templates(&self) -> u64 {
        let mut newest = 0;
        for (tier, _) in TIERS {
            for number in 0..EACH {
                newest = self
                    .create(deployment("shop", &format!("{tier}-{number}"), tier))
                    .await;
            }
        }
        newest
    }

    /// All policies but the one of the door; the newest version.
    async fn bring_policies(&self) -> u64 {
        let mut newest = 0;
        for (tier, value) in TIERS {
            newest = self.create(policy("shop", tier, value.map(|_| tier))).await;
        }
        newest
    }

    fn client(&self) -> kube::Client {
        kube::Client::new(self.server.as_user(user()), "default")
    }

    async fn control(&self, way: &Arc<Way>) -> Hub {
        let mut options = HubOptions::new(way.of(self.client()));
        options.at_once = AtOnce {
            walks: 1,
            ..AtOnce::OUTSIDE
        };
        Hub::start(options).await.unwrap()
    }

    /// Gives its version.
    async fn create(&self, object: Value) -> u64 {
        let created = self.local.create(object).await.unwrap();
        created["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    async fn scale(&self, name: &str, replicas: u32) {
        let mut template = self.local.get("apps/v1", "deployments", "shop", name).unwrap();
        template["spec"]["replicas"] = json!(replicas);
        self.local.update(template).await.unwrap();
    }
}

fn user() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters"]).authenticated()
}

fn deployment(namespace: &str, name: &str, tier: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"tier": tier}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}},
        },
    })
}

fn policy(namespace: &str, tier: &str, class: Option<&str>) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": tier, "namespace": namespace},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": tier}}},
            ],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    });
    if let Some(class) = class {
        policy["spec"]["schedulePriority"] =
            json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": class});
    }
    policy
}

async fn seen(hub: &Hub, resource: &Resource, version: u64) {
    let what = format!("{} are seen up to {version}", resource.plural);
    until(&what, || hub.seen(resource) >= Some(version)).await;
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("it never came to be: {what}"));
}

/// Policies come while the hub is busy; `first` is the class that the template names with which it is.
async fn they_come_in_their_order(first: Option<&str>) {
    let world = World::start().await;
    world.bring_templates().await;
    world.create(deployment(DOOR, DOOR, DOOR)).await;
    let way = Way::new();
    let hub = world.control(&way).await;
    world.create(policy(DOOR, DOOR, first)).await;
    way.is_waited_at().await;
    let newest = world.bring_policies().await;
    seen(&hub, &Resource::propagation_policies(), newest).await;
    seen(&hub, &Resource::priority_classes(), 1).await;
    way.opens_in_order().await;

    until("nothing is left to do", || hub.idle()).await;
    hub.stop().await;
    for (tier, _) in TIERS {
        for number in 0..EACH {
            world.scale(&format!("{tier}-{number}"), 3).await;
        }
    }
    let hub = world.control(&way).await;
    assert_eq!(way.order().await, by_rank(), "after a restart");
    hub.stop().await;
    world.server.stop().await;
}

#[tokio::test]
async fn the_highest_are_placed_first() {
    they_come_in_their_order(Some("d-higher")).await;
}

#[tokio::test]
async fn also_those_whose_policies_are_the_first_to_name_a_class() {
    they_come_in_their_order(None).await;
}

#[tokio::test]
async fn also_those_that_come_after_their_policies() {
    let world = World::start().await;
    world.bring_policies().await;
    let way = Way::new();
    let hub = world.control(&way).await;
    seen(&hub, &Resource::priority_classes(), 1).await;
    world.create(policy(DOOR, DOOR, None)).await;
    world.create(deployment(DOOR, DOOR, DOOR)).await;
    way.is_waited_at().await;
    let newest = world.bring_templates().await;
    let deployments = Resource::new("apps", "v1", "deployments", "Deployment", true);
    seen(&hub, &deployments, newest).await;
    way.opens_in_order().await;
    hub.stop().await;
    world.server.stop().await;
}
