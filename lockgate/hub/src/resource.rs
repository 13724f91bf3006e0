//! Resources: where the objects of a kind are served. Paths here are complete and escaped, ready for a [`Link`](crate::Link).

use std::fmt;

/// A kind as one version of a group serves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The name in paths, such as `deployments`.
    pub plural: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with it, as discovery says; empty when that was never asked.
    pub verbs: Vec<String>,
}

impl Resource {
    /// A resource whose verbs nobody asked for.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            verbs: Vec::new(),
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether discovery named this verb.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// The path of its objects in a namespace; in all namespaces, or in the cluster, when that is empty.
    pub fn collection(&self, namespace: &str) -> String {
        let mut path = String::with_capacity(96);
        if self.group.is_empty() {
            path.push_str("/api/");
        } else {
            path.push_str("/apis/");
            push_escaped(&mut path, &self.group);
            path.push('/');
        }
        push_escaped(&mut path, &self.version);
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            push_escaped(&mut path, namespace);
        }
        path.push('/');
        push_escaped(&mut path, &self.plural);
        path
    }

    /// The path of one object.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        let mut path = self.collection(namespace);
        path.push('/');
        push_escaped(&mut path, name);
        path
    }

    /// The path of one object's status.
    pub fn status(&self, namespace: &str, name: &str) -> String {
        self.object(namespace, name) + "/status"
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}.{}", self.plural, self.version)
        } else {
            write!(f, "{}.{}.{}", self.plural, self.version, self.group)
        }
    }
}

/// Adds text so that it is one segment of a path, or one value of a query. Most names need nothing; names of roles may hold
/// nearly any character.
pub(crate) fn push_escaped(path: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            path.push(char::from(byte));
        } else {
            path.push('%');
            path.push(char::from(HEX[usize::from(byte >> 4)]));
            path.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

macro_rules! known {
    ($($(#[$doc:meta])* $name:ident: $group:literal $version:literal $plural:literal $kind:literal $namespaced:literal;)*) => {
        /// The resources that the hub knows without discovery.
        impl Resource {
            $($(#[$doc])* pub fn $name() -> Self {
                Self::new($group, $version, $plural, $kind, $namespaced)
            })*
        }
    };
}

known! {
    /// What a member cluster shall hold.
    works: "work.karmada.io" "v1alpha1" "works" "Work" true;
    /// Where a namespaced template goes.
    resource_bindings: "work.karmada.io" "v1alpha2" "resourcebindings" "ResourceBinding" true;
    /// Where a cluster-scoped template goes.
    cluster_resource_bindings: "work.karmada.io" "v1alpha2" "clusterresourcebindings" "ClusterResourceBinding" false;
    /// Policies of a namespace.
    propagation_policies: "policy.karmada.io" "v1alpha1" "propagationpolicies" "PropagationPolicy" true;
    /// Policies of the whole hub.
    cluster_propagation_policies: "policy.karmada.io" "v1alpha1" "clusterpropagationpolicies" "ClusterPropagationPolicy" false;
    /// Overrides of a namespace.
    override_policies: "policy.karmada.io" "v1alpha1" "overridepolicies" "OverridePolicy" true;
    /// Overrides of the whole hub.
    cluster_override_policies: "policy.karmada.io" "v1alpha1" "clusteroverridepolicies" "ClusterOverridePolicy" false;
    /// What is held back, of objects of a namespace.
    rollout_policies: "policy.karmada.io" "v1alpha1" "rolloutpolicies" "RolloutPolicy" true;
    /// What is held back, of objects of the whole hub.
    cluster_rollout_policies: "policy.karmada.io" "v1alpha1" "clusterrolloutpolicies" "ClusterRolloutPolicy" false;
    /// Taints that policies put on clusters.
    cluster_taint_policies: "policy.karmada.io" "v1alpha1" "clustertaintpolicies" "ClusterTaintPolicy" false;
    /// Quotas over all members.
    federated_resource_quotas: "policy.karmada.io" "v1alpha1" "federatedresourcequotas" "FederatedResourceQuota" true;
    /// Requests to place again.
    workload_rebalancers: "apps.karmada.io" "v1alpha1" "workloadrebalancers" "WorkloadRebalancer" false;
    /// Who would be called to read a kind; there are none of ours.
    interpreter_webhooks: "config.karmada.io" "v1alpha1" "resourceinterpreterwebhookconfigurations" "ResourceInterpreterWebhookConfiguration" false;
    /// How kinds are read, as customized.
    interpreter_customizations: "config.karmada.io" "v1alpha1" "resourceinterpretercustomizations" "ResourceInterpreterCustomization" false;
    /// Member clusters.
    clusters: "cluster.karmada.io" "v1alpha1" "clusters" "Cluster" false;
    /// Clusters as placements see them.
    managed_clusters: "cluster.open-cluster-management.io" "v1" "managedclusters" "ManagedCluster" false;
    /// Sets of clusters.
    managed_cluster_sets: "cluster.open-cluster-management.io" "v1beta2" "managedclustersets" "ManagedClusterSet" false;
    /// Sets that a namespace may use.
    managed_cluster_set_bindings: "cluster.open-cluster-management.io" "v1beta2" "managedclustersetbindings" "ManagedClusterSetBinding" true;
    /// Placements, which choose clusters.
    placements: "cluster.open-cluster-management.io" "v1beta1" "placements" "Placement" true;
    /// What placements chose.
    placement_decisions: "cluster.open-cluster-management.io" "v1beta1" "placementdecisions" "PlacementDecision" true;
    /// What add-ons think of clusters.
    add_on_placement_scores: "cluster.open-cluster-management.io" "v1alpha1" "addonplacementscores" "AddOnPlacementScore" true;
    /// Policies of Open Cluster Management: roots and replicas.
    policies: "policy.open-cluster-management.io" "v1" "policies" "Policy" true;
    /// What puts policies on clusters.
    placement_bindings: "policy.open-cluster-management.io" "v1" "placementbindings" "PlacementBinding" true;
    /// Sets of policies.
    policy_sets: "policy.open-cluster-management.io" "v1beta1" "policysets" "PolicySet" true;
    /// Objects that a cluster must have.
    configuration_policies: "policy.open-cluster-management.io" "v1" "configurationpolicies" "ConfigurationPolicy" true;
    /// The older placements, which somebody else decides.
    placement_rules: "apps.open-cluster-management.io" "v1" "placementrules" "PlacementRule" true;
    /// Namespaces.
    namespaces: "" "v1" "namespaces" "Namespace" false;
    /// Secrets.
    secrets: "" "v1" "secrets" "Secret" true;
    /// ConfigMaps.
    config_maps: "" "v1" "configmaps" "ConfigMap" true;
    /// Nodes.
    nodes: "" "v1" "nodes" "Node" false;
    /// Pods.
    pods: "" "v1" "pods" "Pod" true;
    /// Events.
    events: "" "v1" "events" "Event" true;
    /// Classes of priority.
    priority_classes: "scheduling.k8s.io" "v1" "priorityclasses" "PriorityClass" false;
    /// Revisions.
    controller_revisions: "apps" "v1" "controllerrevisions" "ControllerRevision" true;
    /// Leases.
    leases: "coordination.k8s.io" "v1" "leases" "Lease" true;
    /// Definitions of custom kinds.
    crds: "apiextensions.k8s.io" "v1" "customresourcedefinitions" "CustomResourceDefinition" false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_complete_and_escaped() {
        let roles = Resource::new(
            "rbac.authorization.k8s.io",
            "v1",
            "clusterroles",
            "ClusterRole",
            false,
        );
        let cases = [
            (
                Resource::works().collection(""),
                "/apis/work.karmada.io/v1alpha1/works",
            ),
            (
                Resource::works().collection("karmada-es-a"),
                "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-a/works",
            ),
            (
                Resource::works().status("n", "w"),
                "/apis/work.karmada.io/v1alpha1/namespaces/n/works/w/status",
            ),
            (
                Resource::namespaces().object("", "shop"),
                "/api/v1/namespaces/shop",
            ),
            // A namespace means nothing to a resource of the cluster.
            (Resource::namespaces().collection("shop"), "/api/v1/namespaces"),
            (
                roles.object("", "system:node a/b%?é"),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node%20a%2Fb%25%3F%C3%A9",
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(path, expected);
        }
        assert_eq!(Resource::secrets().api_version(), "v1");
        assert_eq!(roles.api_version(), "rbac.authorization.k8s.io/v1");
        assert_eq!(Resource::leases().to_string(), "leases.v1.coordination.k8s.io");
    }
}
