//! ManagedCluster, ManagedClusterSet and ManagedClusterSetBinding.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::{Condition, ObjectMeta, null_is_default};
use crate::placement::LabelSelector;

/// The hub has accepted the cluster.
pub const ACCEPTED: &str = "HubAcceptedManagedCluster";
/// The cluster is one of the fleet.
pub const JOINED: &str = "ManagedClusterJoined";
/// The cluster answers that it is well.
pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// A set has no clusters.
pub const SET_EMPTY: &str = "ClusterSetEmpty";
/// The set of a binding is there.
pub const BOUND: &str = "Bound";

/// A cluster as placements see it. What it says follows from the Cluster of its name; OCM's own labels, the taints and who
/// accepted it are its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedCluster {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// How it is reached, and what keeps placements off it.
    pub spec: ManagedClusterSpec,
    /// How it is.
    #[serde(skip_serializing_if = "ManagedClusterStatus::is_empty")]
    pub status: ManagedClusterStatus,
}

impl ManagedCluster {
    /// Whether it is one of the fleet.
    pub fn joined(&self) -> bool {
        Condition::find(&self.status.conditions, JOINED).is_some_and(Condition::is_true)
    }
}

/// How a cluster is reached, and what keeps placements off it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSpec {
    /// Where its API servers are.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Whether the hub accepts it.
    pub hub_accepts_client: bool,
    /// How often it has to say that it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// What keeps placements off it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub taints: Vec<Taint>,
}

/// Where an API server is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConfig {
    /// Its URL.
    pub url: String,
    /// Its authorities, in base64.
    #[serde(skip_serializing_if = "String::is_empty", rename = "caBundle")]
    pub ca_bundle: String,
}

/// What keeps placements off a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    pub effect: String,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// How a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterStatus {
    /// [`ACCEPTED`], [`JOINED`], [`AVAILABLE`] and those of others.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
    /// What its nodes have.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub capacity: BTreeMap<String, Value>,
    /// What pods there may have.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub allocatable: BTreeMap<String, Value>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// What it says about itself.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub cluster_claims: Vec<ClusterClaim>,
    /// Everything else (`managedNamespaces`).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ManagedClusterStatus {
    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A cluster's version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    /// That of Kubernetes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
}

/// Something that a cluster says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterClaim {
    /// What it speaks of.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// A set of clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSet {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Who belongs to it.
    pub spec: ClusterSetSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Conditions>,
}

/// Who belongs to a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSetSpec {
    /// By label of the set, or by any labels.
    pub cluster_selector: ClusterSelector,
    /// Everything else (`managedNamespaces`).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How the clusters of a set are found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// `ExclusiveClusterSetLabel` (also when empty) or `LabelSelector`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector_type: String,
    /// For `LabelSelector`: an empty one means all clusters, and none means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// The clusters of a set may be used in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetBinding {
    /// Metadata; the name is that of the set.
    pub metadata: ObjectMeta,
    /// Which set.
    pub spec: ClusterSetBindingSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Conditions>,
}

/// Which set is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSetBindingSpec {
    /// Its name.
    pub cluster_set: String,
}

/// A status of conditions and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The conditions.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
}
