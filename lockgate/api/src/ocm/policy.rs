//! Policy: the root that somebody writes, and its replica `<namespace>.<name>` in the namespace of each cluster.
//!
//! # Who writes what
//!
//! The hub writes a replica's metadata and spec, and of its status `rolloutStatus`, `rolloutStatusTransitionTime` and
//! `rolloutFailedSince`. The member's side writes the rest of the status: `compliant`, `details` and `evaluatedRevision`. Each
//! keeps what the other wrote.
//!
//! # When a report counts
//!
//! Every replica carries the annotation [`REVISION`]: one opaque text that is another whenever its content or its action is
//! another, and whenever it is released again. The member's side copies the text as it is to `status.evaluatedRevision` in the
//! same write as the compliance that it speaks of, and only once **every** template of the replica with that text has been
//! evaluated after the text was seen (with a dependency that is not met, the template is `Pending`, which is a report too). A
//! text that changes while the spec stays the same asks for another evaluation. The hub believes `details[].compliant` only
//! while `status.evaluatedRevision` equals the annotation; `status.compliant` alone is shown, and proves nothing. Edits of
//! metadata or of the strategy alone leave the text as it is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy_binding::Dependency;
use crate::meta::{Condition, ObjectMeta, null_is_default};
use crate::rollout::RolloutStrategy;
use crate::rollout_policy::RolloutRun;

/// On replicas: the root, as `<namespace>.<name>`.
pub const ROOT_POLICY: &str = "policy.open-cluster-management.io/root-policy";
/// On replicas: the cluster.
pub const CLUSTER_NAME: &str = "policy.open-cluster-management.io/cluster-name";
/// On replicas: the namespace of the cluster.
pub const CLUSTER_NAMESPACE: &str = "policy.open-cluster-management.io/cluster-namespace";
/// On what belongs to the policies of one replica on a member: the name of the replica.
pub const PARENT_POLICY: &str = "policy.open-cluster-management.io/policy";
/// On replicas: which content and action this is, and when it was released. See the module's text.
pub const REVISION: &str = "policy.open-cluster-management.io/rollout-revision";
/// On roots: what clusters do that wait for a new version: [`INFORM`] (also when absent) or [`ENFORCE_PREVIOUS`].
pub const WHILE_WAITING: &str = "policy.open-cluster-management.io/while-waiting";
/// The value of [`WHILE_WAITING`] with which a waiting cluster keeps its old version, enforced as before.
pub const ENFORCE_PREVIOUS: &str = "enforce-previous";
/// On replicas: tells Argo CD that they are nobody's business.
pub const ARGO_COMPARE: &str = "argocd.argoproj.io/compare-options";
/// The value of [`ARGO_COMPARE`].
pub const ARGO_IGNORE: &str = "IgnoreExtraneous";
/// On roots: whatever it says, it is not copied to replicas.
pub const TRIGGER_UPDATE: &str = "policy.open-cluster-management.io/trigger-update";

/// The action that reports and changes nothing.
pub const INFORM: &str = "inform";
/// The action of a template that only informs, whatever its policy says, in any case.
pub const INFORM_ONLY: &str = "informonly";
/// The action that changes what is not as it should be.
pub const ENFORCE: &str = "enforce";

/// Everything is as it should be.
pub const COMPLIANT: &str = "Compliant";
/// Something is not as it should be.
pub const NON_COMPLIANT: &str = "NonCompliant";
/// Something else must be so first.
pub const PENDING: &str = "Pending";

/// Which rule a condition of a root speaks of: whether it can be followed as it is written.
pub const CONDITION_ACCEPTED: &str = "Accepted";
/// Condition of a root: clusters are chosen for it.
pub const CONDITION_PLACED: &str = "Placed";

/// What is to be so on clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is to be so.
    pub spec: PolicySpec,
    /// What is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicyStatus>,
}

/// What is to be so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySpec {
    /// With `true` it has no replicas.
    pub disabled: bool,
    /// With `false` only labels and annotations of the framework are copied to replicas; absent: all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_policy_metadata: Option<bool>,
    /// [`INFORM`] or [`ENFORCE`] in any case, for all templates; empty: each has its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remediation_action: String,
    /// The templates.
    #[serde(rename = "policy-templates", deserialize_with = "null_is_default")]
    pub policy_templates: Vec<PolicyTemplate>,
    /// What must be so before any template counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub dependencies: Vec<Dependency>,
    /// Accepted; nothing follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub_template_options: Option<Map<String, Value>>,
    /// How clusters take turns in enforcing it; absent: all at once. Replicas have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyTemplate {
    /// The object that is made on the cluster.
    pub object_definition: Value,
    /// What must be so before it counts, beside what the policy says.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub extra_dependencies: Vec<Dependency>,
    /// Whether it counts as compliant while it waits for something else.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_pending: bool,
}

/// What is so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// On roots: which bindings count.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub placement: Vec<PolicyPlacement>,
    /// On roots: every cluster, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub status: Vec<ClusterCompliance>,
    /// [`COMPLIANT`], [`NON_COMPLIANT`], [`PENDING`], or empty while nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// On replicas `ToApply`, `Progressing`, `Succeeded`, `Failed` or `TimeOut`; on roots one of the middle three.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rollout_status: String,
    /// Since when, by the hub's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_status_transition_time: Option<String>,
    /// On replicas: since when it is not compliant after its release, by the hub's clock: its time runs from then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_failed_since: Option<String>,
    /// On replicas: each template, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub details: Vec<TemplateDetails>,
    /// On replicas: the [`REVISION`] of which `details` speak.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evaluated_revision: String,
    /// On roots: how its last change reaches the clusters. A view, from which nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutRun>,
    /// On roots: what is wrong with it, and what is ignored.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
    /// On roots: the generation of which this speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A binding that counts for a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyPlacement {
    /// The binding.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placement_binding: String,
    /// Its placement.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placement: String,
    /// Its placement rule, if it has one instead.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placement_rule: String,
    /// The set through which it counts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy_set: String,
    /// Never written.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub decisions: Vec<Value>,
    /// Clusters that the set leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub exclusions: Vec<Exclusion>,
}

/// A cluster that is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exclusion {
    /// The cluster.
    pub cluster_name: String,
}

/// How one cluster is, as the root tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterCompliance {
    /// The cluster.
    pub clustername: String,
    /// Its namespace.
    pub clusternamespace: String,
    /// As on the replica; empty while nobody knows.
    pub compliant: String,
    /// As on the replica.
    #[serde(rename = "rolloutStatus", skip_serializing_if = "String::is_empty")]
    pub rollout_status: String,
    /// As on the replica.
    #[serde(
        rename = "rolloutStatusTransitionTime",
        skip_serializing_if = "Option::is_none"
    )]
    pub rollout_status_transition_time: Option<String>,
    /// Never written.
    #[serde(
        rename = "remainingBindings",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub remaining_bindings: Vec<Value>,
}

/// How one template is on its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateDetails {
    /// Which template.
    pub template_meta: TemplateMeta,
    /// [`COMPLIANT`], [`NON_COMPLIANT`], [`PENDING`], or empty while nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// What was said of it, the newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub history: Vec<HistoryEntry>,
}

/// The name of a template. What else its metadata has is not told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateMeta {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What was said of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryEntry {
    /// When, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<String>,
    /// What: the state, a semicolon, and why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The event that said it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event_name: String,
}
