//! ResourceBinding and ClusterResourceBinding: what was activated for one template, and where it goes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::{Condition, ObjectMeta};
use crate::placement::Placement;
use crate::policy::{Suspension, is_false};

/// A binding of either kind: one with a namespace is a ResourceBinding, one without a ClusterResourceBinding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binding {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What was activated, and where it goes.
    pub spec: BindingSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "BindingStatus::is_empty")]
    pub status: BindingStatus,
}

/// What was activated, and where it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingSpec {
    /// The template.
    pub resource: ObjectReference,
    /// Whether what it refers to follows it.
    #[serde(skip_serializing_if = "is_false")]
    pub propagate_deps: bool,
    /// What one replica needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<Value>,
    /// The template's replicas.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i64,
    /// Parts of a workload that have replicas of their own.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub components: Vec<Value>,
    /// The clusters that it goes to.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub clusters: Vec<TargetCluster>,
    /// The placement that was activated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Who places it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// What happens when a cluster or the application fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Value>,
    /// `Abort` or `Overwrite`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conflict_resolution: String,
    /// Whether members keep the object when the template is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Clusters that it is leaving gracefully.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub graceful_eviction_tasks: Vec<EvictionTask>,
    /// Who needs it as a dependency, and where.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub required_by: Vec<BindingSnapshot>,
    /// When it was last asked to be placed anew, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reschedule_triggered_at: Option<String>,
    /// What is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// The order of placing, as a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<Value>,
    /// The groups of `workloadAffinity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
}

/// The groups of workloads that a template belongs to, each as `key=value`; empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadAffinityGroups {
    /// Those that go together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub affinity_group: String,
    /// Those that stay apart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub anti_affinity_group: String,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// The template of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped templates.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its resourceVersion when it was activated.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// A cluster that a binding goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetCluster {
    /// Its name.
    pub name: String,
    /// Its replicas; 0 for what has none.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i64,
}

/// A cluster that a binding is leaving.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionTask {
    /// Which one.
    pub from_cluster: String,
    /// `Directly`, `Gracefully` or `Never`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub purge_mode: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Who needs an object as a dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingSnapshot {
    /// The binding's namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The binding's name.
    pub name: String,
    /// Where it goes.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub clusters: Vec<TargetCluster>,
}

/// What became of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingStatus {
    /// The generation that was placed.
    #[serde(skip_serializing_if = "is_zero")]
    pub scheduler_observed_generation: i64,
    /// The group of clusters in use.
    #[serde(
        skip_serializing_if = "String::is_empty",
        rename = "schedulerObservingAffinityName"
    )]
    pub scheduler_observed_affinity_name: String,
    /// When it was last placed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<String>,
    /// `Scheduled` and `FullyApplied`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
    /// What each cluster reports, by name.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub aggregated_status: Vec<AggregatedStatusItem>,
    /// How its last change reaches the clusters, where a strategy says in which order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<crate::rollout_policy::RolloutRun>,
}

impl BindingStatus {
    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What one cluster reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregatedStatusItem {
    /// Which cluster.
    pub cluster_name: String,
    /// The object's status there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Whether the manifest was applied.
    #[serde(skip_serializing_if = "is_false")]
    pub applied: bool,
    /// Why not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub health: String,
}
