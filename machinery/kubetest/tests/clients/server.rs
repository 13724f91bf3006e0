//! The server that a check talks to; it ends with the check.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::Pki;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

pub(crate) struct Server {
    _embedded: Option<(ApiServer, Listening)>,
    _real: Option<Real>,
    /// Goes last: the real server has its state there.
    directory: TempDir,
}

/// A kube-apiserver of the scripts in `real/`, stopped when this is dropped.
struct Real(PathBuf);

impl Server {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (embedded, real) = if std::env::var_os("LOCKGATE_CLIENTS_ON_REAL").is_some() {
            (None, Some(Real::start(directory.path())))
        } else {
            (Some(embedded(&directory.path().join("kubeconfig")).await), None)
        };
        Self {
            _embedded: embedded,
            _real: real,
            directory,
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }
}

/// A server in this process, and a kubeconfig of its administrator.
async fn embedded(kubeconfig: &Path) -> (ApiServer, Listening) {
    let pki = Arc::new(Pki::ephemeral().unwrap());
    let server = ApiServer::start(Options::new(pki.clone())).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listening = server.listen(listener, pki.server_config()).unwrap();
    let (certificate, key) = pki.client_cert("admin", &["system:masters"]).unwrap();
    let config = json!({
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
    });
    std::fs::write(kubeconfig, config.to_string()).unwrap();
    (server, listening)
}

impl Real {
    fn start(directory: &Path) -> Self {
        let output = script("start").arg(directory).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "real/start: {words}");
        Self(directory.to_owned())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = script("stop").arg(&self.0).output();
    }
}

fn script(name: &str) -> Command {
    Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../real")
            .join(name),
    )
}
