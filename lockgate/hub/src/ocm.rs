//! Open Cluster Management: the fleet as ManagedClusters and sets, which of them placements select, and the policies there.
//!
//! ```text
//! Cluster ─▶ [clusters] ─▶ ManagedCluster ─▶ [fleet] ─▶ [placements] ─▶ PlacementDecision, Placement.status
//!                              sets, bindings ─▲  │
//!                                                 └─▶ [sets] ─▶ statuses of sets and bindings
//!
//! Policy, PlacementBinding, PolicySet, PlacementDecision ─▶ [governance] ─▶ [policies] ─▶ replicas, Policy.status
//!                                                                    └─▶ [policy_sets] ─▶ PolicySet.status
//! ```
//!
//! What always holds: these passes are the only writers of ManagedClusters that have a Cluster, of decisions, of replicas of
//! policies, and of the statuses of sets, bindings, placements, policies and sets of policies, where a replica's status has
//! its member's part; a hub without placements has the ManagedClusters and nothing more to do.

pub(crate) mod clusters;
pub(crate) mod fleet;
pub(crate) mod governance;
pub(crate) mod intake;
pub(crate) mod placements;
pub(crate) mod policies;
pub(crate) mod policy_history;
pub(crate) mod policy_intake;
pub(crate) mod policy_sets;
pub(crate) mod sets;
mod writes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_engine::TemplateId;
use lockgate_engine::gate::groups::{Agreed, Groups};
use parking_lot::{Mutex, RwLock};

use self::fleet::Fleet;
use self::governance::Governance;
use self::placements::Memories;
use crate::cache::{Cache, Change, Key};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::resource::Resource;
use crate::state::State;

/// How long placements wait for more changes of clusters.
const DECIDE_AFTER: Duration = Duration::from_millis(5);
/// How long sets wait for more clusters to come and go.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// Everything about placements.
pub(crate) struct Ocm {
    caches: OcmCaches,
    pub(crate) fleet: RwLock<Fleet>,
    memories: Mutex<Memories>,
    /// ManagedClusters that need attention.
    pub(crate) clusters: Queue<String>,
    /// Sets, and bindings of sets, whose status needs attention.
    pub(crate) sets: Queue<Key>,
    /// Placements that need a decision.
    pub(crate) placements: Queue<Key>,
    /// Placements that wait until members have said what they have room for.
    unmeasured: Mutex<BTreeSet<Key>>,
    pub(crate) governance: RwLock<Governance>,
    /// Root policies that need attention.
    pub(crate) policies: Queue<Key>,
    /// Sets of policies whose status needs attention.
    pub(crate) policy_sets: Queue<Key>,
}

/// The kinds in memory.
pub(crate) struct OcmCaches {
    managed_clusters: Arc<Cache>,
    sets: Arc<Cache>,
    set_bindings: Arc<Cache>,
    placements: Arc<Cache>,
    decisions: Arc<Cache>,
    scores: Arc<Cache>,
    pub(crate) policies: Arc<Cache>,
    policy_sets: Arc<Cache>,
    placement_bindings: Arc<Cache>,
    placement_rules: Arc<Cache>,
}

impl OcmCaches {
    /// Follows the kinds.
    pub(crate) fn follow(mut follow: impl FnMut(Resource, fn(&State, &Change)) -> Arc<Cache>) -> Self {
        Self {
            scores: follow(Resource::add_on_placement_scores(), intake::score),
            managed_clusters: follow(Resource::managed_clusters(), intake::cluster),
            sets: follow(Resource::managed_cluster_sets(), intake::set),
            set_bindings: follow(Resource::managed_cluster_set_bindings(), intake::set_binding),
            placements: follow(Resource::placements(), intake::placement),
            decisions: follow(Resource::placement_decisions(), intake::decision),
            policies: follow(Resource::policies(), policy_intake::policy),
            policy_sets: follow(Resource::policy_sets(), policy_intake::set),
            placement_bindings: follow(Resource::placement_bindings(), policy_intake::binding),
            placement_rules: follow(Resource::placement_rules(), policy_intake::rule),
        }
    }
}

impl Ocm {
    pub(crate) fn new(caches: OcmCaches, clock: &Clock, metrics: &Metrics) -> Self {
        Self {
            caches,
            fleet: RwLock::default(),
            memories: Mutex::default(),
            clusters: Queue::new(clock.clone(), metrics.queue("managed-cluster")),
            sets: Queue::new(clock.clone(), metrics.queue("cluster-set")),
            placements: Queue::new(clock.clone(), metrics.queue("placement")),
            unmeasured: Mutex::default(),
            governance: RwLock::default(),
            policies: Queue::new(clock.clone(), metrics.queue("root-policy")),
            policy_sets: Queue::new(clock.clone(), metrics.queue("policy-set")),
        }
    }

    /// Policies: roots, and their replicas in the namespaces of clusters.
    pub(crate) fn policy_cache(&self) -> &Arc<Cache> {
        &self.caches.policies
    }

    /// Members have said what they have room for: placements that waited for it are decided.
    pub(crate) fn wake_unmeasured(&self) {
        for key in std::mem::take(&mut *self.unmeasured.lock()) {
            self.placements.add(key, 1);
        }
    }

    /// Whether a cluster's ManagedCluster has still to go.
    pub(crate) fn holds(&self, cluster: &str) -> bool {
        let managed = self.caches.managed_clusters.find("", cluster);
        managed.is_some_and(|managed| !managed.terminating)
    }

    /// Whether everything that was seen was acted on.
    pub(crate) fn is_idle(&self) -> bool {
        self.clusters.is_idle()
            && self.sets.is_idle()
            && self.placements.is_idle()
            && self.policies.is_idle()
            && self.policy_sets.is_idle()
    }

    /// How many keys are ready or in hand.
    pub(crate) fn depth(&self) -> usize {
        self.clusters.depth()
            + self.sets.depth()
            + self.placements.depth()
            + self.policies.depth()
            + self.policy_sets.depth()
    }

    /// Ends all queues.
    pub(crate) fn close(&self) {
        self.clusters.close();
        self.sets.close();
        self.placements.close();
        self.policies.close();
        self.policy_sets.close();
    }
}

/// What is told of a kind, by its plural.
pub(crate) fn told(plural: &str) -> Option<fn(&State, &Change)> {
    match plural {
        "managedclusters" => Some(intake::cluster),
        "managedclustersets" => Some(intake::set),
        "managedclustersetbindings" => Some(intake::set_binding),
        "placements" => Some(intake::placement),
        "placementdecisions" => Some(intake::decision),
        "addonplacementscores" => Some(intake::score),
        "policies" => Some(policy_intake::policy),
        "policysets" => Some(policy_intake::set),
        "placementbindings" => Some(policy_intake::binding),
        "placementrules" => Some(policy_intake::rule),
        _ => None,
    }
}

/// The groups that a placement has decided on. One that is not there has decided on nobody.
pub(crate) fn decided(state: &State, namespace: &str, name: &str) -> Agreed {
    let (fleet, key) = (state.ocm.fleet.read(), Key::new(namespace, name));
    let Some(reading) = fleet.placement(&key) else {
        return Agreed::Nobody;
    };
    Groups::agreed(
        &reading.placement,
        fleet.decisions(&key).map(|decision| &**decision),
    )
}

/// Whether a template is in the namespace of a cluster, or is that namespace: those are the control plane's.
pub(crate) fn is_reserved(state: &State, id: &TemplateId) -> bool {
    let is_namespace = id.kind == "Namespace" && id.api_version == "v1";
    let namespace = if is_namespace { &id.name } else { &id.namespace };
    !namespace.is_empty() && state.cluster(namespace).is_some()
}
