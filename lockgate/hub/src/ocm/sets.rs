//! The pass over one set of clusters, or over one binding of a set: what it says of itself. The sets of all clusters and of
//! those in no other are made where they are not there.

use lockgate_api::meta::{Condition, ObjectMeta};
use lockgate_api::ocm::cluster::{Conditions, ManagedClusterSet, ManagedClusterSetBinding};
use lockgate_api::ocm::{DEFAULT_SET, GLOBAL_SET};
use lockgate_engine::placement::sets::{binding_condition, set_condition};
use serde_json::json;

use super::writes;
use crate::cache::{Cache, Key};
use crate::clock::seconds;
use crate::state::{self, State};
use crate::template::{PassError, encode_status, replace_status};

/// The sets that are always there.
pub(crate) const STANDING: [&str; 2] = [DEFAULT_SET, GLOBAL_SET];

/// Writes what a set or a binding says of itself; a key with a namespace is a binding's.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let now = seconds(state.clock.now());
    if !key.namespace.is_empty() {
        let cache = &state.ocm.caches.set_bindings;
        let Some(binding) = read::<ManagedClusterSetBinding>(cache, key) else {
            return Ok(());
        };
        let set = &binding.spec.cluster_set;
        let is_there = state.ocm.fleet.read().has_set(set);
        let condition = binding_condition(set, is_there, now);
        return tell(
            state,
            cache,
            key,
            &binding.metadata,
            binding.status.as_ref(),
            condition,
        )
        .await;
    }
    let cache = &state.ocm.caches.sets;
    match read::<ManagedClusterSet>(cache, key) {
        Some(set) => {
            let condition = set_condition(state.ocm.fleet.read().members(&key.name), now);
            tell(state, cache, key, &set.metadata, set.status.as_ref(), condition).await
        }
        None if STANDING.contains(&&*key.name) => make(state, key).await,
        None => Ok(()),
    }
}

fn read<T: serde::de::DeserializeOwned>(cache: &Cache, key: &Key) -> Option<T> {
    let cached = cache.get(key).filter(|cached| !cached.terminating)?;
    state::parse(&cached)
}

async fn make(state: &State, key: &Key) -> Result<(), PassError> {
    let selector = if &*key.name == GLOBAL_SET {
        json!({"selectorType": "LabelSelector", "labelSelector": {}})
    } else {
        json!({"selectorType": "ExclusiveClusterSetLabel"})
    };
    let set = json!({"metadata": {"name": *key.name}, "spec": {"clusterSelector": selector}});
    let cache = &state.ocm.caches.sets;
    writes::create(state, cache, key, &set, "failed to make a set of clusters").await?;
    state.ocm.sets.add(key.clone(), 1);
    Ok(())
}

async fn tell(
    state: &State,
    cache: &std::sync::Arc<Cache>,
    key: &Key,
    metadata: &ObjectMeta,
    before: Option<&Conditions>,
    condition: Condition,
) -> Result<(), PassError> {
    let mut status = before.cloned().unwrap_or_default();
    condition.put(&mut status.conditions);
    if before == Some(&status) {
        return Ok(());
    }
    let resource = cache.resource().clone();
    let body = encode_status(&resource, metadata, &status);
    let what = "failed to write what a set of clusters says";
    replace_status(state, cache, &resource, key, body, what).await?;
    Ok(())
}
