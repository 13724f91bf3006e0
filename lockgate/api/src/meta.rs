//! What every object carries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An object's metadata. What is not named here is kept as it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// The name; empty only before creation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Given by the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Given by the server; a write that carries it fails if the object has moved on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Given by the server; 0 for kinds without one.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When its deletion was asked for; present while finalizers hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub annotations: BTreeMap<String, String>,
    /// Who must agree before it goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub finalizers: Vec<String>,
    /// What it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ObjectMeta {
    /// Whether its deletion was asked for.
    pub fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The owner that controls it.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// Makes it that of an object to be created: without what the server gave to the one before.
    pub fn make_new(&mut self) {
        *self = Self {
            name: std::mem::take(&mut self.name),
            namespace: std::mem::take(&mut self.namespace),
            labels: std::mem::take(&mut self.labels),
            annotations: std::mem::take(&mut self.annotations),
            finalizers: std::mem::take(&mut self.finalizers),
            owner_references: std::mem::take(&mut self.owner_references),
            ..Self::default()
        };
    }
}

pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// Go writes an absent map or list as null.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What an object belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// The owner's apiVersion.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid: a re-created owner is another one.
    pub uid: String,
    /// Whether this owner controls the object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub block_owner_deletion: Option<bool>,
}

/// A condition, as every status carries them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation that it speaks of, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: String,
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Condition {
    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// The condition of this type.
    pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
        conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Puts this condition in its place. The time of the last transition is kept if the status is the same.
    pub fn put(mut self, conditions: &mut Vec<Condition>) {
        match conditions.iter_mut().find(|old| old.kind == self.kind) {
            Some(old) => {
                if old.status == self.status {
                    self.last_transition_time.clone_from(&old.last_transition_time);
                }
                *old = self;
            }
            None => conditions.push(self),
        }
    }
}
