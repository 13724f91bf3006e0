//! OverridePolicy and ClusterOverridePolicy: what differs from cluster to cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::ObjectMeta;
use crate::placement::ClusterAffinity;
use crate::policy::ResourceSelector;

/// An override policy of either kind: one with a namespace is an OverridePolicy, one without a ClusterOverridePolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverridePolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What differs.
    pub spec: OverrideSpec,
}

/// What differs, for which objects, where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideSpec {
    /// Which objects; empty: all.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The rules, in order.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub override_rules: Vec<OverrideRule>,
    /// The older form of a single rule: which clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// The older form of a single rule: what differs.
    #[serde(skip_serializing_if = "Overriders::is_empty")]
    pub overriders: Overriders,
}

/// What differs in some clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideRule {
    /// Which clusters; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// What differs.
    pub overriders: Overriders,
}

/// Changes of a manifest, applied in the order image, command, args, labels, annotations, field, plaintext.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overriders {
    /// JSON patches.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub plaintext: Vec<PlaintextOverrider>,
    /// Parts of images.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub image_overrider: Vec<ImageOverrider>,
    /// Commands of containers.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub command_overrider: Vec<CommandArgsOverrider>,
    /// Arguments of containers.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub args_overrider: Vec<CommandArgsOverrider>,
    /// Labels.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,
    /// Annotations.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,
    /// Documents inside string fields.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub field_overrider: Vec<FieldOverrider>,
}

impl Overriders {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One operation of a JSON patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlaintextOverrider {
    /// A JSON pointer.
    pub path: String,
    /// `add`, `remove` or `replace`.
    pub operator: String,
    /// The value, for add and replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A change of a part of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageOverrider {
    /// Which string; absent: the images of all containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ImagePredicate>,
    /// `Registry`, `Repository` or `Tag`.
    pub component: String,
    /// `add`, `remove` or `replace`.
    pub operator: String,
    /// The value, for add and replace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Where the image is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePredicate {
    /// A JSON pointer.
    pub path: String,
}

/// A change of a container's command or arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommandArgsOverrider {
    /// Which container.
    pub container_name: String,
    /// `add` or `remove`.
    pub operator: String,
    /// The strings.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub value: Vec<String>,
}

/// A change of labels or annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelAnnotationOverrider {
    /// `add`, `remove` or `replace`.
    pub operator: String,
    /// Keys and values.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub value: BTreeMap<String, String>,
}

/// A change inside a document that is kept in a string.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldOverrider {
    /// A JSON pointer to the string.
    pub field_path: String,
    /// Operations on a JSON document.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub json: Vec<FieldPatch>,
    /// Operations on a YAML document.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub yaml: Vec<FieldPatch>,
}

/// One operation inside a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldPatch {
    /// A JSON pointer into the document.
    pub sub_path: String,
    /// `add`, `remove` or `replace`.
    pub operator: String,
    /// The value, for add and replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}
