//! Real kube-apiservers with etcd, by the scripts in `real/`. They are started once for a run of many scenarios, and
//! cleaned in between: everything that was not there at first is deleted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
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

/// Real servers: one etcd, a hub and as many members as a scenario has wanted so far.
pub struct Real {
    scripts: PathBuf,
    directory: tempfile::TempDir,
    /// Whether something was started that must be stopped.
    started: bool,
    hub: Option<Running>,
    /// The first is `member1` for the scripts, whatever a scenario calls it.
    members: Vec<Running>,
    simulated: Embedded,
}

/// A server that runs.
struct Running {
    server: Server,
    url: String,
    authority: String,
    /// What it held before any scenario.
    first: Snapshot,
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
        call(&scripts.join("get"), &[])?;
        Ok(Self {
            directory: tempfile::tempdir().map_err(broken)?,
            scripts,
            started: false,
            hub: None,
            members: Vec::new(),
            simulated: Embedded::new(),
        })
    }

    /// Starts the servers that do not run yet.
    async fn start(&mut self, members: usize, plane: &dyn Plane) -> Result<(), String> {
        if self.hub.is_some() && self.members.len() >= members {
            return Ok(());
        }
        self.started = true;
        let (script, directory) = (self.scripts.join("fleet"), self.directory.path().to_owned());
        let started = tokio::task::spawn_blocking(move || {
            let (directory, members) = (directory.as_os_str(), members.to_string());
            call(&script, &["start".as_ref(), directory, members.as_ref()])
        });
        let started = started.await.map_err(|error| error.to_string())?;
        started.map_err(|error| error.to_string())?;
        if self.hub.is_none() {
            self.hub = Some(self.running("hub", &plane.definitions()).await?);
        }
        while self.members.len() < members {
            let name = format!("member{}", self.members.len() + 1);
            self.members.push(self.running(&name, &[]).await?);
        }
        Ok(())
    }

    async fn running(&self, name: &str, definitions: &[Value]) -> Result<Running, String> {
        let directory = self.directory.path().join(name);
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

fn call(script: &Path, arguments: &[&OsStr]) -> Result<(), RealError> {
    let output = std::process::Command::new(script)
        .args(arguments)
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
            let real = if scenario.needs_workloads {
                0
            } else {
                scenario.members.len()
            };
            self.start(real, plane).await?;
            let hub = self.hub.as_ref().map(site).ok_or("there is no hub")?;
            let mut members = BTreeMap::new();
            for (position, member) in scenario.members.iter().enumerate() {
                let site = match self.members.get(position) {
                    Some(running) if !scenario.needs_workloads => site(running),
                    _ => self.simulated.member(&member.name, &clock).await?,
                };
                members.insert(member.name.clone(), site);
            }
            Ok(World::new(hub, members, clock))
        })
    }

    fn close(&mut self, world: World) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            // The janitors go on while the rest is cleaned: namespaces need them.
            let members = self.members.iter().enumerate();
            let members = members.map(|(position, running)| (format!("member {}", position + 1), running));
            let hub = self.hub.iter().map(|running| ("the hub".to_owned(), running));
            let cleaning = hub.chain(members).map(|(place, running)| async move {
                let cleaned = clean(&running.server, &running.first).await;
                cleaned
                    .err()
                    .map(|problem| format!("{place} could not be cleaned: {problem}"))
            });
            let problems: Vec<String> = join_all(cleaning).await.into_iter().flatten().collect();
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
            .filter(|(path, _)| !first.contains_key(path) && !is_the_servers(path))
            .map(|(path, _)| path)
            .collect();
        if left.is_empty() {
            forget_events(server).await?;
            return restore(server, first).await;
        }
        // A definition goes after everything that it defines. What makes the server serve it is the server's to delete.
        let (mut now, mut later): (Vec<_>, Vec<_>) = left.iter().partition(|path| !is_definition(path));
        now.retain(|path| !path.starts_with("/apis/apiregistration.k8s.io/"));
        if now.is_empty() {
            now.append(&mut later);
        }
        for path in now {
            release(server, path).await?;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err(Problem::Broken(format!("{} is still there", left.join(", "))))
}

/// Events are in no snapshot. Those about what lives in no namespace are in `default`, which stays.
async fn forget_events(server: &Server) -> Result<(), Problem> {
    let events = "/api/v1/namespaces/default/events";
    server
        .send(Method::DELETE, events, "", String::new())
        .await
        .map(drop)
}

fn is_definition(path: &str) -> bool {
    path.starts_with("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/")
}

/// Takes an object's finalizers and protection away, and deletes it. A definition gets its finalizer when it is deleted, and
/// the server would take five seconds to find that there is nothing left to do for it.
async fn release(server: &Server, path: &str) -> Result<(), Problem> {
    let patch =
        json!({"metadata": {"finalizers": null, "labels": {lockgate_api::keys::DELETION_PROTECTED: null}}});
    let mut requests = [
        (Method::PATCH, "application/merge-patch+json", patch.to_string()),
        (Method::DELETE, "", String::new()),
    ];
    if is_definition(path) {
        requests.reverse();
    }
    for (method, content_type, body) in requests {
        match server.send(method, path, content_type, body).await {
            Ok(_) | Err(Problem::Refused { .. }) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

/// Addresses of services: the server itself gives, takes and repairs them.
fn is_the_servers(path: &str) -> bool {
    path.starts_with("/apis/networking.k8s.io/v1/ipaddresses/")
}

/// Something that every scenario needs and one of them deleted cannot be given back: say so.
async fn restore(server: &Server, first: &Snapshot) -> Result<(), Problem> {
    let present = server.snapshot().await?;
    match first
        .keys()
        .find(|path| !present.contains_key(*path) && !is_the_servers(path))
    {
        Some(path) => Err(Problem::Broken(format!("{path} is gone"))),
        None => Ok(()),
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if !self.started {
            return;
        }
        let directory = self.directory.path().as_os_str();
        if let Err(error) = call(&self.scripts.join("fleet"), &["stop".as_ref(), directory]) {
            tracing::error!(%error, directory = %self.directory.path().display(), "real servers could not be stopped");
        }
    }
}
