//! A hub, members and the control plane, all in this process; the hub and the control plane can be stopped and started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use lockgate_hub::{Hub, HubOptions, Link};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::fleet::counts::Counts;
use crate::fleet::load::Driver;
use crate::fleet::world::{InProcess, condition, quiet, until};
use crate::placing::report::Phase;
use crate::progress::{Progress, say};

/// Where everything of the load is.
pub(super) const NAMESPACE: &str = "bench";

/// Everything that runs.
pub(super) struct World {
    pki: Arc<Pki>,
    path: PathBuf,
    hub: ApiServer,
    members: BTreeMap<String, ApiServer>,
    pub(super) driver: Driver,
    concurrency: u32,
    hub_counts: Counts,
    member_counts: Counts,
    control: Option<Hub>,
}

/// Somebody who may do everything.
fn administrator() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters", "system:authenticated"])
}

async fn open(pki: &Arc<Pki>, path: Option<&Path>) -> Result<ApiServer, BenchError> {
    let mut options = Options::new(pki.clone());
    options.path = path.map(Path::to_owned);
    ApiServer::start(options)
        .await
        .map_err(|error| BenchError::server("hub", error))
}

impl World {
    /// A hub and members; no cluster is known yet, and nothing is controlled.
    pub(super) async fn start(path: PathBuf, members: u32, concurrency: u32) -> Result<Self, BenchError> {
        let pki = Arc::new(Pki::ephemeral().map_err(|e| BenchError::server("keys", e))?);
        let hub = open(&pki, Some(&path)).await?;
        let progress = Progress::start("starting members", members as usize);
        let mut servers = BTreeMap::new();
        for number in 0..members {
            servers.insert(member(number), open(&pki, None).await?);
            progress.advance(1);
        }
        let link = Link::new(kube::Client::new(hub.as_user(administrator()), "default"));
        lockgate_hub::install::install(&link)
            .await
            .map_err(|error| BenchError::server("hub", error))?;
        Ok(Self {
            driver: driver(&hub, concurrency),
            pki,
            path,
            hub,
            members: servers,
            concurrency,
            hub_counts: Counts::default(),
            member_counts: Counts::default(),
            control: None,
        })
    }

    /// Makes the Clusters, with labels, and the namespace of the load.
    pub(super) async fn join(&self, labels: impl Fn(u32) -> Value) -> Result<(), BenchError> {
        let progress = Progress::start("joining members", self.members.len());
        let labels = &labels;
        let count = self.members.len();
        self.driver
            .each(count, &progress, async |number| {
                let number = number as u32;
                let cluster = json!({
                    "apiVersion": "cluster.karmada.io/v1alpha1",
                    "kind": "Cluster",
                    "metadata": {"name": member(number), "labels": labels(number)},
                    "spec": {"syncMode": "Push", "apiEndpoint": format!("https://{}.invalid", member(number))},
                });
                self.driver
                    .send(Method::POST, "/apis/cluster.karmada.io/v1alpha1/clusters", &cluster)
                    .await
            })
            .await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.driver
            .send(Method::POST, "/api/v1/namespaces", &namespace)
            .await
    }

    /// Waits until all members are ready.
    pub(super) async fn ready(&self, patience: Duration) -> Result<(), BenchError> {
        let local = self.hub.local(UserInfo::apiserver());
        let ready = |name: &String| {
            let cluster = local.get("cluster.karmada.io/v1alpha1", "clusters", "", name);
            cluster.is_some_and(|cluster| condition(&cluster, "Ready"))
        };
        until(patience, "all members are ready", || {
            self.members.keys().all(ready)
        })
        .await
    }

    /// Starts the control plane.
    pub(super) async fn start_control(&mut self) -> Result<(), BenchError> {
        let mut options = HubOptions::inside(self.hub_counts.client(&self.hub, administrator()));
        options.connector = Arc::new(InProcess {
            servers: self.members.clone(),
            counts: self.member_counts.clone(),
            user: |_| administrator(),
        });
        let control = Hub::start(options)
            .await
            .map_err(|error| BenchError::server("control plane", error))?;
        self.control = Some(control);
        Ok(())
    }

    /// Stops the control plane; what it has done stays.
    pub(super) async fn stop_control(&mut self) {
        if let Some(control) = self.control.take() {
            control.stop().await;
        }
    }

    /// Waits until nothing is left to do, and answers since when that is so.
    pub(super) async fn quiet(&self, patience: Duration) -> Result<Instant, BenchError> {
        quiet(&self.hub, self.control.as_ref(), patience).await
    }

    /// The versions of all bindings, by name.
    pub(super) fn bindings(&self) -> BTreeMap<String, String> {
        let local = self.hub.local(UserInfo::apiserver());
        let list = local.list("work.karmada.io/v1alpha2", "resourcebindings", NAMESPACE);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = list.iter().map(|binding| {
            let metadata = &binding["metadata"];
            (text(&metadata["name"]), text(&metadata["resourceVersion"]))
        });
        versions.collect()
    }

    /// The names of the objects of the load that a member has.
    pub(super) fn on_member(&self, number: u32, api_version: &str, plural: &str) -> Vec<String> {
        let Some(server) = self.members.get(&member(number)) else {
            return Vec::new();
        };
        let list = server
            .local(UserInfo::apiserver())
            .list(api_version, plural, NAMESPACE);
        let named = list
            .iter()
            .filter_map(|object| object["metadata"]["name"].as_str());
        named
            .filter(|name| *name != "kube-root-ca.crt")
            .map(str::to_owned)
            .collect()
    }

    /// Measures what an act takes until nothing is left to do.
    pub(super) async fn measure(
        &mut self,
        name: &str,
        target_s: Option<f64>,
        patience: Duration,
        act: impl AsyncFnOnce(&mut Self) -> Result<(), BenchError>,
    ) -> Result<Phase, BenchError> {
        let before = self.bindings();
        self.hub_counts.take();
        self.member_counts.take();
        let begun = Instant::now();
        act(self).await?;
        self.settled(name, &before, begun, target_s, patience).await
    }

    /// Measures a start of the hub from its file, and of the control plane, until nothing is left to do.
    pub(super) async fn measure_start(
        &mut self,
        name: &str,
        target_s: Option<f64>,
        patience: Duration,
    ) -> Result<Phase, BenchError> {
        let before = self.bindings();
        self.stop_control().await;
        self.hub.clone().stop().await;
        self.hub_counts.take();
        self.member_counts.take();
        let begun = Instant::now();
        self.hub = open(&self.pki, Some(&self.path)).await?;
        self.driver = driver(&self.hub, self.concurrency);
        self.start_control().await?;
        self.settled(name, &before, begun, target_s, patience).await
    }

    async fn settled(
        &self,
        name: &str,
        before: &BTreeMap<String, String>,
        begun: Instant,
        target_s: Option<f64>,
        patience: Duration,
    ) -> Result<Phase, BenchError> {
        let rested = self.quiet(patience).await?;
        let after = self.bindings();
        let changed = after
            .iter()
            .filter(|(name, version)| before.get(*name) != Some(version));
        let writes = |counts: &Counts| {
            let counts = counts.take();
            let own = counts.iter().filter(|(what, _)| !what.ends_with(" events"));
            own.map(|(_, count)| count).sum()
        };
        let phase = Phase {
            name: name.to_owned(),
            settled_s: rested.saturating_duration_since(begun).as_secs_f64(),
            bindings: changed.count(),
            hub_writes: writes(&self.hub_counts),
            member_writes: writes(&self.member_counts),
            target_s,
        };
        say(&format!("{name}: {:.2} s", phase.settled_s));
        Ok(phase)
    }

    pub(super) async fn stop(mut self) {
        self.stop_control().await;
        for member in std::mem::take(&mut self.members).into_values() {
            member.stop().await;
        }
        self.hub.stop().await;
    }
}

fn driver(hub: &ApiServer, concurrency: u32) -> Driver {
    Driver::new(
        kube::Client::new(hub.as_user(administrator()), "default"),
        concurrency,
    )
}

/// The n-th member.
pub(super) fn member(number: u32) -> String {
    format!("member{number:05}")
}
