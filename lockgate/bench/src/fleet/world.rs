//! A hub, members and the control plane, all in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use lockgate_api::Condition;
use lockgate_hub::clusters::join::{JoinRequest, join_member};
use lockgate_hub::clusters::rights;
use lockgate_hub::{ConnectError, Connector, Guard, Hub, HubOptions, Link};
use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::Value;

use crate::error::BenchError;
use crate::fleet::FleetArguments;
use crate::fleet::arrivals::Arrivals;
use crate::fleet::counts::Counts;
use crate::fleet::load::Driver;
use crate::progress::Progress;

/// Objects of the latency phase, beside the templates.
pub(crate) const SINGLES: usize = 40;
/// The hub's revision must stand still this long before all is quiet.
const QUIET: Duration = Duration::from_millis(150);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// One member.
pub(crate) struct MemberCluster {
    pub(crate) name: String,
    pub(crate) server: ApiServer,
    pub(crate) arrivals: Arrivals,
    /// What makes it behave, if it does.
    _behaviour: Option<Member>,
}

/// Everything that runs.
pub(crate) struct World {
    pub(crate) hub: ApiServer,
    pub(crate) members: Vec<MemberCluster>,
    pub(crate) driver: Driver,
    /// What the control plane asks of the hub, and of all members.
    pub(crate) hub_counts: Counts,
    pub(crate) member_counts: Counts,
    control: Option<Hub>,
}

/// Somebody who may do everything.
fn administrator() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters", "system:authenticated"])
}

/// Reaches the members without a socket, and counts.
pub(crate) struct InProcess {
    pub(crate) servers: BTreeMap<String, ApiServer>,
    pub(crate) counts: Counts,
    /// As whom a member is asked.
    pub(crate) user: fn(&str) -> UserInfo,
}

impl Connector for InProcess {
    fn connect<'a>(
        &'a self,
        cluster: &'a lockgate_api::Cluster,
        _secret: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let name = &cluster.metadata.name;
        let client = self
            .servers
            .get(name)
            .map(|server| self.counts.client(server, (self.user)(name)));
        Box::pin(async move { client.ok_or(ConnectError::Unsupported("there is no such member")) })
    }
}

impl World {
    /// Starts everything, and waits until the members are ready.
    pub(crate) async fn start(arguments: &FleetArguments, scratch: &Path) -> Result<Self, BenchError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: String| BenchError::server(&what, error)
        };
        let pki = Arc::new(Pki::ephemeral().map_err(|e| failed("keys")(e.to_string()))?);
        let mut options = Options::new(pki.clone());
        options.path = Some(scratch.join("hub.db"));
        let hub = ApiServer::start(options)
            .await
            .map_err(|e| failed("hub")(e.to_string()))?;
        let progress = Progress::start("starting members", arguments.members as usize);
        let mut members = Vec::with_capacity(arguments.members as usize);
        for number in 1..=arguments.members {
            let name = format!("member{number}");
            let server = ApiServer::start(Options::new(pki.clone()))
                .await
                .map_err(|e| failed(&name)(e.to_string()))?;
            let simulation = SimOptions {
                delay: Duration::ZERO,
                pods: false,
                ..SimOptions::default()
            };
            members.push(MemberCluster {
                arrivals: Arrivals::follow(&server, arguments.templates as usize + SINGLES),
                _behaviour: arguments.ready.then(|| Member::start(&server, simulation)),
                server,
                name,
            });
            progress.advance(1);
        }
        let mut world = Self {
            driver: Driver::new(
                kube::Client::new(hub.as_user(administrator()), "default"),
                arguments.concurrency,
            ),
            hub,
            members,
            hub_counts: Counts::default(),
            member_counts: Counts::default(),
            control: None,
        };
        let link = Link::new(kube::Client::new(world.hub.as_user(administrator()), "default"));
        lockgate_hub::install::install(&link)
            .await
            .map_err(|e| failed("hub")(e.to_string()))?;
        world.start_control().await?;
        world.join(&link, &pki).await?;
        Ok(world)
    }

    /// Starts the control plane.
    pub(crate) async fn start_control(&mut self) -> Result<(), BenchError> {
        let mut options = HubOptions::inside(self.hub_counts.client(&self.hub, administrator()));
        let servers = self
            .members
            .iter()
            .map(|member| (member.name.clone(), member.server.clone()));
        options.gates.preemption = true;
        options.connector = Arc::new(InProcess {
            servers: servers.collect(),
            counts: self.member_counts.clone(),
            // With the rights that a member gives to a hub, and no others.
            user: |name| UserInfo::service_account(rights::MEMBER_NAMESPACE, &rights::account_name(name), ""),
        });
        let control = Hub::start(options)
            .await
            .map_err(|error| BenchError::server("control plane", error))?;
        self.control = Some(control);
        Ok(())
    }

    /// Stops the control plane; what it has done stays.
    pub(crate) async fn stop_control(&mut self) {
        if let Some(control) = self.control.take() {
            control.stop().await;
        }
    }

    async fn join(&self, hub: &Link, pki: &Pki) -> Result<(), BenchError> {
        let progress = Progress::start("joining members", self.members.len());
        for member in &self.members {
            let link = Link::new(kube::Client::new(
                member.server.as_user(administrator()),
                "default",
            ));
            let request = JoinRequest {
                name: member.name.clone(),
                endpoint: format!("https://{}.invalid", member.name),
                ca_bundle: Some(pki.ca_pem().to_owned()),
                token_patience: Duration::from_secs(5),
                ..JoinRequest::default()
            };
            join_member(hub, &link, &request, &mut |_| {})
                .await
                .map_err(|error| BenchError::server(&member.name, error))?;
            progress.advance(1);
        }
        let local = self.hub.local(UserInfo::apiserver());
        let ready = |member: &MemberCluster| {
            let cluster = local.get("cluster.karmada.io/v1alpha1", "clusters", "", &member.name);
            cluster.is_some_and(|cluster| condition(&cluster, "Ready"))
        };
        let patience = Duration::from_secs(60);
        until(patience, "all members are ready", || {
            self.members.iter().all(ready)
        })
        .await
    }

    /// Waits until nothing is left to do: the control plane says so, and the hub stands still. Answers since when there was
    /// nothing left but events, which go out at their own slow pace.
    pub(crate) async fn quiet(&self, patience: Duration) -> Result<Instant, BenchError> {
        quiet(&self.hub, self.control.as_ref(), patience).await
    }

    /// The names of the members.
    pub(crate) fn names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    pub(crate) async fn stop(mut self) {
        self.stop_control().await;
        for member in self.members {
            member.server.stop().await;
        }
        self.hub.stop().await;
    }
}

/// Waits until a control plane has nothing left to do, and its hub stands still.
pub(crate) async fn quiet(
    hub: &ApiServer,
    control: Option<&Hub>,
    patience: Duration,
) -> Result<Instant, BenchError> {
    let mut last = (hub.revision(), Instant::now());
    let mut rested = Instant::now();
    until(patience, "the control plane is idle", || {
        let busy = control.and_then(Hub::busy);
        let idle = busy.is_none();
        tracing::trace!(busy, "waiting");
        let revision = hub.revision();
        if !idle {
            rested = Instant::now();
        }
        if !idle || revision != last.0 {
            last = (revision, Instant::now());
        }
        last.1.elapsed() >= QUIET
    })
    .await?;
    Ok(rested)
}

/// Whether a condition of an object is true.
pub(crate) fn condition(object: &Value, kind: &str) -> bool {
    let conditions = serde_json::from_value::<Vec<Condition>>(object["status"]["conditions"].clone());
    Condition::find(&conditions.unwrap_or_default(), kind).is_some_and(Condition::is_true)
}

/// Waits until something is so.
pub(crate) async fn until(
    patience: Duration,
    what: &str,
    mut is: impl FnMut() -> bool,
) -> Result<(), BenchError> {
    let waiting = async {
        while !is() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(patience, waiting)
        .await
        .map_err(|_| BenchError::wrong(format!("not so after {} s: {what}", patience.as_secs())))
}
