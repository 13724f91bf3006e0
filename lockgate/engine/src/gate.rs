//! The gate station: which clusters get their new manifest now, which keep what they have, which are withdrawn, and why.
//!
//! Today everything is released except what is suspended, and removals wait for the new copies. Rollout strategies will
//! decide here and nowhere else.

use std::collections::BTreeSet;

use lockgate_api::BindingSpec;
use lockgate_api::policy::Suspension;

/// What one cluster may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// Its Work takes the new manifest, and is sent.
    Send,
    /// Its Work takes the new manifest for people to read; the member is not written.
    Suspended,
}

/// What happens to a cluster that is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Its Work is deleted now.
    Remove,
    /// It stays until these clusters have their copies.
    WaitFor(Vec<String>),
}

/// Whether a cluster's Work is sent.
pub fn release(spec: &BindingSpec, cluster: &str) -> Release {
    if is_suspended(spec.suspension.as_ref(), cluster) {
        Release::Suspended
    } else {
        Release::Send
    }
}

/// Whether a suspension covers a cluster.
pub fn is_suspended(suspension: Option<&Suspension>, cluster: &str) -> bool {
    suspension.is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension
                .dispatching_on_clusters
                .as_ref()
                .is_some_and(|clusters| clusters.cluster_names.iter().any(|name| name == cluster))
    })
}

/// Whether a cluster that is no longer wanted may go: when every wanted cluster has its copy. `missing` are the wanted
/// clusters whose copies are not there yet.
pub fn removal(missing: &BTreeSet<String>) -> Removal {
    if missing.is_empty() {
        Removal::Remove
    } else {
        Removal::WaitFor(missing.iter().cloned().collect())
    }
}
