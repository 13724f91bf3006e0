//! One task for each Cluster: starts them, wakes them, ends them. Nobody else does, so that a name never has two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockgate_api::Cluster;
use lockgate_engine::cluster::fingerprint;
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
    let changed = note(shared, name, cluster, print);
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
    if changed {
        shared.tell(&ClusterChange::Fingerprint(name.to_owned()));
    }
}

/// Puts the newest form of a Cluster into the state; whether something that placing looks at changed.
fn note(shared: &Shared, name: &str, cluster: Arc<Cluster>, print: String) -> bool {
    let mut states = shared.states.write();
    match states.get_mut(name) {
        Some(state) => {
            let changed = state.fingerprint != print;
            state.cluster = cluster;
            state.fingerprint = print;
            state.asked += 1;
            changed
        }
        None => {
            let state = State {
                cluster,
                fingerprint: print,
                link: None,
                kinds: None,
                space: false,
                leaving: None,
                asked: 1,
                done: 0,
            };
            states.insert(name.to_owned(), state);
            true
        }
    }
}

fn forget(shared: &Shared, running: &mut BTreeMap<String, Running>, name: &str) {
    if running.remove(name).is_some() {
        shared.states.write().remove(name);
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
