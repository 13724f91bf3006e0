//! An embedded hub in the test's own process, and a kubeconfig by which commands reach it.
//!
//! (A `mod.rs`, since cargo takes every other file beside the tests for a test of its own.)

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use machinery_apiserver::{ApiServer, Listening, Local, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Nothing here takes this long on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A hub, until it is dropped.
pub(crate) struct TestHub {
    pub(crate) local: Local,
    directory: TempDir,
    _server: ApiServer,
    _listening: Listening,
}

impl TestHub {
    /// A hub without our definitions.
    pub(crate) async fn bare() -> Self {
        let pki = Arc::new(Pki::ephemeral().unwrap());
        let server = ApiServer::start(Options::new(pki.clone())).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listening = server.listen(listener, pki.server_config()).unwrap();
        let (certificate, key) = pki.client_cert("admin", &["system:masters"]).unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "hub",
            "clusters": [{"name": "hub", "cluster": {
                "server": format!("https://{}", listening.address),
                "certificate-authority-data": BASE64_STANDARD.encode(pki.ca_pem()),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": BASE64_STANDARD.encode(certificate),
                "client-key-data": BASE64_STANDARD.encode(key),
            }}],
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "admin", "namespace": "shop"}}],
        });
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config"), kubeconfig.to_string()).unwrap();
        let local = server.local(UserInfo::new("admin", ["system:masters"]).authenticated());
        Self {
            local,
            directory,
            _server: server,
            _listening: listening,
        }
    }

    /// A hub with our definitions.
    pub(crate) async fn installed() -> Self {
        let hub = Self::bare().await;
        for definition in lockgate_api::definitions::definitions() {
            hub.local.create(definition).await.unwrap();
        }
        hub
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    /// A command of the binary, against this hub.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end: exit code, standard output, standard error.
    #[allow(
        dead_code,
        reason = "not every test that shares this file runs commands to their end"
    )]
    pub(crate) async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = tokio::time::timeout(PATIENCE, self.command(arguments).output())
            .await
            .expect("the command hangs")
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

/// The exit code of a process that ends soon.
#[allow(dead_code, reason = "not every test that shares this file waits")]
pub(crate) async fn ended(child: &mut Child) -> i32 {
    tokio::time::timeout(PATIENCE, child.wait())
        .await
        .expect("the process does not end")
        .unwrap()
        .code()
        .unwrap()
}

/// Waits until something is so.
#[allow(dead_code, reason = "not every test that shares this file waits")]
pub(crate) async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

/// A field of an object of the hub.
#[allow(dead_code, reason = "not every test that shares this file reads leases")]
pub(crate) fn lease_holder(hub: &TestHub) -> Option<String> {
    let lease: Value = hub.local.get(
        "coordination.k8s.io/v1",
        "leases",
        "karmada-system",
        "lockgate-controller",
    )?;
    Some(
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}
