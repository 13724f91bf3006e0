//! Whether the hub has our kinds.

use lockgate_api::definitions;
use serde_json::Value;

use super::HubError;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// The kinds of ours that the hub does not serve: somebody deleted their definitions, or an older version installed them.
/// Fails with a clear word if it serves none of Karmada's, and is no hub of ours: those of Open Cluster Management may be
/// somebody else's.
pub(super) async fn missing(link: &Link) -> Result<Vec<Resource>, HubError> {
    let (mut missing, mut served) = (Vec::new(), false);
    for resource in ours() {
        match link.get(&format!("{}?limit=1", resource.collection(""))).await {
            Ok(_) => served |= resource.group.ends_with(".karmada.io"),
            Err(LinkError::NotServed | LinkError::NotFound) => missing.push(resource),
            Err(error) => return Err(HubError::Hub(error)),
        }
    }
    match missing.first() {
        Some(first) if !served => Err(HubError::NotInstalled(first.plural.clone())),
        _ => Ok(missing),
    }
}

/// Every kind that is installed: what is followed is among them.
fn ours() -> Vec<Resource> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let defined = |definition: Value| {
        let spec = &definition["spec"];
        Resource::new(
            &text(&spec["group"]),
            &text(&spec["versions"][0]["name"]),
            &text(&spec["names"]["plural"]),
            &text(&spec["names"]["kind"]),
            spec["scope"] == "Namespaced",
        )
    };
    definitions::crds().into_iter().map(defined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocm::OcmCaches;

    #[test]
    fn whatever_is_followed_is_made_again() {
        let ours = ours();
        for resource in [
            Resource::works(),
            Resource::resource_bindings(),
            Resource::cluster_resource_bindings(),
            Resource::propagation_policies(),
            Resource::cluster_propagation_policies(),
            Resource::override_policies(),
            Resource::cluster_override_policies(),
            Resource::rollout_policies(),
            Resource::cluster_rollout_policies(),
            Resource::clusters(),
            Resource::workload_rebalancers(),
            Resource::cluster_taint_policies(),
            Resource::interpreter_customizations(),
        ] {
            assert!(ours.contains(&resource), "{resource}");
        }
        OcmCaches::follow(|resource, _| {
            assert!(ours.contains(&resource), "{resource}");
            std::sync::Arc::new(crate::cache::Cache::new(
                &resource,
                "",
                None,
                std::sync::Arc::new(|_| {}),
            ))
        });
    }
}
