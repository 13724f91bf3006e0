//! Clusters come, change and go: their lanes are opened and closed, and what depends on them is looked at again.

use std::sync::{Arc, OnceLock, Weak};

use lockgate_api::{Cluster, Condition};

use crate::chores::Chore;
use crate::clusters::{ClusterChange, Clusters, ClustersOptions};
use crate::connect::Connector;
use crate::election::Guard;
use crate::events::Events;
use crate::intake;
use crate::link::Link;
use crate::metrics::ClusterFigures;
use crate::state::State;

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
    let clusters = Arc::new(Clusters::start(ClustersOptions {
        hub: state.link.clone(),
        connector,
        clock: state.clock.clone(),
        guard,
        events,
        works: Arc::new(works),
        on_change: Arc::new(on_change),
        thresholds: Default::default(),
    }));
    let _ = slot.set(Arc::downgrade(&clusters));
    let _ = state.cluster_reconciler.set(Arc::downgrade(&clusters));
    clusters
}

/// Brings the clusters and their lanes up to date.
pub(super) fn refresh_clusters(state: &Arc<State>, clusters: &Clusters) {
    let all = clusters.all();
    let names: Vec<String> = all.iter().map(|cluster| cluster.metadata.name.clone()).collect();
    let gone: Vec<String> = state
        .clusters()
        .iter()
        .map(|cluster| cluster.metadata.name.clone())
        .filter(|name| !names.contains(name))
        .collect();
    *state.clusters.write() = Arc::new(all);
    for name in gone {
        state.members.close(&name);
    }
    for name in names {
        open_lane(state, clusters, &name);
    }
}

/// The way to a member, for as long as we lead.
fn member_link(state: &State, clusters: &Clusters, name: &str) -> Option<Link> {
    let link = clusters.link(name)?;
    Some(link.while_leading(state.guard.clone()))
}

fn open_lane(state: &Arc<State>, clusters: &Clusters, name: &str) {
    let (lane, new) = state.members.open(name);
    if new {
        lane.connect(member_link(state, clusters, name));
        tokio::spawn(lane.run(state.clone()));
        intake::wake_lane(state, name);
    }
}

fn cluster_changed(state: &Arc<State>, clusters: &Clusters, change: &ClusterChange) {
    refresh_clusters(state, clusters);
    count_cluster(state, change);
    wake_managed(state, change);
    match change {
        ClusterChange::Link(name) => {
            state.members.connect(name, member_link(state, clusters, name));
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
            intake::wake_bound(state, |_| true);
            intake::wake_namespaces(state);
        }
        ClusterChange::Joined(_) | ClusterChange::Gone(_) => {
            intake::wake_rollouts(state);
            intake::wake_bound(state, |_| true);
            intake::wake_namespaces(state);
        }
        ClusterChange::Kinds(name) | ClusterChange::Leaving(name) => {
            if clusters.leaving(name).is_some_and(|leaving| leaving.abandon) {
                state.chores.add(Chore::Abandon(name.clone()), 1);
            }
            intake::wake_bound(state, |_| true);
            intake::wake_lane(state, name);
        }
    }
}

/// The ManagedCluster follows its Cluster.
fn wake_managed(state: &State, change: &ClusterChange) {
    // Of what else changes it says nothing.
    if let ClusterChange::Joined(name)
    | ClusterChange::Fingerprint(name)
    | ClusterChange::Leaving(name)
    | ClusterChange::Gone(name) = change
    {
        state.ocm.clusters.add(name.clone(), 1);
    }
    if let ClusterChange::Joined(name) | ClusterChange::Gone(name) = change {
        // What is in a namespace of that name is a template, or is one no longer.
        intake::wake_inside(state, name);
    }
}

/// Keeps the figures of a cluster.
fn count_cluster(state: &State, change: &ClusterChange) {
    let (ClusterChange::Joined(name)
    | ClusterChange::Link(name)
    | ClusterChange::Kinds(name)
    | ClusterChange::Fingerprint(name)
    | ClusterChange::Leaving(name)
    | ClusterChange::Gone(name)) = change;
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
        ..ClusterFigures::default()
    };
    state.metrics.cluster(name, &figures);
}

fn is_ready(cluster: &Cluster) -> bool {
    Condition::find(&cluster.status.conditions, "Ready").is_some_and(Condition::is_true)
}
