//! The kinds of Open Cluster Management (OCM): its clusters and sets, the placements that choose among them, and the policies
//! that are kept on what was chosen.

pub mod cluster;
pub mod configuration;
pub mod placement;
pub mod policy;
pub mod policy_binding;

pub use cluster::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
pub use configuration::ConfigurationPolicy;
pub use placement::{AddOnPlacementScore, Placement, PlacementDecision};
pub use policy::Policy;
pub use policy_binding::{PlacementBinding, PlacementRule, PolicySet};

/// The group of clusters, sets and placements.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// The group of policies.
pub const POLICY_GROUP: &str = "policy.open-cluster-management.io";
/// The group of placement rules.
pub const APPS_GROUP: &str = "apps.open-cluster-management.io";

/// On ManagedClusters: the set of clusters that they belong to.
pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
/// On namespaces: the managed cluster that they belong to.
pub const CLUSTER_NAMESPACE: &str = "cluster.open-cluster-management.io/managedCluster";
/// On ManagedClusters: their own name.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
/// On ManagedClusters: the keys of the labels that were copied from the Cluster, so that those that go there go here.
pub const COPIED_LABELS: &str = "lockgate.karmada.io/copied-labels";
/// The set of those who were put into no other.
pub const DEFAULT_SET: &str = "default";
/// The set of all.
pub const GLOBAL_SET: &str = "global";

/// On decisions: the placement that made them.
pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
/// On decisions: the index of their group.
pub const GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
/// On decisions: the name of their group; empty for most.
pub const GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
/// On placements, with the value `true`: nobody decides.
pub const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// Taint of a cluster that says that it is not well.
pub const TAINT_UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
/// Taint of a cluster that does not answer.
pub const TAINT_UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";

/// Whether a label belongs to OCM, so that it lives on the ManagedCluster alone.
pub fn is_own_key(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| {
        domain == "open-cluster-management.io" || domain.ends_with(".open-cluster-management.io")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_belong_to_their_domain() {
        for key in [
            CLUSTER_SET,
            CLUSTER_NAME,
            "feature.open-cluster-management.io/addon",
        ] {
            assert!(is_own_key(key), "{key}");
        }
        for key in [
            "tier",
            "example.com/open-cluster-management.io",
            "notopen-cluster-management.io/x",
        ] {
            assert!(!is_own_key(key), "{key}");
        }
    }
}
