//! A hub with its controllers, and members with moods.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use lockgate_api::Cluster;
use lockgate_hub::clusters::join::{JoinRequest, join_member};
use lockgate_hub::{Clock, ConnectError, Connector, Guard, Hub, HubOptions, Link};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::Service as _;

/// Nothing in these tests takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The result of a test that must not hang.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test)
        .await
        .expect("the test hangs")
}

/// Returns once the condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    while !condition().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a member does with the controllers' requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Well,
    /// Writes of ConfigMaps wait until the test has them refused with 429 and this `Retry-After`.
    Busy(Option<&'static str>),
    /// All requests wait until it is well.
    Hangs,
}

/// A member.
pub(crate) struct Member {
    name: &'static str,
    server: ApiServer,
    link: Link,
    /// The mood, and how often those who wait were refused.
    mood: watch::Sender<(Mood, u64)>,
    waiting: watch::Sender<Waiting>,
}

/// The writes of ConfigMaps that wait.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    now: usize,
    most: usize,
    /// How many ever did.
    ever: usize,
    /// How many of them were seen by the test.
    seen: usize,
}

/// One of them, until it is dropped.
struct Place(watch::Sender<Waiting>);

impl Place {
    fn take(waiting: &watch::Sender<Waiting>) -> Self {
        waiting.send_modify(|waiting| {
            waiting.now += 1;
            waiting.ever += 1;
            waiting.most = waiting.most.max(waiting.now);
        });
        Self(waiting.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| waiting.now -= 1);
    }
}

impl Member {
    async fn start(name: &'static str, pki: Arc<Pki>) -> Arc<Self> {
        let server = ApiServer::start(Options::new(pki)).await.unwrap();
        Arc::new(Self {
            name,
            link: Link::new(client(&server)),
            server,
            mood: watch::Sender::new((Mood::Well, 0)),
            waiting: watch::Sender::default(),
        })
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.mood.send_modify(|(now, _)| *now = mood);
    }

    /// Refuses so many writes, as they come.
    pub(crate) async fn refuse(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let enough = waiting.borrow().seen + count;
        while self.waiting.borrow().seen < enough {
            waiting
                .wait_for(|waiting| waiting.ever > waiting.seen)
                .await
                .unwrap();
            self.waiting.send_modify(|waiting| waiting.seen = waiting.ever);
            self.mood.send_modify(|(_, refused)| *refused += 1);
        }
    }

    /// How many writes waited at most at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.waiting.borrow().most
    }

    pub(crate) fn forget_most(&self) {
        self.waiting.send_modify(|waiting| waiting.most = waiting.now);
    }

    /// How many writes ever waited.
    pub(crate) fn asked(&self) -> usize {
        self.waiting.borrow().ever
    }

    /// The boxes that are there.
    pub(crate) async fn boxes(&self) -> BTreeSet<String> {
        let path = "/api/v1/configmaps?labelSelector=box";
        let list: Value = serde_json::from_slice(&self.link.get(path).await.unwrap()).unwrap();
        let items = list["items"].as_array().unwrap();
        let names = items.iter().map(|item| item["metadata"]["name"].as_str());
        names.map(|name| name.unwrap().to_owned()).collect()
    }

    /// Waits until the first so many boxes are there.
    pub(crate) async fn until_boxes(&self, count: usize) {
        let all: BTreeSet<String> = (0..count).map(name_of).collect();
        until(|| async { self.boxes().await == all }).await;
    }

    /// The way of the controllers to it.
    fn client(self: &Arc<Self>) -> kube::Client {
        let member = self.clone();
        let service = tower::service_fn(move |request| member.clone().answer(request));
        kube::Client::new(service, "default")
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<machinery_apiserver::Body>, Infallible> {
        let is_counted = *request.method() == Method::POST && request.uri().path().ends_with("/configmaps");
        let mut mood = self.mood.subscribe();
        let (now, _) = *mood.borrow_and_update();
        if now == Mood::Hangs || (is_counted && now != Mood::Well) {
            let _place = is_counted.then(|| Place::take(&self.waiting));
            // The sender lives as long as `self`.
            let _ = mood.changed().await;
        }
        let (now, _) = *mood.borrow();
        match now {
            Mood::Busy(retry_after) if is_counted => Ok(too_many(retry_after)),
            _ => self.server.as_user(lockgate()).call(request).await,
        }
    }
}

fn too_many(retry_after: Option<&'static str>) -> Response<machinery_apiserver::Body> {
    let mut answer = Response::builder().status(429);
    if let Some(seconds) = retry_after {
        answer = answer.header("retry-after", seconds);
    }
    answer
        .body(machinery_apiserver::Body::full("too much to do"))
        .unwrap()
}

/// Reaches members by their names.
struct Ways(Vec<(&'static str, kube::Client)>);

impl Connector for Ways {
    fn connect<'a>(
        &'a self,
        cluster: &'a Cluster,
        _: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let way = self.0.iter().find(|(name, _)| *name == cluster.metadata.name);
        let client = way.map(|(_, client)| client.clone());
        Box::pin(async move { client.ok_or(ConnectError::NoEndpoint) })
    }
}

fn lockgate() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters"]).authenticated()
}

fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.as_user(lockgate()), "default")
}

fn name_of(number: usize) -> String {
    format!("box-{number:02}")
}

/// A hub that sends every ConfigMap of the namespace `shop` to all its members.
pub(crate) struct World<const N: usize> {
    pub(crate) hub: Hub,
    pub(crate) members: [Arc<Member>; N],
    link: Link,
}

impl<const N: usize> World<N> {
    pub(crate) async fn start(names: [&'static str; N], clock: Clock) -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let server = ApiServer::start(Options::new(pki.clone())).await.unwrap();
        let link = Link::new(client(&server));
        lockgate_hub::install::install(&link).await.unwrap();
        let members = futures::future::join_all(names.map(|name| Member::start(name, pki.clone()))).await;
        for member in &members {
            let request = JoinRequest {
                name: member.name.to_owned(),
                endpoint: format!("https://{}.invalid", member.name),
                token_patience: Duration::ZERO,
                ..JoinRequest::default()
            };
            join_member(&link, &member.link, &request, &mut |_| {})
                .await
                .unwrap();
        }
        let mut options = HubOptions::new(client(&server));
        let ways = members.iter().map(|member| (member.name, member.client()));
        options.connector = Arc::new(Ways(ways.collect()));
        options.clock = clock;
        let world = Self {
            hub: Hub::start(options).await.unwrap(),
            members: members.try_into().ok().unwrap(),
            link,
        };
        world
            .create(
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            )
            .await;
        world
            .create(
                "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies",
                json!({
                    "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
                    "metadata": {"name": "boxes"},
                    "spec": {
                        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
                        "placement": {"clusterAffinity": {"clusterNames": names.as_slice()}},
                    },
                }),
            )
            .await;
        world
    }

    async fn create(&self, collection: &str, object: Value) {
        let body = object.to_string().into_bytes();
        self.link.create(collection, body).await.unwrap();
    }

    /// Makes the boxes of these numbers.
    pub(crate) async fn make_boxes(&self, numbers: Range<usize>) {
        for number in numbers {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name_of(number), "labels": {"box": "yes"}}});
            self.create("/api/v1/namespaces/shop/configmaps", object).await;
        }
    }
}
