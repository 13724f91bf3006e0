//! The pass over one ManagedCluster: it follows the Cluster of its name, and has a namespace. One without a Cluster says how to
//! join.

use std::sync::Weak;

use lockgate_api::Cluster;
use lockgate_api::ocm::{CLUSTER_NAMESPACE, ManagedCluster};
use lockgate_engine::object;
use lockgate_engine::placement::mirror::{mirror, unjoined};
use serde_json::{Value, json};

use super::writes::{self, Part};
use crate::cache::Key;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{PassError, delete, encode, encode_status};

/// Brings one ManagedCluster in line with its Cluster.
pub(crate) async fn pass(state: &State, name: &str) -> Result<(), PassError> {
    let key = Key::new("", name);
    let cache = &state.ocm.caches.managed_clusters;
    let present: Option<ManagedCluster> = cache.get(&key).and_then(|cached| state::parse(&cached));
    if present
        .as_ref()
        .is_some_and(|present| present.metadata.deleting())
    {
        // The next pass follows when it is gone.
        return Ok(());
    }
    let now = state.clock.now();
    let next = match cluster(state, name)? {
        Some(cluster) if cluster.metadata.deleting() => {
            if present.is_some() {
                let resource = Resource::managed_clusters();
                delete(state, cache, &resource, &key, "failed to let a ManagedCluster go").await?;
            }
            return remove_namespace(state, name).await;
        }
        Some(cluster) => match mirror(&cluster, present.as_ref(), now) {
            Some(next) => {
                ensure_namespace(state, name).await?;
                next
            }
            None => return Ok(()),
        },
        None => match &present {
            Some(present) => unjoined(present, now),
            None => return Ok(()),
        },
    };
    write(state, &key, present, next).await
}

/// The Cluster as the server last told it: what other passes know may be a moment behind, and a Cluster that is not known yet
/// is not one that is not there.
fn cluster(state: &State, name: &str) -> Result<Option<Cluster>, PassError> {
    let Some(clusters) = state.cluster_reconciler.get().and_then(Weak::upgrade) else {
        return Err(PassError::NotYet("clusters are not known yet".to_owned()));
    };
    let cached = clusters.cache().find("", name);
    Ok(cached.and_then(|cached| state::parse(&cached)))
}

async fn write(
    state: &State,
    key: &Key,
    present: Option<ManagedCluster>,
    next: ManagedCluster,
) -> Result<(), PassError> {
    let cache = &state.ocm.caches.managed_clusters;
    let resource = Resource::managed_clusters();
    match &present {
        None => {
            let made = ManagedCluster {
                status: Default::default(),
                ..next.clone()
            };
            writes::create(state, cache, key, &made, "failed to create a ManagedCluster").await?;
        }
        Some(present) if present.metadata != next.metadata || present.spec != next.spec => {
            let body = encode(&resource, &next);
            let what = "failed to write a ManagedCluster";
            writes::replace(state, cache, key, Part::Main, body, what).await?;
        }
        Some(_) => {}
    }
    if present.is_some_and(|present| present.status == next.status) {
        return Ok(());
    }
    let Some(written) = cache
        .get(key)
        .and_then(|cached| state::parse::<ManagedCluster>(&cached))
    else {
        return Err(PassError::Again);
    };
    let body = encode_status(&resource, &written.metadata, &next.status);
    let what = "failed to write the status of a ManagedCluster";
    writes::replace(state, cache, key, Part::Status, body, what).await
}

/// Makes the namespace of a cluster, where what concerns it alone is kept.
async fn ensure_namespace(state: &State, name: &str) -> Result<(), PassError> {
    let Some(kind) = state.kinds.served("v1", "Namespace") else {
        return Err(PassError::NotYet("namespaces are not known yet".to_owned()));
    };
    if kind.cache.find("", name).is_some() {
        return Ok(());
    }
    let namespace = json!({"metadata": {"name": name, "labels": {CLUSTER_NAMESPACE: name}}});
    let key = Key::new("", name);
    writes::create(
        state,
        &kind.cache,
        &key,
        &namespace,
        "failed to create the namespace of a cluster",
    )
    .await
}

/// Removes the namespace of a cluster that leaves, if it was made for it.
async fn remove_namespace(state: &State, name: &str) -> Result<(), PassError> {
    let Some(kind) = state.kinds.served("v1", "Namespace") else {
        return Ok(());
    };
    let Some(namespace) = kind
        .cache
        .find("", name)
        .and_then(|cached| state::parse::<Value>(&cached))
    else {
        return Ok(());
    };
    if object::deleting(&namespace) || object::label(&namespace, CLUSTER_NAMESPACE) != Some(name) {
        return Ok(());
    }
    let key = Key::new("", name);
    match delete(
        state,
        &kind.cache,
        &Resource::namespaces(),
        &key,
        "failed to remove the namespace of a cluster",
    )
    .await
    {
        // It may not be ours to delete; the cluster goes all the same.
        Err(PassError::Link {
            error: LinkError::Refused { .. },
            ..
        }) => Ok(()),
        other => other,
    }
}
