//! Work: what one member was told, and what it answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keys;
use crate::meta::{Condition, ObjectMeta};

/// What one member was told. It lives in the cluster's execution namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Work {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What the member is told.
    pub spec: WorkSpec,
    /// What it answered.
    #[serde(skip_serializing_if = "WorkStatus::is_empty")]
    pub status: WorkStatus,
}

impl Work {
    /// Whether nothing is sent. Older control planes said so by a mark, as a label or an annotation.
    pub fn is_suspended(&self) -> bool {
        self.spec.suspend_dispatching == Some(true) || self.is_marked()
    }

    /// Whether it carries the older mark, which we never write.
    pub fn is_marked(&self) -> bool {
        let marks = [
            self.metadata.annotation(keys::INSTRUCTION),
            self.metadata.label(keys::INSTRUCTION),
        ];
        marks.contains(&Some("suppressed"))
    }
}

/// What the member is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkSpec {
    /// The manifests; we write exactly one.
    pub workload: Workload,
    /// Whether nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching: Option<bool>,
    /// Whether the member keeps the object when the Work is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// Manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// The manifests.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub manifests: Vec<Value>,
}

/// What the member answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkStatus {
    /// `Applied` and `Dispatching`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
    /// What was seen of each manifest.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub manifest_statuses: Vec<ManifestStatus>,
    /// What was last sent, so that a restart need not send it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied: Option<LastApplied>,
}

impl WorkStatus {
    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What was seen of one manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestStatus {
    /// Which one.
    pub identifier: ResourceIdentifier,
    /// The object's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub health: String,
}

/// Names a manifest of a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceIdentifier {
    /// Its place in the list.
    pub ordinal: i64,
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its resource; always empty, and always there.
    pub resource: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What was last sent to the member, and what the object was then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastApplied {
    /// The Work's generation.
    pub work_generation: i64,
    /// The member object's uid.
    pub uid: String,
    /// The member object's version after the write: `gen:N` for kinds with a generation, else `rv:N`.
    pub version: String,
    /// The replicas that the member's object had then, if its kind has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
}
