//! Revisions: what every cluster gets at one time, kept so that one can go back to it.
//!
//! A revision holds what rendering needs and nothing that follows from it: the user's content once, the replicas of each
//! cluster, and the override policies about the template.

use std::sync::Arc;

use lockgate_api::binding::TargetCluster;
use lockgate_api::{Binding, ObjectMeta, OverridePolicy, Placement};
use machinery_value::hash::{ValueHash, canonical_hash};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::render::{activated_hash, matching_policies, resolution};

/// How many hexadecimal digits of a hash are kept.
const DIGITS: usize = 20;

/// What every cluster gets at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revision {
    /// The template, without its status and without who owns which field.
    pub template: Value,
    /// The hash of its content when it was activated, if defaults have moved it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// Where it goes, with how many replicas.
    pub clusters: Vec<TargetCluster>,
    /// The override policies about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<OverridePolicy>,
    /// What happens to objects that members made themselves.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conflict_resolution: String,
}

impl Revision {
    /// What a binding's clusters get now.
    pub fn of(
        template: &Value,
        basis: Option<String>,
        binding: &Binding,
        overrides: &[Arc<OverridePolicy>],
    ) -> Self {
        let mut template = template.clone();
        if let Some(object) = template.as_object_mut() {
            object.remove("status");
        }
        if let Some(metadata) = template["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
        let overrides = matching_policies(&template, overrides)
            .into_iter()
            .map(|policy| bare(policy))
            .collect();
        Self {
            template,
            basis,
            clusters: binding.spec.clusters.clone(),
            overrides,
            conflict_resolution: binding.spec.conflict_resolution.clone(),
        }
    }

    /// The hash of its content, as Works count it.
    pub fn content(&self) -> ValueHash {
        activated_hash(&self.template, self.basis.as_deref())
    }
}

/// A policy as far as rendering looks at it.
fn bare(policy: &OverridePolicy) -> OverridePolicy {
    OverridePolicy {
        metadata: ObjectMeta {
            name: policy.metadata.name.clone(),
            namespace: policy.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: policy.spec.clone(),
    }
}

/// What every cluster gets, in one word: the same as long as no Work would change.
pub fn revision_digest<'a>(clusters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let clusters: serde_json::Map<String, Value> = clusters
        .into_iter()
        .map(|(cluster, digest)| (cluster.to_owned(), digest.into()))
        .collect();
    short(&Value::Object(clusters))
}

/// What somebody wants, in one word: the content, the overrides, the placement and whether what members made themselves is
/// taken over, but not what clusters make of them. What
/// was given up is not sent again until this changes.
pub fn intent(
    template: &Value,
    content: &ValueHash,
    placement: Option<&Placement>,
    conflict_resolution: &str,
    overrides: &[Arc<OverridePolicy>],
) -> String {
    let overrides: Vec<Value> = matching_policies(template, overrides)
        .into_iter()
        .map(|policy| {
            json!({
                "namespace": policy.metadata.namespace,
                "name": policy.metadata.name,
                // Everything of ours can be encoded.
                "spec": serde_json::to_value(&policy.spec).unwrap_or_default(),
            })
        })
        .collect();
    let mut intent = json!({
        "content": content.to_string(),
        "placement": serde_json::to_value(placement).unwrap_or_default(),
        "overrides": overrides,
    });
    let resolution = resolution(template, conflict_resolution);
    if resolution != "abort" {
        // What is the rule is not said, so that what was given up before this was counted stays given up.
        intent["conflictResolution"] = resolution.into();
    }
    short(&intent)
}

/// A value in one word.
pub(crate) fn short(value: &Value) -> String {
    let mut hash = canonical_hash(value).to_string();
    hash.truncate(DIGITS);
    hash
}
