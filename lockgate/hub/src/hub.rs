//! The control plane as one thing: it starts, it can be asked whether it is done, and it stops.

mod fleet;
mod installed;
mod progress;
mod wiring;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockgate_engine::Gates;
use lockgate_engine::claim::Skips;
use lockgate_engine::selector::PolicyIndex;
use tokio::task::JoinSet;

use self::fleet::{start_clusters, take_in_clusters};
use crate::cache::{Change, Key};
use crate::chores;
use crate::clock::Clock;
use crate::clusters::Clusters;
use crate::connect::{Connector, SecretConnector};
use crate::election::{Election, ElectionOptions, Guard};
use crate::events::{EventOptions, Events};
use crate::install::{self, InstallError};
use crate::intake;
use crate::interpreters;
use crate::kinds::{self, Kinds};
use crate::link::{Link, LinkError};
use crate::members::{Lane, Members, telling};
use crate::metrics::Metrics;
use crate::namespaces;
use crate::ocm::{self, Ocm, OcmCaches};
use crate::policies::{self, Tally};
use crate::precedence::Precedence;
use crate::queue::Queue;
use crate::rebalance;
use crate::resource::Resource;
use crate::state::{Caches, RENDER, State};
use crate::template::{self, Departures, PassError, keepsakes};
use crate::vanished;
use crate::watch::Following;
pub(crate) use wiring::Wiring;
use wiring::tell_newest;

/// How many ManagedClusters are worked on at once.
const MANAGERS: usize = 8;
/// How many placements are decided at once.
const DECIDERS: usize = 16;
/// How long the hub's own kinds may take to be known.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How much is done at once with the hub's API server.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce {
    /// How many templates are walked.
    pub walks: usize,
    /// How many writes are sent.
    pub writes: usize,
    /// How many of statuses: what members are to get goes first, and somebody else may want to be answered.
    pub statuses: usize,
}

impl AtOnce {
    /// With a server of its own: two cores of it are busy with fewer.
    pub const OUTSIDE: Self = Self {
        walks: 24,
        writes: 24,
        statuses: 12,
    };
    /// With one in this process: it answers each in a tenth of a millisecond, and those that come together share a sync.
    pub const INSIDE: Self = Self {
        walks: 48,
        writes: 48,
        statuses: 128,
    };
}

/// What the control plane needs.
pub struct HubOptions {
    /// The hub's API server.
    pub client: kube::Client,
    /// How it is reached: with rivals, another client is made of this that sends nothing once a term is over.
    pub config: Option<kube::Config>,
    /// Makes clients of members.
    pub connector: Arc<dyn Connector>,
    /// The feature gates.
    pub gates: Gates,
    /// What is never a template.
    pub skips: Skips,
    /// The time.
    pub clock: Clock,
    /// How to stand for election; without, there are no rivals.
    pub election: Option<ElectionOptions>,
    /// Where figures are kept.
    pub metrics: Arc<Metrics>,
    /// How much is done at once.
    pub at_once: AtOnce,
}

impl HubOptions {
    /// The usual: members by their Secrets, the machine's time, no rivals.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            config: None,
            connector: Arc::new(SecretConnector),
            gates: Gates::default(),
            skips: Skips::default(),
            clock: Clock::real(),
            election: None,
            metrics: Arc::new(Metrics::new()),
            at_once: AtOnce::OUTSIDE,
        }
    }

    /// The same for a hub that is in this process.
    pub fn inside(client: kube::Client) -> Self {
        Self {
            at_once: AtOnce::INSIDE,
            ..Self::new(client)
        }
    }
}

/// Why the control plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// One of our kinds is not served.
    #[error(
        "the hub does not serve {0}: install the definitions (lockgate crds | kubectl apply --server-side -f -)"
    )]
    NotInstalled(String),
    /// The hub does not answer.
    #[error("the hub cannot be read: {0}")]
    Hub(LinkError),
    /// What says how to reach the hub makes no client.
    #[error("the hub cannot be reached: {0}")]
    Client(#[from] kube::Error),
    /// A definition that somebody deleted cannot be made again.
    #[error(transparent)]
    NotRestored(#[from] InstallError),
    /// It takes too long.
    #[error("the hub's {0} are not known after a minute")]
    TooSlow(String),
}

/// The running control plane.
pub struct Hub {
    state: Arc<State>,
    clusters: Arc<Clusters>,
    /// Everything of the hub that is followed, except the kinds of templates.
    followed: Vec<Following>,
    tasks: JoinSet<()>,
    election: Option<Election>,
}

impl Hub {
    /// Starts it, and returns when it has looked at everything once. With rivals, that is when it leads.
    pub async fn start(options: HubOptions) -> Result<Self, HubError> {
        let link = Link::new(options.client);
        let missing = installed::missing(&link).await?;
        let election = match &options.election {
            Some(election) => Some(Election::win(&link, election, &options.clock).await),
            None => None,
        };
        let guard = election.as_ref().map_or_else(Guard::always, Election::guard);
        let link = match options.config {
            Some(config) => Link::new(guard.client(config)?),
            None => link,
        };
        for kind in &missing {
            install::restore(&link, kind).await?;
        }
        let wiring = Wiring::default();
        let mut followed = Vec::new();
        let [rollout_policies, cluster_rollout_policies] =
            [Resource::rollout_policies(), Resource::cluster_rollout_policies()]
                .map(|resource| wiring.follow(&mut followed, &link, resource, intake::rollout));
        let caches = Caches {
            propagation_policies: wiring.follow(
                &mut followed,
                &link,
                Resource::propagation_policies(),
                intake::policy,
            ),
            cluster_propagation_policies: wiring.follow(
                &mut followed,
                &link,
                Resource::cluster_propagation_policies(),
                intake::policy,
            ),
            rollout_policies,
            cluster_rollout_policies,
            resource_bindings: wiring.follow(
                &mut followed,
                &link,
                Resource::resource_bindings(),
                intake::binding,
            ),
            cluster_resource_bindings: wiring.follow(
                &mut followed,
                &link,
                Resource::cluster_resource_bindings(),
                intake::binding,
            ),
            works: wiring.follow(&mut followed, &link, Resource::works(), intake::work),
            rebalancers: wiring.follow(
                &mut followed,
                &link,
                Resource::workload_rebalancers(),
                rebalance::intake,
            ),
            interpreters: wiring.follow(
                &mut followed,
                &link,
                Resource::interpreter_customizations(),
                interpreters::changed,
            ),
        };
        if options.gates.failover {
            wiring.follow(
                &mut followed,
                &link,
                Resource::cluster_taint_policies(),
                intake::taint_policy,
            );
        }
        for resource in [
            Resource::override_policies(),
            Resource::cluster_override_policies(),
        ] {
            wiring.follow(&mut followed, &link, resource, intake::override_policy);
        }
        let definitions = wiring.follow(&mut followed, &link, Resource::crds(), intake::definition);
        let placing = OcmCaches::follow(|resource, told| wiring.follow(&mut followed, &link, resource, told));
        let precedence = Precedence::default();
        let events = Events::start(
            &link.clone().after(&precedence),
            &options.clock,
            options.metrics.clone(),
            &EventOptions::default(),
        );
        let metrics = options.metrics;
        let clock = || options.clock.clone();
        let state = Arc::new(State {
            link: link
                .clone()
                .with_writes_at_once(options.at_once.writes)
                .while_leading(guard.clone())
                .first(&precedence),
            status_link: link
                .clone()
                .with_writes_at_once(options.at_once.statuses)
                .while_leading(guard.clone())
                .after(&precedence),
            clock: options.clock.clone(),
            gates: options.gates,
            guard: guard.clone(),
            events: events.clone(),
            metrics: metrics.clone(),
            caches,
            bindings_read: Default::default(),
            bound: Default::default(),
            policies: PolicyIndex::default().into(),
            overrides: Default::default(),
            rollouts: Default::default(),
            needs: Default::default(),
            neighbours: Default::default(),
            interpreters: Default::default(),
            scripts: Default::default(),
            clusters: Default::default(),
            rebalances: Default::default(),
            taint_policies: Default::default(),
            priority_classes: OnceLock::new(),
            unranked: Default::default(),
            wiring: wiring.clone(),
            alarms: Default::default(),
            departures: Departures::counted(metrics.clone()).into(),
            purging: Default::default(),
            unmeasured: Default::default(),
            works_by_name: Default::default(),
            works_marked: Default::default(),
            names_waited_for: Default::default(),
            bindings_waited_for: Default::default(),
            lost_bindings: Default::default(),
            keepsakes: Default::default(),
            bound_kinds: Default::default(),
            runs: Default::default(),
            ways_back: Default::default(),
            verdicts: Default::default(),
            status_disputes: Default::default(),
            templates: Queue::new(clock(), metrics.queue("template")),
            reports: Queue::new(clock(), metrics.queue("report")),
            tellings: Queue::new(clock(), metrics.queue("work-status")),
            untold: Default::default(),
            tally: Tally::new(clock(), metrics.queue("policy")),
            namespaces: Queue::new(clock(), metrics.queue("namespace")),
            unsent_namespaces: Default::default(),
            chores: Queue::new(clock(), metrics.queue("chore")),
            fleet_changes: Queue::new(clock(), metrics.queue("fleet")),
            vanished: Queue::new(clock(), metrics.queue("vanished")),
            cluster_reconciler: OnceLock::new(),
            kinds: Kinds::new(definitions, options.skips),
            ocm: Ocm::new(placing, &options.clock, &metrics),
            members: Members::new(clock(), metrics.queue("work")),
        });
        wiring.connect(&state);
        let clusters = start_clusters(&state, options.connector, guard, events);
        let mut hub = Self {
            state,
            clusters,
            followed,
            tasks: JoinSet::new(),
            election,
        };
        hub.prime().await?;
        hub.work(options.at_once);
        Ok(hub)
    }

    /// Reads everything, and puts all of it on the queues: what changed while nobody looked is found this way.
    async fn prime(&mut self) -> Result<(), HubError> {
        for following in &self.followed {
            let cache = &following.cache;
            let resource = cache.resource().plural.clone();
            tokio::time::timeout(START_PATIENCE, cache.wait_synced())
                .await
                .map_err(|_| HubError::TooSlow(resource))?;
        }
        tokio::time::timeout(START_PATIENCE, self.clusters.wait_synced())
            .await
            .map_err(|_| HubError::TooSlow("clusters".into()))?;
        let state = &self.state;
        let all = |following: &Following, told: &dyn Fn(&State, &Change)| {
            for cached in following.cache.list() {
                tell_newest(&following.cache, cached, &|change| told(state, change));
            }
        };
        for following in &self.followed {
            match following.cache.resource().plural.as_str() {
                "propagationpolicies" | "clusterpropagationpolicies" => all(following, &intake::policy),
                "rolloutpolicies" | "clusterrolloutpolicies" => all(following, &intake::rollout),
                "overridepolicies" | "clusteroverridepolicies" => all(following, &intake::override_policy),
                "resourcebindings" | "clusterresourcebindings" => all(following, &intake::binding),
                "works" => all(following, &intake::work),
                "workloadrebalancers" => all(following, &rebalance::intake),
                "clustertaintpolicies" => all(following, &intake::taint_policy),
                "resourceinterpretercustomizations" => interpreters::read(state),
                other => {
                    if let Some(told) = ocm::told(other) {
                        all(following, &told);
                    }
                }
            }
        }
        for set in ocm::sets::STANDING {
            state.ocm.sets.add(Key::new("", set), 1);
        }
        self.clusters
            .cache()
            .for_each(|cached| state.ocm.clusters.add_bulk(cached.key.name.to_string(), 1));
        take_in_clusters(state, &self.clusters);
        keepsakes::recall(state).await.map_err(HubError::Hub)?;
        kinds::sync(state).await.map_err(HubError::Hub)?;
        // Which kinds are templates is for anybody to say who may write a policy: one that cannot be read stops nobody.
        // Nothing is decided about its objects until it is known, and its policies say so.
        let _ = tokio::time::timeout(START_PATIENCE, state.kinds.wait_known()).await;
        for (api_version, kind) in state.kinds.unknown() {
            tracing::warn!(%api_version, %kind, "its objects cannot be read: they are left alone until they can");
        }
        Ok(())
    }

    fn work(&mut self, at_once: AtOnce) {
        let state = &self.state;
        state.members.begin();
        self.tasks.spawn(kinds::run(Arc::downgrade(state)));
        let told = state.clone();
        self.tasks
            .spawn(async move { interpreters::tell_webhooks(&told).await });
        for _ in 0..at_once.walks {
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((id, aspects)) = state.templates.next().await {
                    let begun = std::time::Instant::now();
                    let result = template::walk(&state, &id, aspects & RENDER != 0).await;
                    state.metrics.sync_work(result.is_ok(), begun.elapsed());
                    template::refusals::tell(&state, &id, &result);
                    finish(&state.templates, &id, aspects, result);
                    if state.members.is_waited_for(&id) {
                        // Its status waited for the walk, and may wait for nothing else now.
                        state.reports.add(id, 1);
                    }
                }
            });
        }
        for _ in 0..at_once.statuses {
            let told = state.clone();
            self.tasks.spawn(async move {
                while let Some((key, aspects)) = told.tellings.next().await {
                    let result = telling::pass(&told, &key).await;
                    finish(&told.tellings, &key, aspects, result);
                }
            });
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((id, aspects)) = state.reports.next().await {
                    let result = template::report(&state, &id).await;
                    template::refusals::tell(&state, &id, &result);
                    finish(&state.reports, &id, aspects, result);
                }
            });
        }
        let told = state.clone();
        self.tasks.spawn(async move {
            while let Some((key, aspects)) = told.tally.queue.next().await {
                let result = policies::pass(&told, &key).await;
                finish(&told.tally.queue, &key, aspects, result);
            }
        });
        for _ in 0..2 {
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((name, aspects)) = state.namespaces.next().await {
                    let result = namespaces::pass(&state, &name, aspects & RENDER != 0).await;
                    finish(&state.namespaces, &name, aspects, result);
                }
            });
        }
        for _ in 0..MANAGERS {
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((name, aspects)) = state.ocm.clusters.next().await {
                    let result = ocm::clusters::pass(&state, &name).await;
                    finish(&state.ocm.clusters, &name, aspects, result);
                }
            });
        }
        let told = state.clone();
        self.tasks.spawn(async move {
            while let Some((key, aspects)) = told.ocm.sets.next().await {
                let result = ocm::sets::pass(&told, &key).await;
                finish(&told.ocm.sets, &key, aspects, result);
            }
        });
        for _ in 0..DECIDERS {
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((key, aspects)) = state.ocm.placements.next().await {
                    let result = ocm::placements::pass(&state, &key).await;
                    finish(&state.ocm.placements, &key, aspects, result);
                }
            });
        }
        for _ in 0..DECIDERS {
            let state = state.clone();
            self.tasks.spawn(async move {
                while let Some((key, aspects)) = state.ocm.policies.next().await {
                    let result = ocm::policies::pass(&state, &key).await;
                    finish(&state.ocm.policies, &key, aspects, result);
                }
            });
        }
        let told = state.clone();
        self.tasks.spawn(async move {
            while let Some((key, aspects)) = told.ocm.policy_sets.next().await {
                let result = ocm::policy_sets::pass(&told, &key).await;
                finish(&told.ocm.policy_sets, &key, aspects, result);
            }
        });
        let changed = state.clone();
        self.tasks.spawn(async move {
            while changed.fleet_changes.next().await.is_some() {
                intake::wake_fleet(&changed);
                changed.fleet_changes.done(&());
            }
        });
        let told = state.clone();
        self.tasks.spawn(async move {
            while let Some((gone, aspects)) = told.vanished.next().await {
                let result = vanished::pass(&told, gone.0, &gone.1).await;
                finish(&told.vanished, &gone, aspects, result);
            }
        });
        let state = state.clone();
        self.tasks.spawn(async move {
            while let Some((chore, aspects)) = state.chores.next().await {
                let result = chores::pass(&state, &chore).await;
                finish(&state.chores, &chore, aspects, result);
            }
        });
    }

    /// The figures, as Prometheus reads them.
    pub fn metrics(&self) -> String {
        self.state.metrics.encode()
    }

    /// Whether it works: everything is known, and nobody else leads.
    pub fn ready(&self) -> bool {
        self.state.guard.may_write() && self.followed.iter().all(|following| following.cache.synced())
    }

    /// Returns when somebody else leads.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let guard = self.state.guard.clone();
        async move { guard.lost().await }
    }

    /// Ends all queues and lanes.
    fn close(&self) -> Vec<Arc<Lane>> {
        self.state.templates.close();
        self.state.reports.close();
        self.state.tellings.close();
        self.state.tally.queue.close();
        self.state.namespaces.close();
        self.state.chores.close();
        self.state.fleet_changes.close();
        self.state.vanished.close();
        self.state.ocm.close();
        self.state.members.close_all()
    }

    /// Stops it. What is under way is given up; another start goes on from what was written.
    pub async fn stop(mut self) {
        let lanes = self.close();
        self.tasks.shutdown().await;
        for lane in lanes {
            lane.ended().await;
        }
        self.followed.clear();
        if let Some(election) = self.election.take()
            && let Err(error) = election.release().await
        {
            tracing::warn!(%error, "the lease was not given back, and runs out by itself");
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.close();
    }
}

fn finish<K: Clone + Eq + std::hash::Hash + Ord + std::fmt::Debug>(
    queue: &Queue<K>,
    key: &K,
    aspects: u8,
    result: Result<(), PassError>,
) {
    match result {
        Ok(()) => queue.done(key),
        Err(PassError::Again) => queue.again(key, aspects),
        Err(error) => {
            tracing::debug!(?key, %error, "comes again");
            queue.retry(key, aspects);
        }
    }
}
