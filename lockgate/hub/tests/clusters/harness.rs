//! A hub with its definitions, members behind switches that break them, and the reconciler of Clusters between the two.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::client::Body;
use lockgate_api::Cluster;
use lockgate_engine::cluster::Thresholds;
use lockgate_hub::clusters::join::{JoinError, JoinRequest, Joined, join_member};
use lockgate_hub::events::EventOptions;
use lockgate_hub::{
    Clock, ClusterChange, Clusters, ClustersOptions, ConnectError, Connector, Events, Guard, Link, LinkError,
    Metrics, Resource, SecretConnector,
};
use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::{Pki, UserInfo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service as _;

/// Nothing in these tests takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

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

pub(crate) fn admin() -> UserInfo {
    UserInfo::new("admin", ["system:masters"]).authenticated()
}

/// How a member misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    Refuse,
    Hang,
    Unhealthy,
}

/// An API server that listens, with a switch in front of those who reach it in process.
pub(crate) struct Server {
    pub(crate) api: ApiServer,
    pub(crate) pki: Arc<Pki>,
    pub(crate) listening: Listening,
    pub(crate) link: Link,
    pub(crate) fault: Arc<Mutex<Fault>>,
    /// How often health was asked for in process.
    pub(crate) probes: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let mut options = Options::new(pki.clone());
        change(&mut options);
        let api = ApiServer::start(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listening = api.listen(listener, pki.server_config()).unwrap();
        let link = Link::new(kube::Client::new(api.as_user(admin()), "default"));
        Self {
            api,
            pki,
            listening,
            link,
            fault: Arc::default(),
            probes: Arc::default(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.listening.address)
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock() = fault;
    }

    /// A client in process, behind the switch.
    fn client(&self) -> kube::Client {
        let (service, fault, probes) = (self.api.as_user(admin()), self.fault.clone(), self.probes.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (mut service, fault) = (service.clone(), *fault.lock());
            let health = request.uri().path() == "/readyz";
            if health {
                probes.fetch_add(1, Ordering::SeqCst);
            }
            async move {
                match fault {
                    Fault::Refuse => return Err(std::io::Error::other("switched off")),
                    Fault::Hang => std::future::pending::<()>().await,
                    Fault::Unhealthy if health => {
                        let body = machinery_apiserver::Body::full("etcd failed");
                        let mut answer = http::Response::new(body);
                        *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                        return Ok(answer);
                    }
                    _ => {}
                }
                service.call(request).await.map_err(|never| match never {})
            }
        });
        kube::Client::new(service, "default")
    }

    pub(crate) fn request(&self, name: &str) -> JoinRequest {
        JoinRequest {
            name: name.into(),
            endpoint: self.url(),
            ca_bundle: Some(self.pki.ca_pem().into()),
            token_patience: Duration::from_secs(30),
            ..JoinRequest::default()
        }
    }
}

/// Reaches members in process by their names; any other way fails.
#[derive(Default)]
struct Switched(Mutex<BTreeMap<String, kube::Client>>);

impl Connector for Switched {
    fn connect<'a>(
        &'a self,
        cluster: &'a Cluster,
        _: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let client = self.0.lock().get(&cluster.metadata.name).cloned();
        Box::pin(async move { client.ok_or(ConnectError::NoEndpoint) })
    }
}

/// The hub and the reconciler.
pub(crate) struct World {
    pub(crate) hub: Server,
    pub(crate) clock: Clock,
    pub(crate) clusters: Clusters,
    pub(crate) events: Events,
    pub(crate) changes: Arc<Mutex<Vec<ClusterChange>>>,
    /// How many Works the reconciler is told are left; none is not known.
    pub(crate) works: Arc<Mutex<Option<usize>>>,
    members: Option<Arc<Switched>>,
}

impl World {
    /// Members are reached in process, behind their switches.
    pub(crate) async fn switched() -> Self {
        let members = Arc::new(Switched::default());
        Self::start(
            Server::start().await,
            Timestamp::now(),
            members.clone(),
            Some(members),
        )
        .await
    }

    /// Members are reached over TLS, by their Secrets.
    pub(crate) async fn over_tls(now: Timestamp) -> Self {
        Self::start(Server::start().await, now, Arc::new(SecretConnector), None).await
    }

    async fn start(
        hub: Server,
        now: Timestamp,
        connector: Arc<dyn Connector>,
        members: Option<Arc<Switched>>,
    ) -> Self {
        let wanted = ["clusters.cluster.karmada.io", "works.work.karmada.io"];
        for definition in lockgate_api::definitions::crds() {
            if wanted.iter().any(|name| definition["metadata"]["name"] == *name) {
                create(&hub.link, definition).await;
            }
        }
        Self::run(hub, Clock::manual(now), connector, members)
    }

    fn run(hub: Server, clock: Clock, connector: Arc<dyn Connector>, members: Option<Arc<Switched>>) -> Self {
        let metrics = Arc::new(Metrics::new());
        let events = Events::start(&hub.link, &clock, metrics.clone(), &EventOptions::default());
        let changes: Arc<Mutex<Vec<ClusterChange>>> = Arc::default();
        let works = Arc::new(Mutex::new(Some(0)));
        let clusters = Clusters::start(ClustersOptions {
            hub: hub.link.clone(),
            connector,
            clock: clock.clone(),
            guard: Guard::always(),
            events: events.clone(),
            metrics,
            works: {
                let works = works.clone();
                Arc::new(move |_| *works.lock())
            },
            taint_policies: Arc::new(|| None),
            on_change: {
                let changes = changes.clone();
                Arc::new(move |change| changes.lock().push(change.clone()))
            },
            thresholds: Thresholds::default(),
        });
        Self {
            hub,
            clock,
            clusters,
            events,
            changes,
            works,
            members,
        }
    }

    /// The reconciler starts again, with an empty memory.
    pub(crate) fn restarted(self) -> Self {
        let members = self.members.expect("members behind switches");
        drop(self.clusters);
        Self::run(self.hub, self.clock, members.clone(), Some(members))
    }

    /// Lets a member join and waits until it is ready.
    pub(crate) async fn join(&self, member: &Server, name: &str) -> Joined {
        let joined = self.try_join(member, &member.request(name)).await.unwrap();
        self.until_ready(name, "True").await;
        joined
    }

    pub(crate) async fn try_join(&self, member: &Server, request: &JoinRequest) -> Result<Joined, JoinError> {
        if let Some(members) = &self.members {
            members.0.lock().insert(request.name.clone(), member.client());
        }
        join_member(&self.hub.link, &member.link, request, &mut |_| {}).await
    }

    pub(crate) async fn cluster(&self, name: &str) -> Value {
        get(&self.hub.link, &Resource::clusters(), "", name)
            .await
            .unwrap_or(Value::Null)
    }

    /// Waits until `Ready` has this status.
    pub(crate) async fn until_ready(&self, name: &str, status: &str) {
        until(|| async { condition(&self.cluster(name).await, "Ready")["status"] == status }).await;
    }

    /// Ten seconds pass, and the member's probe that is then due is over.
    pub(crate) async fn tick(&self, member: &Server) {
        let before = member.probes.load(Ordering::SeqCst);
        // The task may not have gone to sleep yet, and then sleeps from a later time on.
        until(|| async {
            self.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
            member.probes.load(Ordering::SeqCst) > before
        })
        .await;
    }

    /// The messages of the events of a reason.
    pub(crate) async fn said(&self, reason: &str) -> Vec<String> {
        let body = self
            .hub
            .link
            .get("/api/v1/namespaces/default/events")
            .await
            .unwrap();
        let list: Value = serde_json::from_slice(&body).unwrap();
        let of_reason = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["reason"] == reason);
        of_reason
            .map(|event| event["message"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn told(&self, change: &ClusterChange) -> usize {
        self.changes.lock().iter().filter(|told| *told == change).count()
    }
}

pub(crate) fn condition(cluster: &Value, kind: &str) -> Value {
    let conditions = cluster["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == kind)
        .unwrap_or(Value::Null)
}

pub(crate) async fn get(link: &Link, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
    match link.get(&resource.object(namespace, name)).await {
        Ok(body) => Some(serde_json::from_slice(&body).unwrap()),
        Err(LinkError::NotFound) => None,
        Err(error) => panic!("{resource} {namespace}/{name}: {error}"),
    }
}

/// Creates an object of any kind, wherever it belongs.
pub(crate) async fn create(link: &Link, object: Value) -> Value {
    let discovery = lockgate_hub::discover(link).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = discovery
        .get(&text(&object["apiVersion"]), &text(&object["kind"]))
        .unwrap_or_else(|| panic!("not served: {object}"));
    let collection = resource.collection(&text(&object["metadata"]["namespace"]));
    let body = link
        .create(&collection, object.to_string().into_bytes())
        .await
        .unwrap_or_else(|error| panic!("{} {}: {error}", object["kind"], object["metadata"]));
    serde_json::from_slice(&body).unwrap()
}

pub(crate) async fn patch(link: &Link, path: &str, patch: Value) {
    link.merge_patch(path, patch.to_string().into_bytes())
        .await
        .unwrap();
}

pub(crate) fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// A definition of a kind, `widgets.example.com`.
pub(crate) fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}
