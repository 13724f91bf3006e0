//! WorkloadRebalancer: workloads that are to be placed anew, once.

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;

/// Workloads that are to be placed anew, once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRebalancer {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Which workloads.
    pub spec: RebalancerSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "RebalancerStatus::is_empty")]
    pub status: RebalancerStatus,
}

/// Which workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RebalancerSpec {
    /// The workloads.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub workloads: Vec<WorkloadReference>,
    /// How long it is kept once it is done; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// A workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadReference {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for objects of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What became of a rebalancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RebalancerStatus {
    /// Its workloads, sorted.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub observed_workloads: Vec<ObservedWorkload>,
    /// The generation that this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When it was done, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<String>,
}

impl RebalancerStatus {
    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What became of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedWorkload {
    /// Which one.
    pub workload: WorkloadReference,
    /// `Successful` or `Failed`; empty while it is under way.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
