//! The same on a real kube-apiserver, which is hub and member at once. No controllers run there: no token Secret is filled, and
//! a namespace that is deleted never goes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockgate_hub::clusters::join::{JoinRequest, join_member};
use lockgate_hub::events::EventOptions;
use lockgate_hub::{
    Clock, Clusters, ClustersOptions, DeleteOptions, Events, Guard, Link, LinkError, Metrics, Resource,
    SecretConnector,
};
use serde_json::Value;

use crate::harness::{bounded, condition, create, get, until, widgets};

/// What the scripts exit with when the server cannot be obtained here.
const UNAVAILABLE: i32 = 77;

/// A real server; it ends when this is dropped.
struct Real(tempfile::TempDir);

impl Real {
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        match script("start", directory.path()) {
            Some(0) => Some(Self(directory)),
            Some(UNAVAILABLE) => None,
            code => panic!("real/start ended with {code:?}"),
        }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        script("stop", self.0.path());
    }
}

fn script(name: &str, directory: &Path) -> Option<i32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../real")
        .join(name);
    Command::new(path).arg(directory).status().unwrap().code()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_joins_itself_and_leaves() {
    let Some(real) = tokio::task::spawn_blocking(Real::start).await.unwrap() else {
        #[allow(clippy::print_stderr, reason = "nothing was checked, and that must be seen")]
        {
            eprintln!("SKIPPED: a real kube-apiserver cannot be had here (see real/README.md)");
        }
        return;
    };
    let kubeconfig = Kubeconfig::read_from(real.0.path().join("kubeconfig")).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    let request = JoinRequest {
        name: "self".into(),
        endpoint: config.cluster_url.to_string(),
        ca_bundle: config.root_cert.as_deref().map(to_pem),
        token_patience: Duration::from_millis(200),
        ..JoinRequest::default()
    };
    let link = Link::new(kube::Client::try_from(config).unwrap());
    bounded(join_and_leave(&link, &request)).await;
}

async fn join_and_leave(link: &Link, request: &JoinRequest) {
    for definition in lockgate_api::definitions::crds() {
        let name = &definition["metadata"]["name"];
        if name == "clusters.cluster.karmada.io" || name == "works.work.karmada.io" {
            create(link, definition).await;
        }
    }
    for resource in [Resource::clusters(), Resource::works()] {
        until(|| async { link.get(&resource.collection("")).await.is_ok() }).await;
    }
    let clock = Clock::manual(Timestamp::now());
    let events = Events::start(link, &clock, Arc::new(Metrics::new()), &EventOptions::default());
    let clusters = Clusters::start(ClustersOptions {
        hub: link.clone(),
        connector: Arc::new(SecretConnector),
        clock: clock.clone(),
        guard: Guard::always(),
        events,
        metrics: Arc::new(Metrics::new()),
        works: Arc::new(|_| Some(0)),
        taint_policies: Arc::new(|| None),
        on_change: Arc::new(|_| {}),
        thresholds: Default::default(),
    });
    let joined = join_member(link, link, request, &mut |_| {}).await.unwrap();
    assert!(joined.token_until.is_some(), "nobody fills token Secrets here");
    let cluster = || async {
        get(link, &Resource::clusters(), "", "self")
            .await
            .unwrap_or(Value::Null)
    };
    until(|| async { condition(&cluster().await, "Ready")["status"] == "True" }).await;
    let settled = cluster().await;
    assert_eq!(
        condition(&settled, "CompleteAPIEnablements")["reason"],
        "Complete"
    );
    assert!(
        settled["status"]["apiEnablements"]
            .to_string()
            .contains("Deployment")
    );
    assert_eq!(settled["status"]["nodeSummary"], serde_json::json!({}));

    // Probes of a member that is the same write nothing; the event of its execution namespace is not the Cluster.
    for _ in 0..12 {
        clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        cluster().await["metadata"]["resourceVersion"],
        settled["metadata"]["resourceVersion"]
    );
    create(link, widgets()).await;
    until(|| async {
        clock.advance(Duration::from_secs(10));
        cluster().await["status"]["apiEnablements"]
            .to_string()
            .contains("Widget")
    })
    .await;

    let path = Resource::clusters().object("", "self");
    link.delete(&path, &DeleteOptions::default()).await.unwrap();
    until(|| async {
        clock.advance(Duration::from_secs(2));
        cluster().await == Value::Null
    })
    .await;
    let secret = link
        .get(&Resource::secrets().object("karmada-cluster", "self"))
        .await;
    assert_eq!(secret, Err(LinkError::NotFound));
    let space = get(link, &Resource::namespaces(), "", "karmada-es-self")
        .await
        .unwrap();
    assert!(space["metadata"]["deletionTimestamp"].is_string());
    drop(clusters);
}

fn to_pem(certificates: &[Vec<u8>]) -> String {
    let block = |der: &Vec<u8>| {
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            BASE64_STANDARD.encode(der)
        )
    };
    certificates.iter().map(block).collect()
}
