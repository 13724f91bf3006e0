//! ConfigurationPolicy: objects that a cluster must have, or must not have. It lives on the cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::{Condition, ObjectMeta, null_is_default};
use crate::placement::{LabelSelector, SelectorRequirement};

/// Holds a ConfigurationPolicy that prunes until its objects are gone.
pub const PRUNE_FINALIZER: &str = "policy.open-cluster-management.io/delete-related-objects";
/// Label of definitions whose objects may be templates of policies; its value is [`TEMPLATE`].
pub const POLICY_TYPE: &str = "policy.open-cluster-management.io/policy-type";
/// The value of [`POLICY_TYPE`].
pub const TEMPLATE: &str = "template";

/// Objects that a cluster must have, or must not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigurationPolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Which objects.
    pub spec: ConfigurationSpec,
    /// How they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ConfigurationStatus>,
}

/// Which objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigurationSpec {
    /// `inform` or `enforce`, in either case; the server fills in `inform`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remediation_action: String,
    /// `low`, `medium`, `high` or `critical`, in either case. Nothing follows from it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// Namespaces of the objects that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// The objects.
    #[serde(
        rename = "object-templates",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub object_templates: Vec<ObjectTemplate>,
    /// The same as one text of YAML.
    #[serde(rename = "object-templates-raw", skip_serializing_if = "String::is_empty")]
    pub object_templates_raw: String,
    /// How often it is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_interval: Option<EvaluationInterval>,
    /// `None`, which an empty text means, `DeleteIfCreated` or `DeleteAll`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prune_object_behavior: String,
    /// Other words for what is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_message: Option<CustomMessage>,
}

/// Some namespaces: those that labels and `include` choose, without those of `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSelector {
    /// Labels with exactly these values; all of them. Absent and empty differ: empty labels choose all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements on labels; all of them. Absent and empty differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<SelectorRequirement>>,
    /// Names, as shell patterns.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub include: Vec<String>,
    /// Names, as shell patterns.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub exclude: Vec<String>,
    /// What happens with namespaces that are going: `IfMatch`, `Never` or `Default`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub terminating_inclusion: String,
}

/// One object, or some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectTemplate {
    /// `musthave`, `mustonlyhave` or `mustnothave`, in one of three spellings.
    pub compliance_type: String,
    /// The same for labels and annotations; empty: as `complianceType`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metadata_compliance_type: String,
    /// The object.
    pub object_definition: Value,
    /// Objects by labels, where the object has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<LabelSelector>,
    /// `None`, which an empty text means, `IfRequired` or `Always`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recreate_option: String,
    /// `Log`, `InStatus` or `None`; empty: as the object's kind needs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub record_diff: String,
}

/// How often a policy is looked at: a duration, `never` or `watch`, which an empty text means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluationInterval {
    /// While it is compliant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// While it is not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub noncompliant: String,
}

/// Other words for what is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomMessage {
    /// While it is compliant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// While it is not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub noncompliant: String,
}

/// How the objects are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigurationStatus {
    /// `Compliant`, `NonCompliant`, `Terminating`, or empty while nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// One for each template.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub compliancy_details: Vec<CompliancyDetails>,
    /// The objects that were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub related_objects: Vec<RelatedObject>,
    /// Objects that no template names any more, which go when it next enforces: an evaluation that only informs forgets none.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub pending_prune: Vec<RelatedObject>,
    /// Objects that are not told because there are too many, and that may have to go some time.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub further_objects: Vec<FurtherObjects>,
    /// When it was last looked at, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_evaluated: String,
    /// The generation that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_evaluated_generation: Option<i64>,
    /// What was said, the newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub history: Vec<EvaluationEntry>,
}

/// How the objects of one template are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompliancyDetails {
    /// As the status; with a capital letter on the wire.
    #[serde(rename = "Compliant", skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// One: `violation` or `notification`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
    /// Everything else (`Validity`, which is not written here).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An object that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelatedObject {
    /// Which.
    pub object: RelatedRef,
    /// `Compliant` or `NonCompliant`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<RelatedProperties>,
}

/// Objects of one kind, as briefly as can be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FurtherObjects {
    /// Group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `namespace/name uid`, and `made`, `+enforced` or `made+enforced` for those that the policy made, or enforced.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub objects: Vec<String>,
}

/// Which object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelatedRef {
    /// Group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name and namespace.
    pub metadata: RelatedMeta,
}

/// The name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RelatedMeta {
    /// The name; `-` where there are too many, or none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// What else is known of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelatedProperties {
    /// Whether the policy made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by_policy: Option<bool>,
    /// Whether an evaluation that enforced spoke of it: what was only informed about is nobody's to delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_by_policy: Option<bool>,
    /// Its uid: what is made again by somebody else is another object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What differs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// Whether the server says that nothing differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches_after_dry_run: Option<bool>,
}

/// What was said at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluationEntry {
    /// When, RFC 3339 with microseconds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_timestamp: String,
    /// What.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
