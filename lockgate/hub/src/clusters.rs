//! The reconciler of Clusters: it keeps the connection to each member, asks how the member is, and says so in the Cluster.
//!
//! ```text
//!                ┌─ supervisor ─ one task for each Cluster ─▶ member (probe, kinds, nodes, token)
//! Clusters ──────┤                       │
//! Namespaces ────┤ (dirty names)         ├─▶ hub: finalizer, execution namespace, status, taints, events
//! Secrets ───────┘                       └─▶ [`ClusterChange`] to whoever places and dispatches
//! ```
//!
//! What always holds: this is the only writer of Clusters; a member that does not answer delays its own task alone; a Cluster
//! that is settled is not written; a member's objects are never touched from here. A Cluster that is being deleted goes only
//! when no Work of it is left.

mod capacity;
pub mod join;
mod leave;
mod probe;
mod renew;
pub mod rights;
mod space;
mod status;
mod supervise;
mod task;
mod token;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::cluster::SecretReference;
use lockgate_api::{Cluster, ClusterTaintPolicy, keys, names};
use lockgate_engine::cluster::{Difference, Leaving, Thresholds};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::cache::{Cache, Change};
use crate::clock::Clock;
use crate::connect::Connector;
use crate::discovery::Discovery;
use crate::election::Guard;
use crate::events::Events;
use crate::link::Link;
use crate::metrics::Metrics;
use crate::resource::Resource;
use crate::watch::{Following, follow};

/// How often it is looked whether all Clusters are taken in, at the start.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How many seconds placements wait for a member to say what it has room for.
const PATIENCE: i64 = 30;

/// How many Works are left in a cluster's execution namespace; `None` while that is not known for certain.
pub type CountWorks = Arc<dyn Fn(&str) -> Option<usize> + Send + Sync>;
/// The policies that put taints on clusters; `None` if they do not act.
pub type TaintPolicies = Arc<dyn Fn() -> Option<Vec<Arc<ClusterTaintPolicy>>> + Send + Sync>;
/// Is told what changed; it must be quick.
pub type OnClusterChange = Arc<dyn Fn(&ClusterChange) + Send + Sync>;

/// What the reconciler of Clusters needs.
#[derive(Clone)]
pub struct ClustersOptions {
    /// The hub.
    pub hub: Link,
    /// Makes clients of members.
    pub connector: Arc<dyn Connector>,
    /// The time.
    pub clock: Clock,
    /// Whether we may write.
    pub guard: Guard,
    /// Where events go.
    pub events: Events,
    /// Where figures are kept.
    pub metrics: Arc<Metrics>,
    /// Counts the Works that are left.
    pub works: CountWorks,
    /// The policies that put taints on clusters.
    pub taint_policies: TaintPolicies,
    /// Is told what changed.
    pub on_change: OnClusterChange,
    /// When a known cluster changes sides.
    pub thresholds: Thresholds,
}

/// Something that others act on. The state itself is read from [`Clusters`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// The cluster's execution namespace is there, for the first time or again: Works can be written.
    Joined(String),
    /// There is another link to the member, or none any more.
    Link(String),
    /// The member serves other kinds.
    Kinds(String),
    /// Something that placing looks at changed.
    Fingerprint(String),
    /// Labels or fields of the cluster changed, and nothing else that placing looks at.
    Properties(String, Difference),
    /// The member has room for more, or for less, or it is known for the first time.
    Capacity(String),
    /// The cluster leaves, or leaves in another way than before.
    Leaving(String),
    /// Something else about the Cluster changed, on which nothing depends.
    Other(String),
    /// The Cluster is no more.
    Gone(String),
}

impl ClusterChange {
    /// The cluster that changed.
    pub fn cluster(&self) -> &str {
        match self {
            Self::Joined(name)
            | Self::Link(name)
            | Self::Kinds(name)
            | Self::Fingerprint(name)
            | Self::Properties(name, _)
            | Self::Capacity(name)
            | Self::Leaving(name)
            | Self::Other(name)
            | Self::Gone(name) => name,
        }
    }
}

/// The reconciler of Clusters; it ends when this is dropped.
pub struct Clusters {
    shared: Arc<Shared>,
    caches: Arc<Caches>,
    _supervisor: AbortOnDrop,
}

/// What the tasks share.
struct Shared {
    options: ClustersOptions,
    states: RwLock<BTreeMap<String, State>>,
    /// Names whose Cluster, namespace or Secret changed. Bounded by the number of clusters and Secrets.
    dirty: Mutex<BTreeSet<Dirty>>,
    wake: Notify,
    /// Counts what was asked of the supervisor, and what it has done.
    asked: AtomicU64,
    done: AtomicU64,
    /// Whether somebody asks what members have room for.
    measuring: AtomicBool,
}

/// What may have to be looked at again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dirty {
    Cluster(String),
    /// A Secret in [`keys::CLUSTER_NAMESPACE`].
    Secret(String),
}

/// The caches of the hub's objects that Clusters depend on.
struct Caches {
    clusters: Following,
    /// Execution namespaces, by their label.
    namespaces: Following,
    /// The Secrets of members, where they usually are.
    secrets: Following,
}

/// What is known of one cluster.
struct State {
    cluster: Arc<Cluster>,
    fingerprint: String,
    link: Option<Link>,
    kinds: Option<Arc<Discovery>>,
    space: bool,
    leaving: Option<Leaving>,
    /// What is known of its Nodes and Pods, if they are watched.
    capacity: Option<Arc<Mutex<capacity::Collector>>>,
    /// Whether what it has room for is known as far as it can be.
    measured: bool,
    /// Since when somebody waits for that, in seconds; 0 while nobody does.
    awaited: AtomicI64,
    /// How often its task was asked to look, and up to which of these it has looked.
    asked: u64,
    done: u64,
}

impl Clusters {
    /// Starts to follow the hub's Clusters. Needs a tokio runtime.
    pub fn start(options: ClustersOptions) -> Self {
        let shared = Arc::new(Shared {
            options,
            states: RwLock::default(),
            dirty: Mutex::default(),
            wake: Notify::new(),
            asked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            measuring: AtomicBool::new(false),
        });
        let caches = Arc::new(Caches::follow(&shared));
        let supervisor = supervise::run(shared.clone(), caches.clone());
        Self {
            shared,
            caches,
            _supervisor: AbortOnDrop(tokio::spawn(supervisor)),
        }
    }

    /// The link to a member; `None` while there is no way to reach it.
    pub fn link(&self, cluster: &str) -> Option<Link> {
        self.shared.states.read().get(cluster)?.link.clone()
    }

    /// The kinds that a member serves, as far as it told; `None` before it was asked.
    pub fn kinds(&self, cluster: &str) -> Option<Arc<Discovery>> {
        self.shared.states.read().get(cluster)?.kinds.clone()
    }

    /// A Cluster.
    pub fn get(&self, cluster: &str) -> Option<Arc<Cluster>> {
        Some(self.shared.states.read().get(cluster)?.cluster.clone())
    }

    /// All Clusters, in the order of their names.
    pub fn all(&self) -> Vec<Arc<Cluster>> {
        self.shared
            .states
            .read()
            .values()
            .map(|state| state.cluster.clone())
            .collect()
    }

    /// Whether a cluster's execution namespace is there, so that Works can be written.
    pub fn has_space(&self, cluster: &str) -> bool {
        self.shared
            .states
            .read()
            .get(cluster)
            .is_some_and(|state| state.space)
    }

    /// How a cluster leaves; `None` if it does not.
    pub fn leaving(&self, cluster: &str) -> Option<Leaving> {
        self.shared.states.read().get(cluster)?.leaving
    }

    /// Looks at a cluster again, for instance because the last Work of one that leaves is gone.
    pub fn poke(&self, cluster: &str) {
        self.shared.mark(Dirty::Cluster(cluster.to_owned()));
    }

    /// Asks members what they have room for, from now on. Whether that is known already, as far as it can be.
    pub fn measure(&self) -> bool {
        if !self.shared.measuring.swap(true, Ordering::AcqRel) {
            let names: Vec<String> = self.shared.states.read().keys().cloned().collect();
            for name in names {
                self.poke(&name);
            }
            return false;
        }
        let now = self.shared.options.clock.now();
        let states = self.shared.states.read();
        // All are looked at, so that they are waited for at the same time.
        let waiting = states.values().filter(|state| {
            let cannot =
                state.link.is_none() || state.cluster.metadata.deleting() || !is_ready(&state.cluster);
            let known = cannot || (state.measured && state.capacity.is_some());
            is_waited_for(&state.awaited, known, now)
        });
        waiting.count() == 0
    }

    /// Whether members are asked what they have room for.
    pub fn is_measuring(&self) -> bool {
        self.shared.measuring.load(Ordering::Acquire)
    }

    /// Up to which version a member's Nodes or Pods were seen; `None` if they are not watched.
    pub fn seen_capacity(&self, cluster: &str, kind: &str) -> Option<u64> {
        let capacity = self.shared.states.read().get(cluster)?.capacity.clone()?;
        capacity.lock().seen(kind)
    }

    /// What of the hub is watched for clusters beside them: resource, namespace and label selector, each empty for all; and up
    /// to which resource version it was seen.
    pub fn seen_beside(&self) -> [(Resource, &'static str, String, u64); 2] {
        let (namespaces, secrets) = (&self.caches.namespaces.cache, &self.caches.secrets.cache);
        [
            (
                Resource::namespaces(),
                "",
                system_selector(),
                namespaces.seen_version(),
            ),
            (
                Resource::secrets(),
                keys::CLUSTER_NAMESPACE,
                String::new(),
                secrets.seen_version(),
            ),
        ]
    }

    /// The cache of Clusters.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.caches.clusters.cache
    }

    /// Returns once all Clusters are known, and taken in: whoever places with some of them would move what is on the others.
    pub async fn wait_synced(&self) {
        self.caches.wait_synced().await;
        while !self.are_taken_in() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn are_taken_in(&self) -> bool {
        let states = self.shared.states.read();
        let mut all = true;
        self.cache().for_each(|cached| {
            // One that cannot be read is never taken in, and holds nobody up.
            all = all && (states.contains_key(&*cached.key.name) || cached.parse::<Cluster>().is_err());
        });
        all
    }

    /// Whether everything that was seen was acted on. By a clock that is moved by hand, a probe that is due is something to do.
    pub fn idle(&self) -> bool {
        self.caches.clusters.cache.synced()
            && self.shared.dirty.lock().is_empty()
            && self.shared.asked.load(Ordering::Acquire) == self.shared.done.load(Ordering::Acquire)
            && self
                .shared
                .states
                .read()
                .values()
                .all(|state| state.asked == state.done && (state.measured || !is_ready(&state.cluster)))
    }
}

/// Whether somebody waits for what a member has room for. After a while nobody does: it counts with what it told last, or
/// with nothing, and one member that lists its pods for ever holds up no other.
fn is_waited_for(awaited: &AtomicI64, known: bool, now: Timestamp) -> bool {
    if known {
        awaited.store(0, Ordering::Release);
        return false;
    }
    let begun = awaited.compare_exchange(0, now.as_second(), Ordering::AcqRel, Ordering::Acquire);
    let since = begun.err().unwrap_or(now.as_second());
    now.as_second() < since.saturating_add(PATIENCE)
}

fn is_ready(cluster: &Cluster) -> bool {
    lockgate_api::Condition::find(&cluster.status.conditions, lockgate_engine::cluster::READY)
        .is_some_and(lockgate_api::Condition::is_true)
}

impl Shared {
    fn mark(&self, what: Dirty) {
        let mut dirty = self.dirty.lock();
        self.asked.fetch_add(1, Ordering::AcqRel);
        dirty.insert(what);
        drop(dirty);
        self.wake.notify_one();
    }

    fn tell(&self, change: &ClusterChange) {
        tracing::debug!(?change, "cluster");
        (self.options.on_change)(change);
    }

    /// Changes what is known of a cluster, if it is still known.
    fn update<T>(&self, cluster: &str, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.states.write().get_mut(cluster).map(change)
    }
}

impl Caches {
    fn follow(shared: &Arc<Shared>) -> Self {
        let hub = &shared.options.hub;
        // The callbacks must not keep the state alive that owns them.
        let marker = |to_dirty: fn(&str) -> Option<Dirty>| {
            let shared = Arc::downgrade(shared);
            move |change: &Change| {
                if let (Some(shared), Some(key)) = (shared.upgrade(), change.key())
                    && let Some(what) = to_dirty(&key.name)
                {
                    shared.mark(what);
                }
            }
        };
        let system = system_selector();
        Self {
            clusters: follow(
                hub,
                &Resource::clusters(),
                "",
                None,
                marker(|name| Some(Dirty::Cluster(name.to_owned()))),
            ),
            namespaces: follow(
                hub,
                &Resource::namespaces(),
                "",
                Some(&system),
                marker(|name| names::cluster_of(name).map(|cluster| Dirty::Cluster(cluster.to_owned()))),
            ),
            secrets: follow(
                hub,
                &Resource::secrets(),
                keys::CLUSTER_NAMESPACE,
                None,
                marker(|name| Some(Dirty::Secret(name.to_owned()))),
            ),
        }
    }

    async fn wait_synced(&self) {
        self.clusters.cache.wait_synced().await;
        self.namespaces.cache.wait_synced().await;
        self.secrets.cache.wait_synced().await;
    }
}

/// What execution namespaces are found by.
fn system_selector() -> String {
    format!("{}=true", keys::SYSTEM)
}

/// Whether a Secret is the one that we made for a cluster, by its place and name.
fn is_own_secret(reference: &SecretReference, cluster: &str) -> bool {
    reference.namespace == keys::CLUSTER_NAMESPACE
        && (reference.name == cluster || reference.name == format!("{cluster}-impersonator"))
}

/// A task that ends with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let awaited = AtomicI64::new(0);
        assert!(is_waited_for(&awaited, false, at(100)));
        assert!(is_waited_for(&awaited, false, at(99 + PATIENCE)));
        assert!(!is_waited_for(&awaited, false, at(100 + PATIENCE)));
        // Once it has told, it is waited for anew.
        assert!(!is_waited_for(&awaited, true, at(500)));
        assert!(is_waited_for(&awaited, false, at(501)));
    }
}
