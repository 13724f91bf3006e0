//! Where a policy wants things: the `placement` of policies and bindings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which clusters, and how replicas are spread over them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Which clusters; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Groups of clusters in order of preference; excludes `cluster_affinity`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub cluster_affinities: Vec<ClusterAffinityTerm>,
    /// Taints that are tolerated.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub cluster_tolerations: Vec<Toleration>,
    /// How many groups of clusters, by which property.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// How replicas are given out; absent: every cluster gets all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// Which workloads go together, and which apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

/// A set of clusters: every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAffinity {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By provider, region or zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
    /// By name; empty: any.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub cluster_names: Vec<String>,
    /// Never these.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        rename = "exclude",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub exclude_clusters: Vec<String>,
}

/// A named group of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAffinityTerm {
    /// The group's name.
    pub affinity_name: String,
    /// The group.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Where replicas go that the group has no room for.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub overflow_affinities: Vec<ClusterAffinityTerm>,
}

/// Labels that must match, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Keys and their values.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// Fields that must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldSelector {
    /// Requirements; keys are `provider`, `region` and `zone`.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One requirement of a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorRequirement {
    /// The key.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`.
    pub operator: String,
    /// The values, for the operators that take some.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub values: Vec<String>,
}

/// A taint that is tolerated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The taint's key; empty with `Exists`: all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` (also when empty) or `Exists`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// The taint's value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The taint's effect; empty: all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// For how long a `NoExecute` taint is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How many groups of clusters are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    /// `cluster`, `region`, `zone` or `provider`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub spread_by_field: String,
    /// A label of clusters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub spread_by_label: String,
    /// At most this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<i64>,
    /// At least this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<i64>,
}

/// How replicas are given out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaScheduling {
    /// `Duplicated` or `Divided`; the schema's default is `Divided`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replica_scheduling_type: String,
    /// `Aggregated` or `Weighted`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replica_division_preference: String,
    /// Weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<WeightPreference>,
}

/// Weights of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightPreference {
    /// Weights by rule.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub static_weight_list: Vec<StaticWeight>,
    /// `AvailableReplicas`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dynamic_weight: String,
}

/// The weight of the clusters that a rule names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StaticWeight {
    /// Which clusters.
    pub target_cluster: ClusterAffinity,
    /// Their weight.
    pub weight: i64,
}

/// Which workloads go together, and which apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadAffinity {
    /// Together with those that share the value of a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<WorkloadAffinityTerm>,
    /// Apart from those that share the value of a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<WorkloadAffinityTerm>,
}

/// A label that groups workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadAffinityTerm {
    /// The label's key.
    pub group_by_label_key: String,
}
