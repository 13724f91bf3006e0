//! PropagationPolicy and ClusterPropagationPolicy: which objects go where.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::keys;
use crate::meta::{Condition, ObjectMeta};
use crate::placement::{LabelSelector, Placement};

/// A policy of either kind: one with a namespace is a PropagationPolicy, one without a ClusterPropagationPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationPolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: PropagationSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PropagationStatus>,
}

impl PropagationPolicy {
    /// Whether it is a ClusterPropagationPolicy.
    pub fn is_cluster_scoped(&self) -> bool {
        self.metadata.namespace.is_empty()
    }

    /// The id that its claims carry: that of its label, else its uid. A policy that is made again under the same name
    /// is another one, unless it brings the label with it, as one that is restored from a backup does.
    pub fn permanent_id(&self) -> &str {
        let key = if self.is_cluster_scoped() {
            keys::CPP_ID
        } else {
            keys::PP_ID
        };
        match self.metadata.label(key) {
            Some(id) if !id.is_empty() => id,
            _ => &self.metadata.uid,
        }
    }
}

/// What a policy wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationSpec {
    /// Which objects.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// Has no meaning any more.
    #[serde(skip_serializing_if = "is_false")]
    pub association: bool,
    /// Whether what the objects refer to follows them.
    #[serde(skip_serializing_if = "is_false")]
    pub propagate_deps: bool,
    /// Where to.
    pub placement: Placement,
    /// The higher wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// `Always` or `Never`: whether it takes objects from policies of lower priority.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preemption: String,
    /// Overrides that must exist before anything is sent.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub dependent_overrides: Vec<String>,
    /// Who places the objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// What happens when a cluster or an application fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Value>,
    /// `Abort` or `Overwrite`: what happens to objects that a member already has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conflict_resolution: String,
    /// `Lazy`, or empty: at once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub activation_preference: String,
    /// What is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Whether members keep objects whose templates are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// The order of placing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
}

impl PropagationSpec {
    /// Whether what the objects refer to follows them: also where a ServiceImport is selected, whose Service is nowhere else.
    pub fn propagates_deps(&self) -> bool {
        let is_import = |selector: &ResourceSelector| {
            selector.api_version == "multicluster.x-k8s.io/v1alpha1" && selector.kind == "ServiceImport"
        };
        self.propagate_deps || self.resource_selectors.iter().any(is_import)
    }

    /// Whether changes of this policy wait for the template's own.
    pub fn is_lazy(&self) -> bool {
        self.activation_preference == "Lazy"
    }

    /// Whether it takes objects from policies of lower priority.
    pub fn preempts(&self) -> bool {
        self.preemption == "Always"
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// Which objects a policy is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSelector {
    /// Their apiVersion.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// Their namespace; empty: any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Their name; empty: any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Their labels; not looked at when a name is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// What is held back. Both spellings of each field are accepted on policies; bindings carry the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Suspension {
    /// Nothing is sent anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,
    /// Nothing is sent to these clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
    /// Another spelling of `dispatching`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching: Option<bool>,
    /// Another spelling of `dispatching_on_clusters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching_on_clusters: Option<SuspendClusters>,
    /// Nothing is placed; on bindings only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<bool>,
    /// Why, for people; on rollout policies only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Clusters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuspendClusters {
    /// Their names.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub cluster_names: Vec<String>,
}

/// Where the order of placing comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulePriority {
    /// `KubePriorityClass`.
    pub priority_class_source: String,
    /// The class's name.
    pub priority_class_name: String,
}

/// What became of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationStatus {
    /// The generation that this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many templates it owns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<i64>,
    /// How many of them are as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date: Option<i64>,
    /// How many of them wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<i64>,
    /// How many of them could not be applied somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<i64>,
    /// The first names of those that wait.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub pending_templates: Vec<String>,
    /// Since when its selectors are what they are, RFC 3339, by the server's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectors_since: Option<String>,
    /// The policy's resourceVersion when they became so: what was written in the same second is told apart by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectors_version: Option<String>,
    /// The hash of the selectors that the two speak of: for others they mean nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectors_hash: Option<String>,
    /// Conditions.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_label_of_its_scope_else_the_uid() {
        // Namespace, labels, expected id.
        let cases = [
            ("shop", vec![], "uid-1"),
            ("shop", vec![(keys::PP_ID, "label-1")], "label-1"),
            ("shop", vec![(keys::PP_ID, "")], "uid-1"),
            ("shop", vec![(keys::CPP_ID, "label-2")], "uid-1"),
            ("", vec![(keys::CPP_ID, "label-2")], "label-2"),
            ("", vec![(keys::PP_ID, "label-1")], "uid-1"),
        ];
        for (namespace, labels, expected) in cases {
            let policy = PropagationPolicy {
                metadata: ObjectMeta {
                    namespace: namespace.to_owned(),
                    uid: "uid-1".to_owned(),
                    labels: labels
                        .iter()
                        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                        .collect(),
                    ..ObjectMeta::default()
                },
                ..PropagationPolicy::default()
            };
            assert_eq!(policy.is_cluster_scoped(), namespace.is_empty());
            assert_eq!(policy.permanent_id(), expected, "{namespace:?} {labels:?}");
        }
    }
}
