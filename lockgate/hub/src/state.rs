//! What every pass looks at: the hub's objects in memory, the queues, and the way out.
//!
//! Caches follow the API server; nothing here is the truth, and nothing is removed because something is missing here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use jiff::Timestamp;
use lockgate_api::{Binding, Cluster, ClusterTaintPolicy, OverridePolicy, PropagationPolicy, Work};
use lockgate_engine::gate::RolloutIndex;
use lockgate_engine::interpret::{Interpreter, Interpreters};
use lockgate_engine::place::Rooms;
use lockgate_engine::selector::PolicyIndex;
use lockgate_engine::{Gates, TemplateId};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;

use crate::bound::Bound;
use crate::cache::{Cache, Cached, Key};
use crate::chores::Chore;
use crate::clock::Clock;
use crate::clusters::Clusters;
use crate::election::Guard;
use crate::events::Events;
use crate::hub::Wiring;
use crate::interpreters::Scripts;
use crate::kinds::{KindId, Kinds};
use crate::lately::Lately;
use crate::link::Link;
use crate::members::Members;
use crate::members::telling::Told;
use crate::metrics::Metrics;
use crate::needs::Needs;
use crate::neighbours::Neighbours;
use crate::ocm::Ocm;
use crate::policies::Tally;
use crate::queue::{Aspects, Queue};
use crate::rebalance::Rebalances;
use crate::resource::Resource;
use crate::rollouts::Rollouts;
use crate::template::disputes::StatusDispute;
use crate::template::keepsakes::{Keepsakes, LostBinding};
use crate::template::priority::Classes;
use crate::template::{Departures, Stored, Verdict};
use crate::vanished;

/// A template's claim, binding and Works need attention.
pub(crate) const WALK: Aspects = 1;
/// A template's Works must be rendered again, although nothing says that an input changed.
pub(crate) const RENDER: Aspects = 4;

/// What every pass looks at.
pub(crate) struct State {
    /// For what members are to get.
    pub(crate) link: Link,
    /// For what became of it: the same server, after what members are to get, and with fewer requests at once.
    pub(crate) status_link: Link,
    pub(crate) clock: Clock,
    pub(crate) gates: Gates,
    pub(crate) guard: Guard,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) caches: Caches,
    /// Bindings that were read lately.
    pub(crate) bindings_read: Lately<Binding>,
    /// Which templates bindings are of.
    pub(crate) bound: Bound,
    pub(crate) policies: RwLock<PolicyIndex>,
    pub(crate) overrides: RwLock<Overrides>,
    pub(crate) rollouts: RwLock<RolloutIndex>,
    pub(crate) clusters: RwLock<Fleet>,
    /// The workloads that rebalancers name.
    pub(crate) rebalances: RwLock<Rebalances>,
    /// The policies that put taints on clusters; empty while they do not act.
    pub(crate) taint_policies: RwLock<BTreeMap<String, Arc<ClusterTaintPolicy>>>,
    /// The priority classes, once a policy names one.
    pub(crate) priority_classes: OnceLock<Classes>,
    /// Templates that wait until all priority classes are known.
    pub(crate) unranked: Mutex<BTreeSet<TemplateId>>,
    /// For what is followed only once somebody asks for it.
    pub(crate) wiring: Wiring,
    /// When templates come again by themselves, so that each waits once.
    pub(crate) alarms: Mutex<HashMap<TemplateId, Timestamp>>,
    /// How many workloads left a cluster lately.
    pub(crate) departures: Mutex<Departures>,
    /// Templates that wait until members have said what they have room for.
    pub(crate) unmeasured: Mutex<BTreeSet<TemplateId>>,
    /// Templates that wait until what they left is gone.
    pub(crate) purging: Mutex<BTreeSet<TemplateId>>,
    /// How kinds are read that are read in a way of their own.
    pub(crate) interpreters: RwLock<Arc<Interpreters>>,
    /// Where scripts run.
    pub(crate) scripts: Arc<Scripts>,
    /// What bindings need.
    pub(crate) needs: Needs,
    pub(crate) neighbours: Neighbours,
    pub(crate) works_by_name: Mutex<HashMap<String, BTreeSet<String>>>,
    /// The Works that carry the older mark of suspension, of which there are hardly any.
    pub(crate) works_marked: Mutex<BTreeSet<Key>>,
    /// How rollouts stand.
    pub(crate) runs: Rollouts,
    /// The revisions that are sent in the place of templates, with their digests.
    pub(crate) ways_back: Mutex<HashMap<TemplateId, (String, Arc<Stored>)>>,
    /// What was last decided about where a template goes, for its status.
    pub(crate) verdicts: Mutex<HashMap<TemplateId, Verdict>>,
    /// Templates whose status somebody else writes, too.
    pub(crate) status_disputes: Mutex<HashMap<TemplateId, StatusDispute>>,
    /// The templates that wait for the name of a Work, which another has.
    pub(crate) names_waited_for: Mutex<HashMap<String, BTreeSet<TemplateId>>>,
    /// The same for the name of a binding.
    pub(crate) bindings_waited_for: Mutex<HashMap<Key, BTreeSet<TemplateId>>>,
    /// Bindings that somebody deleted and that are to be made again, and those of templates that were replaced by others of
    /// their name.
    pub(crate) lost_bindings: Mutex<HashMap<TemplateId, LostBinding>>,
    /// What is kept until it is made again.
    pub(crate) keepsakes: Keepsakes,
    /// The kinds that bindings name, and Works without one.
    pub(crate) bound_kinds: Mutex<BTreeSet<KindId>>,
    pub(crate) templates: Queue<TemplateId>,
    /// Templates whose status, and whose bindings' status, need attention.
    pub(crate) reports: Queue<TemplateId>,
    /// Works whose status needs attention, and what it is to say.
    pub(crate) tellings: Queue<Key>,
    pub(crate) untold: Mutex<HashMap<Key, Told>>,
    /// How templates are with their policies, and the policies whose status needs attention.
    pub(crate) tally: Tally,
    pub(crate) namespaces: Queue<String>,
    /// Why clusters do not get namespaces, by namespace and cluster: what was told of them.
    pub(crate) unsent_namespaces: Mutex<HashMap<String, BTreeMap<String, String>>>,
    pub(crate) chores: Queue<Chore>,
    /// Clusters came, went, or are otherwise than they were: everybody who depends on them is to be looked at again. No chore,
    /// for nobody's failover waits until somebody's statuses are written.
    pub(crate) fleet_changes: Queue<()>,
    /// Overrides and rollout policies that are gone, and in force until it is known why. No chores, either: who lifts what holds
    /// back waits for nobody's statuses.
    pub(crate) vanished: Queue<(vanished::Kind, Key)>,
    pub(crate) cluster_reconciler: OnceLock<Weak<Clusters>>,
    pub(crate) kinds: Kinds,
    pub(crate) ocm: Ocm,
    pub(crate) members: Members,
}

/// All clusters, and what is free in them.
#[derive(Default)]
pub(crate) struct Fleet {
    /// By name.
    pub(crate) list: Arc<Vec<Arc<Cluster>>>,
    /// In the same order; empty while nobody asks.
    pub(crate) rooms: Arc<Rooms>,
}

impl Fleet {
    /// A cluster by name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Cluster>> {
        let at = self
            .list
            .binary_search_by(|known| known.metadata.name.as_str().cmp(name))
            .ok()?;
        self.list.get(at).cloned()
    }

    /// A cluster came, changed or went. What is free is followed while somebody asks for it.
    pub(crate) fn put(&mut self, name: &str, cluster: Option<Arc<Cluster>>, measuring: bool) {
        let is_followed = self.rooms.len() == self.list.len();
        let list = Arc::make_mut(&mut self.list);
        let at = list.binary_search_by(|known| known.metadata.name.as_str().cmp(name));
        let follow = (measuring && is_followed).then(|| Arc::make_mut(&mut self.rooms));
        match (at, cluster) {
            (Ok(at), Some(cluster)) => {
                if let Some(rooms) = follow {
                    rooms.replace(at, &cluster);
                }
                list[at] = cluster;
            }
            (Err(at), Some(cluster)) => {
                if let Some(rooms) = follow {
                    rooms.insert(at, &cluster);
                }
                list.insert(at, cluster);
            }
            (Ok(at), None) => {
                if let Some(rooms) = follow {
                    rooms.remove(at);
                }
                list.remove(at);
            }
            (Err(_), None) => {}
        }
        if measuring && !is_followed {
            self.rooms = Arc::new(Rooms::of(list));
        }
    }
}

/// The hub's own kinds in memory.
pub(crate) struct Caches {
    pub(crate) propagation_policies: Arc<Cache>,
    pub(crate) cluster_propagation_policies: Arc<Cache>,
    pub(crate) rollout_policies: Arc<Cache>,
    pub(crate) cluster_rollout_policies: Arc<Cache>,
    pub(crate) resource_bindings: Arc<Cache>,
    pub(crate) cluster_resource_bindings: Arc<Cache>,
    pub(crate) works: Arc<Cache>,
    pub(crate) rebalancers: Arc<Cache>,
    pub(crate) interpreters: Arc<Cache>,
}

/// Override policies, by namespace and name.
#[derive(Default)]
pub(crate) struct Overrides {
    by_key: BTreeMap<(String, String), Arc<OverridePolicy>>,
    list: Arc<Vec<Arc<OverridePolicy>>>,
}

impl Overrides {
    pub(crate) fn put(&mut self, key: (String, String), policy: Option<Arc<OverridePolicy>>) {
        match policy {
            Some(policy) => self.by_key.insert(key, policy),
            None => self.by_key.remove(&key),
        };
        self.list = Arc::new(self.by_key.values().cloned().collect());
    }

    /// One of them.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<OverridePolicy>> {
        self.by_key.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// All of them.
    pub(crate) fn list(&self) -> Arc<Vec<Arc<OverridePolicy>>> {
        self.list.clone()
    }

    pub(crate) fn contains(&self, namespace: &str, name: &str) -> bool {
        self.by_key.contains_key(&(namespace.to_owned(), name.to_owned()))
    }
}

impl State {
    /// The clusters, by name.
    pub(crate) fn clusters(&self) -> Arc<Vec<Arc<Cluster>>> {
        self.clusters.read().list.clone()
    }

    /// The clusters, and what is free in them.
    pub(crate) fn fleet(&self) -> (Arc<Vec<Arc<Cluster>>>, Arc<Rooms>) {
        let fleet = self.clusters.read();
        (fleet.list.clone(), fleet.rooms.clone())
    }

    /// Whether members have said what they have room for, as far as they can. They are asked from now on.
    pub(crate) fn room_is_known(&self) -> bool {
        let clusters = self.cluster_reconciler.get();
        clusters
            .and_then(std::sync::Weak::upgrade)
            .is_none_or(|clusters| clusters.measure())
    }

    /// Looks at a template again at this time, if nothing happens to it before.
    pub(crate) fn wake_at(&self, id: &TemplateId, due: Timestamp) {
        let mut alarms = self.alarms.lock();
        let now = self.clock.now();
        let waits = alarms.get(id).is_some_and(|known| *known > now && *known <= due);
        if !waits {
            alarms.insert(id.clone(), due);
            self.templates.add_at(id.clone(), WALK, due);
        }
    }

    /// How the objects of a kind are read, if in a way of their own.
    pub(crate) fn interpreter(&self, api_version: &str, kind: &str) -> Option<Arc<Interpreter>> {
        self.interpreters.read().get(api_version, kind)
    }

    /// A cluster by name.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.read().get(name)
    }

    /// Where the policies of a scope are kept.
    pub(crate) fn policies_of(&self, namespace: &str) -> (&Arc<Cache>, Resource) {
        if namespace.is_empty() {
            (
                &self.caches.cluster_propagation_policies,
                Resource::cluster_propagation_policies(),
            )
        } else {
            (
                &self.caches.propagation_policies,
                Resource::propagation_policies(),
            )
        }
    }

    /// Where the bindings of a template of this scope are kept.
    pub(crate) fn bindings(&self, namespace: &str) -> (&Arc<Cache>, Resource) {
        if namespace.is_empty() {
            (
                &self.caches.cluster_resource_bindings,
                Resource::cluster_resource_bindings(),
            )
        } else {
            (&self.caches.resource_bindings, Resource::resource_bindings())
        }
    }

    /// A binding; see [`parse`].
    pub(crate) fn binding(&self, key: &Key) -> Option<Arc<Binding>> {
        let (cache, _) = self.bindings(&key.namespace);
        self.bindings_read.parse(&cache.get(key)?)
    }

    /// The template of a binding, without the rest of it.
    pub(crate) fn bound(&self, key: &Key) -> Option<TemplateId> {
        let (cache, _) = self.bindings(&key.namespace);
        self.bound.of(&*cache.get(key)?)
    }

    /// The Works of a name, in all execution namespaces.
    pub(crate) fn works_named(&self, name: &str) -> Vec<Arc<Cached>> {
        let namespaces = self.works_by_name.lock().get(name).cloned().unwrap_or_default();
        namespaces
            .into_iter()
            .filter_map(|namespace| self.caches.works.get(&Key::new(&namespace, name)))
            .collect()
    }
}

/// An object as one of our types. What cannot be read is told to the log and treated as absent: the schema has accepted it,
/// so that only another version's objects can be like that.
pub(crate) fn parse<T: DeserializeOwned>(cached: &Cached) -> Option<T> {
    match serde_json::from_slice(&cached.text()) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(namespace = %cached.key.namespace, name = %cached.key.name, %error, "object cannot be read");
            None
        }
    }
}

/// A Work from the cache.
pub(crate) fn work(cache: &Cache, key: &Key) -> Option<Work> {
    parse(&*cache.get(key)?)
}

/// When a user last wrote an object, if the server says so.
pub(crate) fn written(cached: &Cached) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(cached.written?).ok()
}

/// A policy from the cache.
pub(crate) fn policy(cached: &Cached) -> Option<Arc<PropagationPolicy>> {
    parse(cached).map(Arc::new)
}
