//! `lockgate controller` as a process, and a fleet that it is ready to serve.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::api::until;
use crate::servers::Servers;

/// A running controller; killed when dropped.
pub(crate) struct Controller {
    child: Child,
}

impl Controller {
    /// Starts one. Its log goes to a file in the servers' directory, and is shown when a test fails.
    pub(crate) fn start(servers: &Servers, identity: &str, arguments: &[&str]) -> Self {
        let log = servers.directory().join(format!("{identity}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_lockgate"))
            .arg("controller")
            .arg("--kubeconfig")
            .arg(servers.kubeconfig("hub"))
            .args(["--metrics-address", "0", "--identity", identity])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Sends a signal.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        let status = Command::new("kill").args([name, &pid]).status().await.unwrap();
        assert!(status.success());
    }

    /// Ends it without any warning.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// How it ended.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await;
        ended.expect("it does not end").unwrap().code()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

/// Installs the definitions, and joins every member. A controller must be running, or start soon.
pub(crate) async fn join_all(servers: &Servers) {
    for member in servers.members() {
        let kubeconfig = servers.kubeconfig(&member);
        servers.lockgate(&[
            "join",
            &member,
            "--member-kubeconfig",
            kubeconfig.to_str().unwrap(),
        ]);
    }
    let hub = servers.api("hub").await;
    for member in servers.members() {
        until(&format!("{member} is ready"), async || {
            let cluster = hub
                .get(&format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}"))
                .await;
            cluster.is_some_and(|cluster| crate::api::has(&cluster, "Ready", "True"))
        })
        .await;
    }
}

/// Applies the definitions as the handbook says.
pub(crate) fn install(servers: &Servers) {
    let definitions = servers.lockgate(&["crds"]);
    let said = servers.kubectl("hub", &["apply", "--server-side", "-f", "-"], &definitions);
    assert!(
        said.contains("works.work.karmada.io serverside-applied"),
        "{said}"
    );
    let groups = ["crd/works.work.karmada.io", "crd/clusters.cluster.karmada.io"];
    for crd in groups {
        servers.kubectl(
            "hub",
            &["wait", "--for=condition=Established", "--timeout=60s", crd],
            "",
        );
    }
}
