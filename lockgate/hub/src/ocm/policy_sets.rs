//! The pass over one set of policies: how they are together.

use std::collections::BTreeMap;

use lockgate_api::ocm::{PlacementBinding, Policy, PolicySet};
use lockgate_engine::governance::tell::set_status;

use crate::cache::Key;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{PassError, encode_status, replace_status};

/// Writes what a set says of itself.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let cache = &state.ocm.caches.policy_sets;
    let Some(cached) = cache.get(key).filter(|cached| !cached.terminating) else {
        return Ok(());
    };
    let Some(set) = state::parse::<PolicySet>(&cached) else {
        return Ok(());
    };
    let policies: BTreeMap<&str, Policy> = set
        .spec
        .policies
        .iter()
        .filter_map(|name| {
            let cached = state.ocm.caches.policies.find(&key.namespace, name)?;
            Some((name.as_str(), state::parse(&cached)?))
        })
        .collect();
    let bindings = state.ocm.governance.read().bindings_in(&key.namespace);
    let bindings: Vec<&PlacementBinding> = bindings.iter().map(|binding| &**binding).collect();
    let status = set_status(&set, &bindings, |name| policies.get(name));
    if set.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let resource = Resource::policy_sets();
    let body = encode_status(&resource, &set.metadata, &status);
    let what = "failed to write the status of a set of policies";
    replace_status(state, cache, &resource, key, body, what).await?;
    Ok(())
}
