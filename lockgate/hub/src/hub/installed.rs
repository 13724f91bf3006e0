//! Whether the hub has our kinds.

use super::HubError;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// Fails with a clear word if our kinds are not there.
pub(super) async fn check_installed(link: &Link) -> Result<(), HubError> {
    for resource in [
        Resource::works(),
        Resource::propagation_policies(),
        Resource::rollout_policies(),
        Resource::cluster_rollout_policies(),
        Resource::clusters(),
        Resource::workload_rebalancers(),
        Resource::cluster_taint_policies(),
        Resource::interpreter_customizations(),
        Resource::placements(),
        Resource::policies(),
    ] {
        match link.get(&format!("{}?limit=1", resource.collection(""))).await {
            Ok(_) => {}
            Err(LinkError::NotServed | LinkError::NotFound) => {
                return Err(HubError::NotInstalled(resource.plural));
            }
            Err(error) => return Err(HubError::Hub(error)),
        }
    }
    Ok(())
}
