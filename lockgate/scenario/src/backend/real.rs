//! Real kube-apiservers with etcd, by the scripts in `real/`. They are started once for a run of many scenarios, and
//! cleaned in between: everything that was not there at first is deleted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use http::Method;
use jiff::Timestamp;
use lockgate_hub::Clock;
use serde_json::{Value, json};

use super::{Backend, Embedded, Janitor};
use crate::file::Scenario;
use crate::line::Line;
use crate::plane::Plane;
use crate::server::{Problem, Server, Snapshot};
use crate::world::{Site, Watched, World};

/// What the scripts exit with when the server cannot be obtained here.
const UNAVAILABLE: i32 = 77;
/// Cleaning takes some rounds: what others hold goes only after they let go.
const ROUNDS: usize = 40;

/// Real servers.
pub struct Real {
    scripts: PathBuf,
    directory: tempfile::TempDir,
    hub: Option<Running>,
    members: BTreeMap<String, Running>,
    simulated: Embedded,
}

/// A server that runs.
struct Running {
    server: Server,
    url: String,
    authority: String,
    /// What it held before any scenario.
    first: Snapshot,
    stop: Stop,
}

/// Stops a server when it is dropped.
struct Stop {
    script: PathBuf,
    directory: PathBuf,
}

impl Drop for Stop {
    fn drop(&mut self) {
        let stopped = std::process::Command::new(&self.script)
            .arg(&self.directory)
            .output()
            .is_ok_and(|output| output.status.success());
        if !stopped {
            tracing::warn!(directory = %self.directory.display(), "a real server could not be stopped");
        }
    }
}

/// Why there are no real servers.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// They cannot be had on this machine: whoever skips for this must say so loudly.
    #[error("a real kube-apiserver cannot be had here (see real/README.md)")]
    Unavailable,
    /// Something else went wrong.
    #[error("a real kube-apiserver did not start: {0}")]
    Broken(String),
}

impl Real {
    /// Obtains the programs, which takes minutes the first time; `scripts` is where `get`, `start` and `stop` are.
    pub fn obtain(scripts: &Path) -> Result<Self, RealError> {
        let broken = |error: std::io::Error| RealError::Broken(format!("{}: {error}", scripts.display()));
        let scripts = std::fs::canonicalize(scripts).map_err(broken)?;
        call(&scripts.join("get"), None)?;
        Ok(Self {
            directory: tempfile::tempdir().map_err(broken)?,
            scripts,
            hub: None,
            members: BTreeMap::new(),
            simulated: Embedded::new(),
        })
    }

    async fn start(&self, name: &str, definitions: &[Value]) -> Result<Running, String> {
        let directory = self.directory.path().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let (script, at) = (self.scripts.join("start"), directory.clone());
        let stop = Stop {
            script: self.scripts.join("stop"),
            directory: directory.clone(),
        };
        tokio::task::spawn_blocking(move || call(&script, Some(&at)))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let read = |file: &str| {
            let path = directory.join(file);
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let server = Server::new(client(&directory.join("kubeconfig")).await?);
        for definition in definitions {
            install(&server, definition).await?;
        }
        let first = server.snapshot().await.map_err(|problem| problem.to_string())?;
        Ok(Running {
            url: read("url")?.trim().to_owned(),
            authority: read("ca.crt")?,
            server,
            first,
            stop,
        })
    }
}

async fn client(kubeconfig: &Path) -> Result<kube::Client, String> {
    let text = |error: &dyn std::fmt::Display| format!("{}: {error}", kubeconfig.display());
    let read = kube::config::Kubeconfig::read_from(kubeconfig).map_err(|error| text(&error))?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &Default::default())
        .await
        .map_err(|error| text(&error))?;
    // Watches may be silent for long.
    config.read_timeout = None;
    kube::Client::try_from(config).map_err(|error| text(&error))
}

/// Installs a definition; a kind that was installed a moment ago may not be served yet.
async fn install(server: &Server, definition: &Value) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..200 {
        match server.apply(definition).await {
            Ok(_) => return Ok(()),
            Err(problem) => last = problem.to_string(),
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    Err(format!(
        "failed to install {}: {last}",
        definition["metadata"]["name"]
    ))
}

fn call(script: &Path, directory: Option<&Path>) -> Result<(), RealError> {
    let output = std::process::Command::new(script)
        .args(directory)
        .output()
        .map_err(|error| RealError::Broken(format!("{}: {error}", script.display())))?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(UNAVAILABLE) => Err(RealError::Unavailable),
        _ => Err(RealError::Broken(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

fn site(running: &Running) -> Site {
    Site {
        server: running.server.clone(),
        line: Arc::new(Line::default()),
        endpoint: running.url.clone(),
        authority: Some(running.authority.clone()),
        watched: Watched::Real(Arc::new(Janitor::start(running.server.clone()))),
    }
}

impl Backend for Real {
    fn open<'a>(
        &'a mut self,
        scenario: &'a Scenario,
        plane: &'a dyn Plane,
    ) -> BoxFuture<'a, Result<World, String>> {
        Box::pin(async move {
            let clock = Clock::manual(Timestamp::now());
            if self.hub.is_none() {
                self.hub = Some(self.start("hub", &plane.definitions()).await?);
            }
            let hub = self.hub.as_ref().map(site).ok_or("there is no hub")?;
            let mut members = BTreeMap::new();
            for member in &scenario.members {
                let name = &member.name;
                let site = if scenario.needs_workloads {
                    self.simulated.member(name, &clock).await?
                } else {
                    if !self.members.contains_key(name) {
                        let running = self.start(name, &[]).await?;
                        self.members.insert(name.clone(), running);
                    }
                    self.members
                        .get(name)
                        .map(site)
                        .ok_or("there is no such member")?
                };
                members.insert(name.clone(), site);
            }
            Ok(World { hub, members, clock })
        })
    }

    fn close(&mut self, world: World) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            // The janitors go on while the rest is cleaned: namespaces need them.
            let mut problems = Vec::new();
            for (place, running) in self.hub.iter().map(|running| ("hub", running)).chain(
                self.members
                    .iter()
                    .map(|(name, running)| (name.as_str(), running)),
            ) {
                if let Err(problem) = clean(&running.server, &running.first).await {
                    problems.push(format!("{place} could not be cleaned: {problem}"));
                }
            }
            drop(world);
            if problems.is_empty() {
                Ok(())
            } else {
                Err(problems.join("; "))
            }
        })
    }
}

/// Deletes everything that was not there at first; nobody else is at work any more, so finalizers are nobody's.
async fn clean(server: &Server, first: &Snapshot) -> Result<(), Problem> {
    let mut left = Vec::new();
    for _ in 0..ROUNDS {
        left = server
            .snapshot()
            .await?
            .into_iter()
            // What came back under another uid is needed as it was before.
            .filter(|(path, _)| !first.contains_key(path))
            .map(|(path, _)| path)
            .collect();
        if left.is_empty() {
            return restore(server, first).await;
        }
        for path in &left {
            release(server, path).await?;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err(Problem::Broken(format!("{} is still there", left.join(", "))))
}

/// Takes an object's finalizers and protection away, and deletes it.
async fn release(server: &Server, path: &str) -> Result<(), Problem> {
    let patch =
        json!({"metadata": {"finalizers": null, "labels": {lockgate_api::keys::DELETION_PROTECTED: null}}});
    let requests = [
        (Method::PATCH, "application/merge-patch+json", patch.to_string()),
        (Method::DELETE, "", String::new()),
    ];
    for (method, content_type, body) in requests {
        match server.send(method, path, content_type, body).await {
            Ok(_) | Err(Problem::Refused { .. }) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

/// Something that every scenario needs and one of them deleted cannot be given back: say so.
async fn restore(server: &Server, first: &Snapshot) -> Result<(), Problem> {
    let present = server.snapshot().await?;
    match first.keys().find(|path| !present.contains_key(*path)) {
        Some(path) => Err(Problem::Broken(format!("{path} is gone"))),
        None => Ok(()),
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // Servers stop before their directory goes.
        self.members.clear();
        self.hub = None;
    }
}

impl Running {
    /// Where it keeps its state.
    #[allow(dead_code)]
    fn directory(&self) -> &Path {
        &self.stop.directory
    }
}
