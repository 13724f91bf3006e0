use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use lockgate_hub::events::EventOptions;
use lockgate_hub::{Clock, Clusters, ClustersOptions, Events, Guard, Metrics, SecretConnector};
use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

use super::*;

/// A hub and a member on loopback with their kubeconfigs.
pub(crate) struct Fleet {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) hub: Link,
    pub(crate) member: Link,
    _servers: [(ApiServer, Listening); 2],
}

impl Fleet {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (hub, hub_server) = server(&directory, "hub").await;
        let (member, member_server) = server(&directory, "member").await;
        let wanted = ["clusters.cluster.karmada.io", "works.work.karmada.io"];
        for definition in lockgate_api::definitions::crds() {
            if wanted.iter().any(|name| definition["metadata"]["name"] == *name) {
                let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                hub.create(path, definition.to_string().into_bytes())
                    .await
                    .unwrap();
            }
        }
        Self {
            directory,
            hub,
            member,
            _servers: [hub_server, member_server],
        }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Controllers that probe members and see no Works.
    pub(crate) fn controllers(&self) -> Clusters {
        let clock = Clock::real();
        let metrics = Arc::new(Metrics::new());
        Clusters::start(ClustersOptions {
            hub: self.hub.clone(),
            connector: Arc::new(SecretConnector),
            events: Events::start(&self.hub, &clock, metrics.clone(), &EventOptions::default()),
            metrics,
            clock,
            guard: Guard::always(),
            works: Arc::new(|_| Some(0)),
            taint_policies: Arc::new(|| None),
            on_change: Arc::new(|_| {}),
            thresholds: Default::default(),
        })
    }

    pub(crate) async fn join(&self, name: &str, more: &[&str]) -> Result<ExitCode, Failure> {
        let (hub, member) = (self.file("hub"), self.file("member"));
        let mut words = vec!["join", name, "--kubeconfig", &hub];
        if !more.contains(&"--member-kubeconfig") {
            words.extend(["--member-kubeconfig", &member]);
        }
        words.extend(more);
        join(&parse(&words)).await
    }

    pub(crate) async fn cluster(&self, name: &str) -> Value {
        let body = self
            .hub
            .get(&Resource::clusters().object("", name))
            .await
            .unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

async fn server(directory: &tempfile::TempDir, name: &str) -> (Link, (ApiServer, Listening)) {
    let pki = Arc::new(Pki::ephemeral().unwrap());
    let server = ApiServer::start(Options::new(pki.clone())).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listening = server.listen(listener, pki.server_config()).unwrap();
    let (certificate, key) = pki.client_cert("admin", &["system:masters"]).unwrap();
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {
            "server": format!("https://{}", listening.address), "certificate-authority-data": encode(pki.ca_pem())}}],
        "users": [{"name": name, "user": {
            "client-certificate-data": encode(&certificate), "client-key-data": encode(&key)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    });
    std::fs::write(directory.path().join(name), config.to_string()).unwrap();
    let user = UserInfo::new("admin", ["system:masters"]).authenticated();
    let link = Link::new(kube::Client::new(server.as_user(user), "default"));
    (link, (server, listening))
}

fn parse(words: &[&str]) -> JoinArguments {
    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        join: JoinArguments,
    }
    Whole::try_parse_from(words).unwrap().join
}

fn words(failure: Result<ExitCode, Failure>) -> (String, bool) {
    let failure = failure.unwrap_err();
    (failure.to_string(), matches!(failure, Failure::Usage(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_joins_once_and_is_ready() {
    let fleet = Fleet::start().await;
    let controllers = fleet.controllers();
    let more = [
        "--labels",
        "tier=gold,env=prod",
        "--region",
        "north",
        "--zone",
        "a,b",
    ];
    fleet.join("m1", &more).await.unwrap();
    let cluster = fleet.cluster("m1").await;
    assert_eq!(
        cluster["metadata"]["labels"],
        json!({"tier": "gold", "env": "prod"})
    );
    assert_eq!(cluster["spec"]["zones"], json!(["a", "b"]));
    assert!(cluster["spec"].get("insecureSkipTLSVerification").is_none());
    assert!(controllers.link("m1").is_some());
    let (said, _) = words(fleet.join("m2", &[]).await);
    assert!(said.contains("has joined already, as \"m1\""), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_controllers_the_cluster_is_there_and_the_command_says_why_it_is_not_ready() {
    let fleet = Fleet::start().await;
    let (said, usage) = words(fleet.join("m1", &["--timeout", "1"]).await);
    assert!(
        said.contains("m1 has joined, but is not ready after 1 s"),
        "{said}"
    );
    assert!(said.contains("does `lockgate controller` run?"), "{said}");
    assert!(!usage);
    assert_eq!(fleet.cluster("m1").await["spec"]["syncMode"], "Push");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_before_anything_is_made() {
    let fleet = Fleet::start().await;
    let nobody = PathBuf::from(fleet.file("nobody"));
    let text = std::fs::read_to_string(fleet.file("member")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    std::fs::write(&nobody, config.to_string()).unwrap();
    let nobody = nobody.display().to_string();
    let long = "m".repeat(49);
    let cases: [(&str, Vec<&str>, &str, bool); 7] = [
        (&long, vec![], "has 49 characters: at most 48 are possible", true),
        ("M1", vec![], "the name \"M1\"", true),
        (
            "m1",
            vec!["--member-context", "nowhere"],
            "no context \"nowhere\"; there are member",
            true,
        ),
        (
            "m1",
            vec!["--member-kubeconfig", "/nowhere"],
            "failed to read /nowhere",
            true,
        ),
        (
            "m1",
            vec!["--endpoint", "nonsense"],
            "\"nonsense\" is no URL",
            true,
        ),
        ("m1", vec!["--labels", "a=1,a=2"], "given twice", true),
        (
            "m1",
            vec!["--member-kubeconfig", &nobody],
            "failed to reach the member at https://127.0.0.1:1",
            false,
        ),
    ];
    for (name, more, expected, is_usage) in cases {
        let (said, usage) = words(fleet.join(name, &more).await);
        assert!(said.contains(expected), "{said}");
        assert_eq!(usage, is_usage, "{said}");
    }
    let account = "/api/v1/namespaces/karmada-cluster/serviceaccounts/lockgate-m1";
    assert_eq!(fleet.member.get(account).await, Err(LinkError::NotFound));
}

#[test]
fn certificates_are_written_as_they_were_read() {
    let pki = Pki::ephemeral().unwrap();
    let text: String = pki
        .ca_pem()
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let der = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    assert_eq!(to_pem(&[der]).trim(), pki.ca_pem().replace('\r', "").trim());
}
