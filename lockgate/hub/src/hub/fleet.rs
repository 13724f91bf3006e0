//! Clusters come, change and go: their lanes are opened and closed, and what depends on them is looked at again.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use lockgate_api::{Cluster, Condition};
use machinery_value::quantity::Quantity;

use crate::chores::Chore;
use crate::clusters::{ClusterChange, Clusters, ClustersOptions};
use crate::connect::Connector;
use crate::election::Guard;
use crate::events::Events;
use crate::intake;
use crate::link::Link;
use crate::metrics::ClusterFigures;
use crate::resource::Resource;
use crate::state::State;

/// How long everybody who depends on clusters waits for more changes of them: thousands of clusters may come at once.
const LOOK_AROUND_AFTER: Duration = Duration::from_millis(20);

/// Starts to reconcile clusters.
pub(super) fn start_clusters(
    state: &Arc<State>,
    connector: Arc<dyn Connector>,
    guard: Guard,
    events: Events,
) -> Arc<Clusters> {
    let slot: Arc<OnceLock<Weak<Clusters>>> = Arc::default();
    let (weak, told) = (Arc::downgrade(state), slot.clone());
    let on_change = move |change: &ClusterChange| {
        if let (Some(state), Some(clusters)) = (weak.upgrade(), told.get().and_then(Weak::upgrade)) {
            cluster_changed(&state, &clusters, change);
        }
    };
    let works = {
        let state = Arc::downgrade(state);
        move |cluster: &str| {
            let state = state.upgrade()?;
            let works = &state.caches.works;
            let namespace = lockgate_api::names::execution_namespace(cluster);
            // The ManagedCluster goes before the Cluster, as the Works do.
            let managed = usize::from(state.ocm.holds(cluster));
            works.synced().then(|| works.list_in(&namespace).len() + managed)
        }
    };
    let taint_policies = {
        let state = Arc::downgrade(state);
        move || {
            let state = state.upgrade().filter(|state| state.gates.failover)?;
            let policies = state.taint_policies.read().values().cloned().collect();
            Some(policies)
        }
    };
    let clusters = Arc::new(Clusters::start(ClustersOptions {
        hub: state.link.clone(),
        connector,
        clock: state.clock.clone(),
        guard,
        events,
        metrics: state.metrics.clone(),
        works: Arc::new(works),
        taint_policies: Arc::new(taint_policies),
        on_change: Arc::new(on_change),
        thresholds: Default::default(),
    }));
    let _ = slot.set(Arc::downgrade(&clusters));
    let _ = state.cluster_reconciler.set(Arc::downgrade(&clusters));
    clusters
}

/// Takes in all clusters, and opens their lanes.
pub(super) fn take_in_clusters(state: &Arc<State>, clusters: &Clusters) {
    for cluster in clusters.all() {
        take_in(state, clusters, &cluster.metadata.name);
    }
}

/// Brings one cluster and its lane up to date.
fn take_in(state: &Arc<State>, clusters: &Clusters, name: &str) {
    let present = {
        // Read under the lock, so that what is newer is never replaced by what is older.
        let mut fleet = state.clusters.write();
        let known = fleet.get(name);
        let cluster = clusters.get(name);
        let cluster = cluster.map(|cluster| as_decided(state, clusters, known.as_deref(), cluster));
        let present = cluster.is_some();
        fleet.put(name, cluster, clusters.is_measuring());
        present
    };
    if present {
        open_lane(state, clusters, name);
    } else {
        state.members.close(name);
    }
}

/// A Cluster as everybody sees it: it leaves when its own task has found that somebody wants that. Until then one that stayed
/// stays; at a start it is the definition that says whether all of them go without anybody's wish.
fn as_decided(
    state: &State,
    clusters: &Clusters,
    known: Option<&Cluster>,
    cluster: Arc<Cluster>,
) -> Arc<Cluster> {
    let metadata = &cluster.metadata;
    if !metadata.deleting() || clusters.leaving(&metadata.name).is_some() {
        return cluster;
    }
    let stays = match known.filter(|known| known.metadata.uid == metadata.uid) {
        Some(known) => !known.metadata.deleting(),
        None => {
            let resource = Resource::clusters();
            state.kinds.is_going(&resource.api_version(), &resource.kind)
        }
    };
    if !stays {
        return cluster;
    }
    let mut staying = Cluster::clone(&cluster);
    staying.metadata.deletion_timestamp = None;
    Arc::new(staying)
}

/// The way to a member, for as long as we lead.
fn member_link(state: &State, clusters: &Clusters, name: &str) -> Option<Link> {
    let link = clusters.link(name)?;
    Some(link.while_leading(state.guard.clone()))
}

fn open_lane(state: &Arc<State>, clusters: &Clusters, name: &str) {
    let (lane, new) = state.members.open(name);
    if new {
        lane.connect(|| member_link(state, clusters, name));
        tokio::spawn(lane.run(state.clone()));
        intake::wake_lane(state, name);
    }
}

fn cluster_changed(state: &Arc<State>, clusters: &Clusters, change: &ClusterChange) {
    take_in(state, clusters, change.cluster());
    count_cluster(state, change.cluster());
    wake_managed(state, change);
    match change {
        ClusterChange::Link(name) => {
            state.members.connect(name, || member_link(state, clusters, name));
            intake::wake_lane(state, name);
        }
        ClusterChange::Fingerprint(name) => {
            if let Some(lane) = state.members.lane(name)
                && state.cluster(name).is_some_and(|cluster| is_ready(&cluster))
            {
                // What was given up for a while is tried at once: the member answers again.
                lane.resume();
                intake::wake_lane(state, name);
            }
            state.fleet_changes.add_soon((), 1, LOOK_AROUND_AFTER);
        }
        ClusterChange::Properties(_, difference) => {
            intake::wake_mentioned(state, difference);
        }
        ClusterChange::Capacity(_) => intake::wake_unplaced(state),
        ClusterChange::Joined(_) | ClusterChange::Gone(_) => {
            state.fleet_changes.add_soon((), 1, LOOK_AROUND_AFTER);
        }
        ClusterChange::Other(_) => {}
        ClusterChange::Kinds(name) | ClusterChange::Leaving(name) => {
            if clusters.leaving(name).is_some_and(|leaving| leaving.abandon) {
                state.chores.add(Chore::Abandon(name.clone()), 1);
            }
            state.fleet_changes.add_soon((), 1, LOOK_AROUND_AFTER);
            intake::wake_lane(state, name);
        }
    }
}

/// The ManagedCluster follows its Cluster.
fn wake_managed(state: &State, change: &ClusterChange) {
    let is_undecided = |name: &str| {
        let reconciler = state.cluster_reconciler.get().and_then(Weak::upgrade);
        let raw = reconciler.and_then(|clusters| clusters.get(name));
        raw.is_some_and(|cluster| cluster.metadata.deleting())
            && state
                .cluster(name)
                .is_some_and(|cluster| !cluster.metadata.deleting())
    };
    if is_undecided(change.cluster()) {
        // It would go with a Cluster of which nobody knows yet whether it leaves.
        return;
    }
    // Of what else changes it says nothing.
    if let ClusterChange::Joined(name)
    | ClusterChange::Fingerprint(name)
    | ClusterChange::Properties(name, _)
    | ClusterChange::Capacity(name)
    | ClusterChange::Leaving(name)
    | ClusterChange::Gone(name) = change
    {
        state.ocm.clusters.add(name.clone(), 1);
    }
    if let ClusterChange::Joined(name) | ClusterChange::Gone(name) = change {
        // What is in a namespace of that name is a template, or is one no longer.
        intake::wake_inside(state, name);
        state.namespaces.add(name.clone(), 1);
    }
}

/// Keeps the figures of a cluster.
fn count_cluster(state: &State, name: &str) {
    let Some(cluster) = state.cluster(name) else {
        state.metrics.forget_cluster(name);
        return;
    };
    let summary = cluster.status.rest.get("nodeSummary");
    let nodes = |which: &str| summary.and_then(|summary| summary[which].as_i64()).unwrap_or(0);
    let figures = ClusterFigures {
        ready: is_ready(&cluster),
        nodes: nodes("totalNum"),
        ready_nodes: nodes("readyNum"),
        ..resources(&cluster)
    };
    state.metrics.cluster(name, &figures);
}

/// What a cluster says of its resources.
fn resources(cluster: &Cluster) -> ClusterFigures {
    let summary = cluster.status.rest.get("resourceSummary");
    let amount = |part: &str, name: &str| {
        let text = summary.and_then(|summary| summary[part][name].as_str());
        let quantity = text.and_then(|text| Quantity::parse(text).ok());
        quantity.map_or(0.0, |quantity| {
            // Thousandths of what is too large for them would not fit.
            if name == "cpu" {
                quantity.milli() as f64 / 1000.0
            } else {
                quantity.units() as f64
            }
        })
    };
    ClusterFigures {
        memory_allocatable: amount("allocatable", "memory"),
        memory_allocated: amount("allocated", "memory"),
        cpu_allocatable: amount("allocatable", "cpu"),
        cpu_allocated: amount("allocated", "cpu"),
        pods_allocatable: amount("allocatable", "pods"),
        pods_allocated: amount("allocated", "pods"),
        ..ClusterFigures::default()
    }
}

fn is_ready(cluster: &Cluster) -> bool {
    Condition::find(&cluster.status.conditions, "Ready").is_some_and(Condition::is_true)
}
