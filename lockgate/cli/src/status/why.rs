//! Why a template is not propagated, as far as the hub's objects tell.

use lockgate_api::policy::ResourceSelector;
use lockgate_api::{PropagationPolicy, keys, names};
use lockgate_engine::{TemplateId, object};
use machinery_value::labels::LabelSelector;
use serde_json::Value;

use crate::status::claim::{Claim, policy_name};
use crate::status::objects::Objects;

/// Policies that are explained one by one.
const EXPLAINED: usize = 5;

/// Why a template has no binding.
pub(crate) fn without_binding(
    id: &TemplateId,
    object: Option<&Value>,
    claim: Option<&Claim>,
    objects: &Objects,
) -> Vec<String> {
    let namespace = id.kind == "Namespace" && id.group().is_empty();
    if let Some(reason) = skipped(id, object, namespace) {
        return vec![reason];
    }
    let Some(template) = object else {
        return Vec::new();
    };
    if let Some(claim) = claim {
        return vec![claimed(claim, objects)];
    }
    if namespace {
        return vec!["namespaces are sent to every cluster without a policy".into()];
    }
    let mut matching: Vec<&PropagationPolicy> = objects
        .policies
        .iter()
        .filter(|policy| lockgate_engine::selector::policy_match(policy, template).is_some())
        .collect();
    matching.sort_by_key(|policy| policy_name(policy));
    match matching.as_slice() {
        [] => no_match(template, objects),
        [policy, ..] => vec![format!(
            "{} matches it and has not claimed it yet{}",
            policy_name(policy),
            missing_overrides(policy)
        )],
    }
}

fn claimed(claim: &Claim, objects: &Objects) -> String {
    match objects.policy(&claim.id) {
        None => format!("{} claims it and is not there any more", claim.policy),
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
    format!(": it waits for the overrides {}", policy.spec.dependent_overrides.join(", "))
}

/// Why an object is never a template, whatever the policies say.
fn skipped(id: &TemplateId, object: Option<&Value>, namespace: bool) -> Option<String> {
    const GROUPS: &[&str] = &[
        "apps.karmada.io",
        "autoscaling.karmada.io",
        "cluster.karmada.io",
        "config.karmada.io",
        "networking.karmada.io",
        "policy.karmada.io",
        "remedy.karmada.io",
        "work.karmada.io",
        "events.k8s.io",
        "coordination.k8s.io",
    ];
    let group = id.group();
    if GROUPS.contains(&group) || (group.is_empty() && id.kind == "Event") {
        return Some(format!("objects of the kind {} are never propagated", id.kind));
    }
    let home = if namespace { &id.name } else { &id.namespace };
    if names::is_reserved(home) {
        return Some(format!("the namespace {home} belongs to the control plane"));
    }
    if home.starts_with("kube-") {
        return Some(format!("the namespace {home} is skipped, as all of kube-*"));
    }
    let template = object?;
    if object::deleting(template) {
        return Some("it is being deleted".into());
    }
    if let Some(owner) = object::label(template, keys::CLAIMED_BY).filter(|owner| !owner.is_empty()) {
        return Some(format!("the label {}={owner} leaves it to somebody else", keys::CLAIMED_BY));
    }
    if namespace && id.name == "default" {
        return Some("the namespace default is in every cluster already".into());
    }
    if namespace && object::label(template, keys::SKIP_AUTO_PROPAGATION) == Some("true") {
        return Some(format!("the label {}=true keeps it here", keys::SKIP_AUTO_PROPAGATION));
    }
    None
}

/// No policy matches: what those that speak of the kind ask for.
fn no_match(template: &Value, objects: &Objects) -> Vec<String> {
    let kind = object::text(template, "kind");
    let mut near: Vec<String> = objects
        .policies
        .iter()
        .filter_map(|policy| {
            let selectors = policy.spec.resource_selectors.iter().filter(|selector| selector.kind == kind);
            let reasons: Vec<String> = selectors.map(|selector| mismatch(policy, selector, template)).collect();
            (!reasons.is_empty()).then(|| format!("{} does not match: {}", policy_name(policy), reasons.join("; ")))
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
    let labels = selector.label_selector.as_ref().and_then(|selector| serde_json::to_value(selector).ok());
    match LabelSelector::from_object(labels.as_ref()) {
        Err(error) => format!("its label selector is not valid: {error}"),
        Ok(wanted) if !wanted.matches_labels(object::labels(template)) => "its label selector does not fit".into(),
        Ok(_) => "its selector does not fit".into(),
    }
}
