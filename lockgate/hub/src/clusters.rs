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
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_api::cluster::SecretReference;
use lockgate_api::{Cluster, keys, names};
use lockgate_engine::cluster::{Leaving, Thresholds};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::cache::{Cache, Change};
use crate::clock::Clock;
use crate::connect::Connector;
use crate::discovery::Discovery;
use crate::election::Guard;
use crate::events::Events;
use crate::link::Link;
use crate::resource::Resource;
use crate::watch::{Following, follow};

/// How many Works are left in a cluster's execution namespace; `None` while that is not known for certain.
pub type CountWorks = Arc<dyn Fn(&str) -> Option<usize> + Send + Sync>;
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
    /// Counts the Works that are left.
    pub works: CountWorks,
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
    /// The cluster leaves, or leaves in another way than before.
    Leaving(String),
    /// The Cluster is no more.
    Gone(String),
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

    /// The cache of Clusters.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.caches.clusters.cache
    }

    /// Returns once all Clusters are known.
    pub async fn wait_synced(&self) {
        self.caches.wait_synced().await;
    }

    /// Whether everything that was seen was acted on. Probes that are not due yet do not count.
    pub fn idle(&self) -> bool {
        self.caches.clusters.cache.synced()
            && self.shared.dirty.lock().is_empty()
            && self.shared.asked.load(Ordering::Acquire) == self.shared.done.load(Ordering::Acquire)
            && self
                .shared
                .states
                .read()
                .values()
                .all(|state| state.asked == state.done)
    }
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
        let system = format!("{}=true", keys::SYSTEM);
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
