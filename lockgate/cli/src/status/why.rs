//! Why a template is not propagated, as far as the hub's objects tell.

use std::sync::Arc;

use lockgate_api::policy::ResourceSelector;
use lockgate_api::{PropagationPolicy, keys, names};
use lockgate_engine::claim::{Claim, SkipReason, in_cluster_namespace, skip_template};
use lockgate_engine::selector::{PolicyIndex, compile_labels};
use lockgate_engine::{TemplateId, object};
use serde_json::Value;

use crate::status::claim::{claim_name, policy_name};
use crate::status::objects::Objects;

/// Policies that are explained one by one.
const EXPLAINED: usize = 5;

/// Why a template has no binding, and what may be done about it.
#[derive(Debug, Default)]
pub(crate) struct Why {
    pub(crate) notes: Vec<String>,
    /// None if there is nothing better than usual.
    pub(crate) next: Option<String>,
}

impl Why {
    fn because(note: impl Into<String>) -> Self {
        Self {
            notes: vec![note.into()],
            next: None,
        }
    }

    fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }
}

/// Why a template has no binding.
pub(crate) fn without_binding(
    id: &TemplateId,
    object: Option<&Value>,
    claim: Option<&Claim>,
    objects: &Objects,
) -> Why {
    let Some(template) = object else {
        return Why::default();
    };
    let namespace = id.kind == "Namespace" && id.group().is_empty();
    if let Some(why) = skipped(id, template, namespace) {
        return why;
    }
    let place = if namespace { &id.name } else { &id.namespace };
    if objects.cluster(place).is_some() {
        return Why::because(in_cluster_namespace(place)).next(format!("lockgate status cluster/{place}"));
    }
    if let Some(claim) = claim {
        return Why::because(claimed(claim, objects));
    }
    if namespace {
        return Why::because("namespaces are sent to every cluster without a policy");
    }
    let mut policies = PolicyIndex::default();
    for policy in &objects.policies {
        policies.insert(Arc::new(policy.clone()));
    }
    match policies.best(template) {
        None => Why {
            notes: no_match(template, objects),
            next: None,
        },
        Some(policy) => Why {
            notes: [
                Some(format!(
                    "{} matches it and has not claimed it yet{}",
                    policy_name(policy),
                    missing_overrides(policy)
                )),
                objects.silence(),
            ]
            .into_iter()
            .flatten()
            .collect(),
            next: Some(format!("lockgate status {} --watch", asked(id))),
        },
    }
}

fn claimed(claim: &Claim, objects: &Objects) -> String {
    match objects.policy(&claim.id) {
        None if objects.is_gone(claim) => {
            format!("{} claims it and is not there any more", claim_name(claim))
        }
        None => format!("{} claims it", claim_name(claim)),
        Some(policy) if policy.spec.is_lazy() => format!(
            "pending: {} is Lazy and came after the template, so nothing is sent until the template changes",
            policy_name(policy)
        ),
        Some(policy) => format!(
            "{} claims it and its binding is not written yet{}",
            policy_name(policy),
            missing_overrides(policy)
        ),
    }
}

fn missing_overrides(policy: &PropagationPolicy) -> String {
    if policy.spec.dependent_overrides.is_empty() {
        return String::new();
    }
    format!(
        ": it waits for the overrides {}",
        policy.spec.dependent_overrides.join(", ")
    )
}

/// Why an object is not propagated, whatever the policies say.
fn skipped(id: &TemplateId, template: &Value, namespace: bool) -> Option<Why> {
    let elsewhere = "lockgate status";
    if let Some(command) = rollout_of_policy(id) {
        let note = "it goes to the clusters of its PlacementBindings, and not by propagation policies";
        return Some(Why::because(note).next(command));
    }
    match skip_template(template) {
        Some(SkipReason::ClaimedBy) => {
            let owner = object::label(template, keys::CLAIMED_BY).unwrap_or_default();
            let note = format!(
                "the label {}={owner} leaves it to somebody else",
                keys::CLAIMED_BY
            );
            return Some(Why::because(note).next(unlabel(id, keys::CLAIMED_BY)));
        }
        Some(reason) => return Some(Why::because(reason.message()).next(elsewhere)),
        None => {}
    }
    if object::deleting(template) {
        return Some(Why::because("it is being deleted").next(elsewhere));
    }
    if !namespace {
        return None;
    }
    if id.name == "default" {
        return Some(Why::because("the namespace default is in every cluster already").next(elsewhere));
    }
    if names::is_reserved(&id.name) {
        return Some(Why::because("it belongs to the control plane").next(elsewhere));
    }
    if id.name.starts_with("kube-") {
        return Some(Why::because("namespaces named kube-* are never propagated").next(elsewhere));
    }
    let skip = object::label(template, keys::SKIP_AUTO_PROPAGATION) == Some("true");
    skip.then(|| {
        let note = format!("the label {}=true keeps it here", keys::SKIP_AUTO_PROPAGATION);
        Why::because(note).next(unlabel(id, keys::SKIP_AUTO_PROPAGATION))
    })
}

/// The command that tells where a Policy is, if it is one: no binding says it.
pub(crate) fn rollout_of_policy(id: &TemplateId) -> Option<String> {
    let is_policy = id.kind == "Policy" && id.group() == "policy.open-cluster-management.io";
    is_policy.then(|| format!("lockgate rollout status {}", asked(id)))
}

/// A template as commands name it.
fn asked(id: &TemplateId) -> String {
    let kind = id.kind.to_lowercase();
    match id.namespace.as_str() {
        "" => format!("{kind}/{}", id.name),
        namespace => format!("{kind}/{} -n {namespace}", id.name),
    }
}

/// The command that takes a label off.
fn unlabel(id: &TemplateId, key: &str) -> String {
    format!("kubectl label {} {key}-", asked(id))
}

/// No policy matches: what those that speak of the kind ask for.
fn no_match(template: &Value, objects: &Objects) -> Vec<String> {
    let kind = object::text(template, "kind");
    let mut near: Vec<String> = objects
        .policies
        .iter()
        .filter_map(|policy| {
            let selectors = policy
                .spec
                .resource_selectors
                .iter()
                .filter(|selector| selector.kind == kind);
            let reasons: Vec<String> = selectors
                .map(|selector| mismatch(policy, selector, template))
                .collect();
            (!reasons.is_empty())
                .then(|| format!("{} does not match: {}", policy_name(policy), reasons.join("; ")))
        })
        .collect();
    near.sort();
    if near.is_empty() {
        return vec![format!("no policy selects objects of the kind {kind}")];
    }
    let more = near.len().saturating_sub(EXPLAINED);
    near.truncate(EXPLAINED);
    near.insert(0, "no policy matches it".into());
    if more > 0 {
        near.push(format!("and {more} more policies for {kind} do not match"));
    }
    near
}

/// In what a template differs from what a selector of its kind asks for.
fn mismatch(policy: &PropagationPolicy, selector: &ResourceSelector, template: &Value) -> String {
    let own = object::text(template, "apiVersion");
    if selector.api_version != own {
        return format!("it selects apiVersion {}, this is {own}", selector.api_version);
    }
    if policy.metadata.deleting() {
        return "it is being deleted".into();
    }
    let namespace = object::meta_text(template, "namespace");
    if !policy.is_cluster_scoped() && policy.metadata.namespace != namespace {
        return match namespace {
            "" => "it reaches only objects of its own namespace".into(),
            _ => format!("it reaches only its own namespace, {}", policy.metadata.namespace),
        };
    }
    if !selector.namespace.is_empty() && selector.namespace != namespace {
        return format!("it selects the namespace {}", selector.namespace);
    }
    if !selector.name.is_empty() && selector.name != object::meta_text(template, "name") {
        return format!("it selects the name {}", selector.name);
    }
    match selector.label_selector.as_ref().map(compile_labels) {
        Some(Err(error)) => format!("its label selector is not valid: {error}"),
        Some(Ok(wanted)) if !wanted.matches_labels(object::labels(template)) => {
            format!("it selects the labels {wanted}")
        }
        _ => "its selector does not fit".into(),
    }
}
