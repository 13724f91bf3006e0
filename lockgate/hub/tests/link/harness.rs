//! A server, links to it by either way, and faults on those links.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::Config;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockgate_hub::{Change, Clock, Following, Link, Resource, follow};
use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::faults::Faults;

/// Nothing in these tests takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Declares each named `async fn(Server)` as two tests: one in process on one thread, one over TLS on two.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod in_process {
            $(#[tokio::test]
            async fn $name() {
                use crate::harness::{Server, bounded};
                bounded(async { super::$name(Server::in_process(|_| {}).await).await }).await;
            })+
        }
        mod over_tls {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use crate::harness::{Server, bounded};
                bounded(async { super::$name(Server::over_tls().await).await }).await;
            })+
        }
    };
}

/// The result of a test that must not hang.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test)
        .await
        .expect("the test hangs")
}

/// A server, and an administrator's link to it.
pub(crate) struct Server {
    pub(crate) server: ApiServer,
    pub(crate) link: Link,
    /// How it is reached over TLS, if it is.
    pub(crate) config: Option<Config>,
    /// Keeps the server on loopback.
    _listening: Option<Listening>,
}

impl Server {
    /// A server in this process, whose options are changed.
    pub(crate) async fn in_process(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new(Arc::new(Pki::ephemeral().unwrap()));
        change(&mut options);
        let server = ApiServer::start(options).await.unwrap();
        let client = kube::Client::new(server.as_user(admin()), "default");
        Self {
            link: Link::new(client),
            server,
            config: None,
            _listening: None,
        }
    }

    /// A link of the administrator's through faults.
    pub(crate) fn faulty(&self) -> (Link, Faults) {
        let faults = Faults::default();
        let client = kube::Client::new(faults.on(self.server.as_user(admin())), "default");
        (Link::new(client), faults)
    }

    /// Creates an object.
    pub(crate) async fn make(&self, resource: &Resource, object: Value) -> Value {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let body = object.to_string().into_bytes();
        let made = self
            .link
            .create(&resource.collection(namespace), body)
            .await
            .unwrap();
        serde_json::from_slice(&made).unwrap()
    }

    /// A server on loopback.
    pub(crate) async fn over_tls() -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let server = ApiServer::start(Options::new(pki.clone())).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listening = server.listen(listener, pki.server_config()).unwrap();
        let (certificate, key) = pki.client_cert("admin", &["system:masters"]).unwrap();
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", listening.address),
                "certificate-authority-data": BASE64_STANDARD.encode(pki.ca_pem()),
            }}],
            "users": [{"name": "it", "user": {
                "client-certificate-data": BASE64_STANDARD.encode(certificate),
                "client-key-data": BASE64_STANDARD.encode(key),
            }}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }))
        .unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        config.default_retry = false;
        Self {
            link: Link::new(ClientBuilder::try_from(config.clone()).unwrap().build()),
            server,
            config: Some(config),
            _listening: Some(listening),
        }
    }
}

pub(crate) fn admin() -> UserInfo {
    UserInfo::new("admin", ["system:masters"]).authenticated()
}

/// A ConfigMap in `default` with one entry, `v`.
pub(crate) fn config_map(name: &str, v: &str) -> Vec<u8> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "it"}}, "data": {"v": v}});
    serde_json::to_vec(&object).unwrap()
}

/// The machine's time.
pub(crate) fn clock() -> Clock {
    Clock::real()
}

/// ConfigMaps with the label of [`config_map`], as they are followed, and what was told of them.
pub(crate) struct Told {
    pub(crate) following: Following,
    pub(crate) log: watch::Receiver<Vec<String>>,
}

impl Told {
    pub(crate) fn follow(link: &Link) -> Self {
        let (sender, log) = watch::channel(Vec::new());
        let following = follow(
            link,
            &Resource::config_maps(),
            "",
            Some("app=it"),
            move |change: &Change| sender.send_modify(|log| log.push(describe(change))),
        );
        Self { following, log }
    }

    /// Waits until this was the last that was told, and gives all that was told.
    pub(crate) async fn until(&mut self, last: &str) -> Vec<String> {
        let log = self
            .log
            .wait_for(|log| log.last().is_some_and(|l| l == last))
            .await;
        log.unwrap().clone()
    }

    /// Waits until everything up to the server's present was told, and gives all that was told.
    pub(crate) async fn until_now(&mut self, server: &ApiServer) -> Vec<String> {
        let now = server.revision();
        while self.following.cache.seen_version() < now {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.log.borrow().clone()
    }
}

/// `+name=v`, `name=old>new` or `-name`.
fn describe(change: &Change) -> String {
    let v = |cached: &lockgate_hub::Cached| {
        let value: Value = cached.parse().unwrap();
        assert_eq!(value["kind"], "ConfigMap");
        assert_eq!(value["apiVersion"], "v1");
        assert!(value["metadata"]["managedFields"].is_null());
        value["data"]["v"].as_str().unwrap().to_owned()
    };
    match (&change.old, &change.new) {
        (None, Some(new)) => format!("+{}={}", new.key.name, v(new)),
        (Some(old), Some(new)) => format!("{}={}>{}", new.key.name, v(old), v(new)),
        (Some(old), None) => format!("-{}", old.key.name),
        (None, None) => panic!("nothing changed"),
    }
}
