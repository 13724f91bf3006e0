//! A server, a kube client of it by either way, and what the client asked for.

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Client, Config};
use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::{Pki, UserInfo};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::util::MapRequestLayer;

/// Nothing in these tests takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Declares each named `async fn(Cluster)` as two tests: one in process on one thread, one over TLS on two.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod in_process {
            $(#[tokio::test]
            async fn $name() {
                use crate::harness::{Cluster, Way, bounded};
                bounded(async { super::$name(Cluster::start(Way::InProcess).await).await }).await;
            })+
        }
        mod over_tls {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use crate::harness::{Cluster, Way, bounded};
                bounded(async { super::$name(Cluster::start(Way::OverTls).await).await }).await;
            })+
        }
    };
}

/// How a client reaches its server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    InProcess,
    OverTls,
}

/// A server, and an administrator's client of it.
pub(crate) struct Cluster {
    pub(crate) way: Way,
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    /// What the administrator's client asked for.
    pub(crate) requests: Requests,
    link: Link,
    listening: Option<Listening>,
}

impl Cluster {
    pub(crate) async fn start(way: Way) -> Self {
        Self::with(way, |_| {}).await
    }

    /// A server whose options are changed.
    pub(crate) async fn with(way: Way, change: impl FnOnce(&mut Options)) -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let mut options = Options::new(pki.clone());
        change(&mut options);
        let server = ApiServer::start(options).await.unwrap();
        let listening = match way {
            Way::InProcess => None,
            Way::OverTls => Some(listen(&server, &pki, "127.0.0.1:0".parse().unwrap()).await),
        };
        let link = Link {
            server: server.clone(),
            pki: pki.clone(),
            address: listening.as_ref().map(|l| l.address),
        };
        let requests = Requests::default();
        Self {
            way,
            client: link.client("admin", &["system:masters"], requests.clone()).await,
            server,
            requests,
            link,
            listening,
        }
    }

    /// A client of another user.
    pub(crate) async fn client_of(&self, user: &str, groups: &[&str]) -> Client {
        self.link.client(user, groups, Requests::default()).await
    }

    /// What a kubeconfig with these credentials says; only over TLS.
    pub(crate) async fn config(&self, credentials: Value) -> Config {
        self.link.config(credentials).await
    }

    /// Cuts all connections and accepts new ones at the same address; only over TLS.
    pub(crate) async fn reconnect(&mut self) {
        self.listening = None;
        let address = self.link.address.unwrap();
        self.listening = Some(listen(&self.server, &self.link.pki, address).await);
    }
}

/// What it takes to reach a server.
struct Link {
    server: ApiServer,
    pki: Arc<Pki>,
    /// Where it listens, if not in this process.
    address: Option<SocketAddr>,
}

impl Link {
    async fn client(&self, user: &str, groups: &[&str], requests: Requests) -> Client {
        let note = MapRequestLayer::new(move |request: http::Request<Body>| {
            requests.note(&request);
            request
        });
        if self.address.is_none() {
            let user = UserInfo::new(user, groups.iter().copied()).authenticated();
            let builder = ClientBuilder::new(self.server.as_user(user), "default");
            return builder.with_layer(&note).build();
        }
        let (certificate, key) = self.pki.client_cert(user, groups).unwrap();
        let config = self
            .config(json!({
                "client-certificate-data": BASE64_STANDARD.encode(certificate),
                "client-key-data": BASE64_STANDARD.encode(key),
            }))
            .await;
        ClientBuilder::try_from(config).unwrap().with_layer(&note).build()
    }

    async fn config(&self, credentials: Value) -> Config {
        let kubeconfig: Kubeconfig = parse(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", self.address.unwrap()),
                "certificate-authority-data": BASE64_STANDARD.encode(self.pki.ca_pem()),
            }}],
            "users": [{"name": "it", "user": credentials}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": "default"}}],
        }));
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        // A refusal is a result here, not something to try again.
        config.default_retry = false;
        config
    }
}

async fn listen(server: &ApiServer, pki: &Pki, address: SocketAddr) -> Listening {
    // The former listener's task lets go of its port soon after it was told to.
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    server.listen(listener, pki.server_config()).unwrap()
}

/// What a client asked for so far: `METHOD path?query`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(watch::Sender<Vec<String>>);

impl Requests {
    fn note(&self, request: &http::Request<Body>) {
        self.0
            .send_modify(|all| all.push(format!("{} {}", request.method(), request.uri())));
    }

    /// The requests that contain `part`.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        let all = self.0.borrow();
        all.iter().filter(|r| r.contains(part)).cloned().collect()
    }

    /// Waits until there were `count` requests that contain `part`.
    pub(crate) async fn reach(&self, count: usize, part: &str) {
        let enough = |all: &Vec<String>| all.iter().filter(|r| r.contains(part)).count() >= count;
        self.0.subscribe().wait_for(enough).await.unwrap();
    }
}

/// The result of a test that must not hang.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test)
        .await
        .expect("the test hangs")
}

/// An object from its JSON.
pub(crate) fn parse<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The server's refusal.
#[track_caller]
pub(crate) fn refusal<T: Debug>(result: Result<T, kube::Error>) -> Status {
    match result.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("not an answer of the server: {other:?}"),
    }
}

/// A ConfigMap with one entry, `v`.
pub(crate) fn config_map(name: &str, v: &str) -> k8s_openapi::api::core::v1::ConfigMap {
    parse(json!({"metadata": {"name": name}, "data": {"v": v}}))
}

/// A ConfigMap with a label, `app`.
pub(crate) fn labelled(name: &str, app: &str) -> k8s_openapi::api::core::v1::ConfigMap {
    parse(json!({"metadata": {"name": name, "labels": {"app": app}}}))
}

/// A Deployment with two containers, `web` and `log`.
pub(crate) fn deployment(name: &str) -> k8s_openapi::api::apps::v1::Deployment {
    parse(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [
                    {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
                    {"name": "log", "image": "log:1"},
                ]},
            },
        },
    }))
}

/// A Pod with one container.
pub(crate) fn pod(name: &str) -> k8s_openapi::api::core::v1::Pod {
    parse(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }))
}
