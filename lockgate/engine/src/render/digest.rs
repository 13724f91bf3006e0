//! The digest of everything that a manifest is rendered from.
//!
//! A Work keeps the digest of its inputs, and is rendered again when it differs. So what counts here must not depend on
//! how rendering works today: pruning by kind, for one, may become better without moving anything. The prefix names the
//! format; what is counted under it never changes.
//!
//! Not counted, although the manifest carries it: the claim, so that a template changes hands without a write to any
//! member; the template's uid and generation, which move without any change of what it says (a restored backup, our own
//! claim); and the Work's own id. They are brought up to date when something else moves.

use lockgate_api::keys;
use machinery_value::hash::{ValueHash, canonical_hash};
use serde_json::{Map, Value, json};

use super::RenderInput;
use super::overrides::{SelectedRule, relevant_overrides, rules_may_set_replicas};
use super::stamp::resolution;
use crate::claim::{short_hash, user_content};

/// Names what is counted, and how.
const FORMAT: &str = "1";

/// How many hexadecimal digits of the hash are kept.
const DIGITS: usize = 20;

/// Metadata that the server writes or that is never sent; part of the format.
const NOT_COUNTED: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Keys that contain `.karmada.io` and yet say what somebody wants of members; part of the format.
const SWITCHES: [&str; 2] = [keys::RETAIN_REPLICAS, keys::SKIP_AUTO_PROPAGATION];

/// The digest of a manifest itself.
pub fn manifest_hash(manifest: &Value) -> String {
    let mut hash = canonical_hash(manifest).to_string();
    hash.truncate(DIGITS);
    hash
}

/// The hash of what the user wrote in a template. It is the same for all clusters, so it is worth keeping.
pub fn content_hash(template: &Value) -> ValueHash {
    activated_hash(template, None)
}

/// As [`content_hash`], of a template whose content had another hash when it was activated, and has been moved by defaults
/// since: they are no reason to render it again.
pub fn activated_hash(template: &Value, content: Option<&str>) -> ValueHash {
    let metadata = template["metadata"].as_object().map(counted_metadata);
    let content = content.map_or_else(|| short_hash(&user_content(template)), str::to_owned);
    canonical_hash(&json!({ "metadata": metadata, "content": content }))
}

fn counted_metadata(metadata: &Map<String, Value>) -> Value {
    let counted = metadata
        .iter()
        .filter(|(field, _)| !NOT_COUNTED.contains(&field.as_str()))
        .filter_map(|(field, value)| match value {
            Value::Object(map) if field == "labels" || field == "annotations" => {
                let map = counted_keys(map);
                (!map.is_empty()).then(|| (field.clone(), Value::Object(map)))
            }
            Value::Null => None,
            other => Some((field.clone(), other.clone())),
        });
    Value::Object(counted.collect())
}

fn counted_keys(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !key.contains(".karmada.io") || SWITCHES.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The digest of what a manifest is rendered from: `1-` and hexadecimal digits.
pub fn inputs_digest(input: &RenderInput<'_>) -> String {
    inputs_digest_with(&content_hash(input.template), input)
}

/// As [`inputs_digest`], with the template's [`content_hash`] at hand.
pub fn inputs_digest_with(content: &ValueHash, input: &RenderInput<'_>) -> String {
    let rules = relevant_overrides(input.template, input.cluster, input.overrides);
    of_rules(content, input, &rules)
}

/// As [`inputs_digest`], for a namespace that goes everywhere.
pub fn namespace_digest(
    namespace: &Value,
    cluster: &lockgate_api::Cluster,
    overrides: &[std::sync::Arc<lockgate_api::OverridePolicy>],
) -> String {
    of_namespace(namespace, &relevant_overrides(namespace, cluster, overrides))
}

/// The digest when the rules are known.
pub(super) fn of_input(input: &RenderInput<'_>, rules: &[SelectedRule<'_>]) -> String {
    of_rules(&content_hash(input.template), input, rules)
}

fn of_rules(content: &ValueHash, input: &RenderInput<'_>, rules: &[SelectedRule<'_>]) -> String {
    let resolution = resolution(input.template, input.conflict_resolution);
    let mut inputs = json!({
        "template": content.to_string(),
        "binding": input.binding_id,
        "replicas": input.replicas,
        "completions": input.completions,
        "conflictResolution": resolution,
        "overrides": rules.iter().map(counted_rule).collect::<Vec<_>>(),
    });
    if let Some(script) = input.reviser.filter(|_| input.replicas.is_some()) {
        inputs["reviser"] = script.digest().into();
    }
    if input.keeps && rules_may_set_replicas(rules) {
        // Elsewhere the number alone tells it apart.
        inputs["keeps"] = true.into();
    }
    if let Some(carried) = input.carried() {
        inputs["carried"] = json!(carried.labels);
    }
    shown(&inputs)
}

pub(super) fn of_namespace(namespace: &Value, rules: &[SelectedRule<'_>]) -> String {
    shown(&json!({
        "namespace": content_hash(namespace).to_string(),
        "overrides": rules.iter().map(counted_rule).collect::<Vec<_>>(),
    }))
}

/// A rule as the Work names it: the policy, and what it changes.
fn counted_rule(rule: &SelectedRule<'_>) -> Value {
    json!({
        "namespace": rule.policy.metadata.namespace,
        "policy": rule.policy.metadata.name,
        "overriders": rule.overriders,
    })
}

fn shown(inputs: &Value) -> String {
    let hash = canonical_hash(inputs).to_string();
    format!("{FORMAT}-{}", &hash[..DIGITS])
}
