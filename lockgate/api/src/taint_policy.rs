//! ClusterTaintPolicy: taints that follow from the conditions of clusters.

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::placement::ClusterAffinity;

/// Taints that follow from the conditions of clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTaintPolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Which taints, when and where.
    pub spec: TaintPolicySpec,
}

/// Which taints, when and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaintPolicySpec {
    /// Which clusters; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,
    /// The taints are added when all of these match; none match nothing.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub add_on_conditions: Vec<MatchCondition>,
    /// The taints are removed when all of these match; none match nothing.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// The taints.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub taints: Vec<PolicyTaint>,
}

/// A condition that must have one of some values, or none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchCondition {
    /// Its type.
    pub condition_type: String,
    /// `In` or `NotIn`.
    pub operator: String,
    /// The values.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub status_values: Vec<String>,
}

/// A taint that is added or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyTaint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule` or `NoExecute`.
    pub effect: String,
}
