//! What goes with policies: PlacementBinding, PolicySet, PlacementRule, and dependencies.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy::PolicyPlacement;
use crate::meta::{ObjectMeta, null_is_default};

/// The value of `subFilter` with which a binding only changes clusters that others select.
pub const RESTRICTED: &str = "restricted";

/// Binds policies and sets of policies to a placement. It has no spec: its fields are at the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementBinding {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// The Placement or PlacementRule, in the same namespace.
    pub placement_ref: Reference,
    /// The Policies and PolicySets, in the same namespace.
    #[serde(deserialize_with = "null_is_default")]
    pub subjects: Vec<Reference>,
    /// What is another for the clusters of this binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_overrides: Option<BindingOverrides>,
    /// [`RESTRICTED`], or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sub_filter: String,
    /// Empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// What something is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// Its group.
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What is another for the clusters of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingOverrides {
    /// `enforce` in either case, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remediation_action: String,
}

/// What must be so first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependency {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; empty: that of the policy on the hub, that of the cluster on the member.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// What its `status.compliant` must be.
    pub compliance: String,
}

/// Some policies of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySet {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Which policies.
    pub spec: PolicySetSpec,
    /// How they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicySetStatus>,
}

/// Which policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySetSpec {
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Their names.
    #[serde(deserialize_with = "null_is_default")]
    pub policies: Vec<String>,
    /// Clusters that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub exclusions: Vec<SetExclusion>,
}

/// Clusters that are left out of one policy of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetExclusion {
    /// The policy.
    pub policy_name: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The clusters.
    #[serde(deserialize_with = "null_is_default")]
    pub cluster_names: Vec<String>,
}

/// How the policies of a set are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySetStatus {
    /// Through which bindings they are placed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub placement: Vec<PolicyPlacement>,
    /// The worst of them; empty while nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// What does not count, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status_message: String,
    /// The clusters that are left out, as the spec says. Others may have written anything.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub exclusions: Vec<Value>,
}

/// The older way to choose clusters. It is served; nobody decides here: its decisions are what somebody else wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementRule {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Whatever it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Map<String, Value>>,
    /// What somebody decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementRuleStatus>,
}

/// What somebody decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementRuleStatus {
    /// The clusters.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub decisions: Vec<RuleDecision>,
}

/// One cluster that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleDecision {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_namespace: String,
}
