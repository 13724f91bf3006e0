//! The same against a real kube-apiserver, where one can be had.

use std::path::PathBuf;
use std::process::Command;

use kube::Config;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockgate_hub::Link;

use crate::harness::bounded;

/// What `real/` scripts exit with when the server cannot be obtained here.
const UNAVAILABLE: i32 = 77;

/// A server that ends with this.
struct Real(tempfile::TempDir);

impl Drop for Real {
    fn drop(&mut self) {
        // Nothing is left to do if it does not stop.
        let _ = script("stop").arg(self.0.path()).output();
    }
}

fn script(name: &str) -> Command {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "real", name]
        .iter()
        .collect();
    Command::new(path)
}

fn start() -> Option<Real> {
    if script("get").output().unwrap().status.code() == Some(UNAVAILABLE) {
        return None;
    }
    let real = Real(tempfile::tempdir().unwrap());
    let output = script("start").arg(real.0.path()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(real)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_is_no_different() {
    let Some(real) = start() else {
        eprintln!(
            "SKIPPED: a real kube-apiserver cannot be had here (see real/README.md); nothing was checked"
        );
        return;
    };
    let kubeconfig = Kubeconfig::read_from(real.0.path().join("kubeconfig")).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    let link = Link::new(ClientBuilder::try_from(config).unwrap().build());
    bounded(async {
        crate::errors::check(&link).await;
        crate::follows::check(&link).await;
        crate::discovers::check(&link).await;
        crate::elects::check(&link).await;
        crate::events::check(&link).await;
    })
    .await;
}
