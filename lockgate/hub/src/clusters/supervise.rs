//! One task for each Cluster: starts them, wakes them, ends them. Nobody else does, so that a name never has two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use lockgate_api::Cluster;
use lockgate_engine::cluster::{Difference, fingerprint};
use tokio::sync::Notify;

use super::{AbortOnDrop, Caches, ClusterChange, Dirty, Shared, State, task};

/// A Cluster's task.
struct Running {
    uid: String,
    wake: Arc<Notify>,
    _task: AbortOnDrop,
}

/// Runs until it is dropped; the tasks end with it.
pub(super) async fn run(shared: Arc<Shared>, caches: Arc<Caches>) {
    // Nothing is done before everything is known: a Secret that was not listed yet is not a Secret that is missing.
    caches.wait_synced().await;
    let mut running: BTreeMap<String, Running> = BTreeMap::new();
    loop {
        let (dirty, asked) = {
            let mut dirty = shared.dirty.lock();
            (std::mem::take(&mut *dirty), shared.asked.load(Ordering::Acquire))
        };
        for what in dirty {
            match what {
                Dirty::Cluster(name) => look_at(&shared, &caches, &mut running, &name),
                Dirty::Secret(secret) => {
                    for name in users_of(&shared, &secret) {
                        look_at(&shared, &caches, &mut running, &name);
                    }
                }
            }
        }
        shared.done.store(asked, Ordering::Release);
        shared.wake.notified().await;
    }
}

fn look_at(shared: &Arc<Shared>, caches: &Arc<Caches>, running: &mut BTreeMap<String, Running>, name: &str) {
    let Some(cached) = caches.clusters.cache.find("", name) else {
        forget(shared, running, name);
        return;
    };
    let cluster: Arc<Cluster> = match cached.parse() {
        Ok(cluster) => Arc::new(cluster),
        Err(error) => {
            tracing::warn!(cluster = name, %error, "failed to read a Cluster");
            return;
        }
    };
    if running.get(name).is_some_and(|task| task.uid != cached.uid) {
        forget(shared, running, name);
    }
    let print = fingerprint(&cluster);
    let changes = note(shared, name, cluster, print);
    match running.get(name) {
        Some(task) => task.wake.notify_one(),
        None => {
            let wake = Arc::new(Notify::new());
            let work = task::run(shared.clone(), caches.clone(), name.to_owned(), wake.clone());
            let task = Running {
                uid: cached.uid.clone(),
                wake,
                _task: AbortOnDrop(tokio::spawn(work)),
            };
            running.insert(name.to_owned(), task);
        }
    }
    for change in changes {
        shared.tell(&change);
    }
}

/// Puts the newest form of a Cluster into the state; what of it changed that placing looks at.
fn note(shared: &Shared, name: &str, cluster: Arc<Cluster>, print: String) -> Vec<ClusterChange> {
    let mut states = shared.states.write();
    match states.get_mut(name) {
        Some(state) => {
            let mut changes = Vec::new();
            if state.fingerprint != print {
                let difference = Difference::between(&state.cluster, &cluster);
                changes.push(if difference.other {
                    ClusterChange::Fingerprint(name.to_owned())
                } else {
                    ClusterChange::Properties(name.to_owned(), difference)
                });
            }
            let room = |cluster: &Cluster| cluster.status.rest.get("resourceSummary").cloned();
            if room(&state.cluster) != room(&cluster) {
                changes.push(ClusterChange::Capacity(name.to_owned()));
            }
            if changes.is_empty() && state.cluster != cluster {
                changes.push(ClusterChange::Other(name.to_owned()));
            }
            state.cluster = cluster;
            state.fingerprint = print;
            state.asked += 1;
            changes
        }
        None => {
            let state = State {
                cluster,
                fingerprint: print,
                link: None,
                kinds: None,
                space: false,
                leaving: None,
                capacity: None,
                measured: true,
                awaited: AtomicI64::new(0),
                asked: 1,
                done: 0,
            };
            states.insert(name.to_owned(), state);
            vec![ClusterChange::Fingerprint(name.to_owned())]
        }
    }
}

fn forget(shared: &Shared, running: &mut BTreeMap<String, Running>, name: &str) {
    if running.remove(name).is_some() {
        let gone = shared.states.write().remove(name);
        // Outside the lock: what it follows may be telling somebody who waits for it.
        drop(gone);
        shared.tell(&ClusterChange::Gone(name.to_owned()));
    }
}

/// The clusters that are reached with a Secret.
fn users_of(shared: &Shared, secret: &str) -> Vec<String> {
    let states = shared.states.read();
    let uses = |state: &&State| {
        let reference = state.cluster.spec.secret_ref.as_ref();
        reference.is_some_and(|r| r.namespace == super::keys::CLUSTER_NAMESPACE && r.name == secret)
    };
    states
        .values()
        .filter(uses)
        .map(|state| state.cluster.metadata.name.clone())
        .collect()
}
