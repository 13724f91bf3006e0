//! Whether the hub has our kinds.

use super::HubError;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// The kinds of ours that the hub does not serve: somebody deleted their definitions. Fails with a clear word if it serves
/// none, and is no hub of ours.
pub(super) async fn missing(link: &Link) -> Result<Vec<Resource>, HubError> {
    let ours = [
        Resource::works(),
        Resource::resource_bindings(),
        Resource::cluster_resource_bindings(),
        Resource::propagation_policies(),
        Resource::cluster_propagation_policies(),
        Resource::rollout_policies(),
        Resource::cluster_rollout_policies(),
        Resource::clusters(),
        Resource::workload_rebalancers(),
        Resource::cluster_taint_policies(),
        Resource::interpreter_customizations(),
        Resource::placements(),
        Resource::policies(),
    ];
    let count = ours.len();
    let mut missing = Vec::new();
    for resource in ours {
        match link.get(&format!("{}?limit=1", resource.collection(""))).await {
            Ok(_) => {}
            Err(LinkError::NotServed | LinkError::NotFound) => missing.push(resource),
            Err(error) => return Err(HubError::Hub(error)),
        }
    }
    match missing.first() {
        Some(first) if missing.len() == count => Err(HubError::NotInstalled(first.plural.clone())),
        _ => Ok(missing),
    }
}
