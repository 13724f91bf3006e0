//! RolloutPolicy and ClusterRolloutPolicy: how changes of some objects reach their clusters, apart from the policy that
//! places them. Today they hold back; deleting one lets go.

use serde::{Deserialize, Serialize};

use crate::meta::{Condition, ObjectMeta};
use crate::policy::{ResourceSelector, Suspension};

/// A policy of either kind: one with a namespace is a RolloutPolicy, one without a ClusterRolloutPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutPolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: RolloutSpec,
    /// What became of it: a view, from which nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RolloutStatus>,
}

impl RolloutPolicy {
    /// Whether it is a ClusterRolloutPolicy.
    pub fn is_cluster_scoped(&self) -> bool {
        self.metadata.namespace.is_empty()
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        if self.is_cluster_scoped() {
            "ClusterRolloutPolicy"
        } else {
            "RolloutPolicy"
        }
    }

    /// Kind, namespace and name, for people.
    pub fn title(&self) -> String {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        if namespace.is_empty() {
            format!("{} {name}", self.kind())
        } else {
            format!("{} {namespace}/{name}", self.kind())
        }
    }
}

/// What a rollout policy wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutSpec {
    /// Which objects.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// What is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
}

/// What became of a rollout policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The generation that this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it holds back, in one spelling for people: `all clusters`, or names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suspended: String,
    /// Conditions.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
}
