//! Why a template is not propagated, as far as the hub's objects tell.

use std::sync::Arc;

use lockgate_api::policy::ResourceSelector;
use lockgate_api::{Binding, PropagationPolicy, keys, names};
use lockgate_engine::claim::{Claim, SkipReason, in_cluster_namespace, skip_template};
use lockgate_engine::selector::{PolicyIndex, compile_labels};
use lockgate_engine::{TemplateId, object};
use serde_json::Value;

use crate::status::claim::{asked, claim_name, policy_name, template_of};
use crate::status::objects::Objects;
use crate::status::report::State;
use crate::status::template::is_of;

/// Policies that are explained one by one.
const EXPLAINED: usize = 5;

/// The longest name that an object may have.
const LONGEST: usize = 253;

/// Why a template is not propagated, or not any more, and what may be done about it.
#[derive(Debug)]
pub(crate) struct Why {
    pub(crate) notes: Vec<String>,
    /// None if there is nothing better than usual.
    pub(crate) next: Option<String>,
    /// How it is for that, unless it is worse somewhere; none if that is no reason for not being well.
    pub(crate) state: Option<State>,
}

impl Why {
    fn because(note: impl Into<String>) -> Self {
        Self {
            notes: vec![note.into()],
            next: None,
            state: Some(State::NotPropagated),
        }
    }

    fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }

    fn state(mut self, state: impl Into<Option<State>>) -> Self {
        self.state = state.into();
        self
    }
}

/// Why a template that has a binding is not looked at any more, if it is not.
pub(crate) fn with_binding(id: &TemplateId, template: &Value) -> Option<Why> {
    let mut why = match skip_template(template) {
        // Whoever runs the controllers may have named other namespaces, and somebody did bind it.
        None | Some(SkipReason::SystemNamespace) => return overlong(id),
        Some(reason) => skip(id, template, reason),
    };
    why.notes.push("what was sent of it stays as it is".into());
    Some(why.state(State::Frozen))
}

/// Why a template has no binding.
pub(crate) fn without_binding(
    id: &TemplateId,
    template: &Value,
    claim: Option<&Claim>,
    objects: &Objects,
) -> Why {
    let namespace = id.kind == "Namespace" && id.group().is_empty();
    if let Some(why) = skipped(id, template, namespace) {
        return why;
    }
    let place = if namespace { &id.name } else { &id.namespace };
    if objects.cluster(place).is_some() {
        return Why::because(in_cluster_namespace(place)).next(format!("lockgate status cluster/{place}"));
    }
    if let Some(claim) = claim {
        return unnameable(id, objects).unwrap_or_else(|| claimed(id, claim, objects));
    }
    if namespace {
        // It stands for itself, and its Works for a binding.
        let works = objects.works.iter().any(|work| work.carries(id));
        let state = (!works).then_some(State::NotPropagated);
        return Why::because("namespaces are sent to every cluster without a policy").state(state);
    }
    let mut policies = PolicyIndex::default();
    for policy in &objects.policies {
        policies.insert(Arc::new(policy.clone()));
    }
    let Some(policy) = policies.best(template) else {
        return Why {
            notes: no_match(template, objects),
            next: None,
            state: Some(State::NotPropagated),
        };
    };
    if let Some(why) = unnameable(id, objects) {
        return why;
    }
    let mut why = Why::because(format!(
        "{} matches it and has not claimed it yet{}",
        policy_name(policy),
        waits(policy, objects)
    ));
    why.notes.extend(objects.silence());
    why.next(format!("lockgate status {} --watch", asked(id)))
}

fn claimed(id: &TemplateId, claim: &Claim, objects: &Objects) -> Why {
    let name = claim_name(claim);
    let why = match objects.policy(&claim.id) {
        None if objects.is_gone(claim) => Why::because(format!("{name} claims it and is not there any more")),
        None => Why::because(format!("{name} claims it")),
        Some(policy) if policy.spec.is_lazy() => Why::because(format!(
            "pending: {} is Lazy and came after the template, so nothing is sent until the template changes",
            policy_name(policy)
        )),
        // If that lasts, the reason is the hub's answer to the one who tried.
        Some(policy) => Why::because(format!(
            "{} claims it and its binding is not written yet{}",
            policy_name(policy),
            waits(policy, objects)
        ))
        .next(format!("kubectl events --for {}", asked(id))),
    };
    why.state(State::Waiting)
}

fn waits(policy: &PropagationPolicy, objects: &Objects) -> String {
    let what = objects.awaits(policy);
    what.map_or_else(String::new, |what| format!(": {what}"))
}

/// Why a template cannot have a binding of its own, by the name that it would have.
fn unnameable(id: &TemplateId, objects: &Objects) -> Option<Why> {
    if let Some(why) = overlong(id) {
        return Some(why);
    }
    let name = names::binding_name(&id.kind, &id.name);
    let is_it = |binding: &&Binding| {
        binding.metadata.name == name && binding.metadata.namespace == id.namespace && !is_of(binding, id)
    };
    let holder = objects.bindings.iter().find(is_it)?;
    let other = template_of(holder);
    let note = format!(
        "its binding would be named {name}, and that is the binding of {} {} {}: nothing of it is sent; rename one of the two \
         objects",
        other.api_version, other.kind, other.name
    );
    Some(Why::because(note).next(format!("lockgate status {}", asked(&other))))
}

/// Whether the names of what would be written for a template are too long.
fn overlong(id: &TemplateId) -> Option<Why> {
    let binding = names::binding_name(&id.kind, &id.name);
    let work = names::work_name(&id.kind, &id.namespace, &id.name);
    let (what, length) = match (binding.len(), work.len()) {
        (length, _) if length > LONGEST => ("binding", length),
        (_, length) if length > LONGEST => ("Works", length),
        _ => return None,
    };
    let note = format!(
        "its name is too long: that of its {what} would have {length} characters, and at most {LONGEST} are allowed; give it a \
         shorter one"
    );
    Some(Why::because(note).next(format!("kubectl events --for {}", asked(id))))
}

/// Why an object is not propagated, whatever the policies say.
fn skipped(id: &TemplateId, template: &Value, namespace: bool) -> Option<Why> {
    let elsewhere = "lockgate status";
    if let Some(command) = rollout_of_policy(id) {
        let note = "it goes to the clusters of its PlacementBindings, and not by propagation policies";
        return Some(Why::because(note).next(command));
    }
    if let Some(reason) = skip_template(template) {
        return Some(skip(id, template, reason));
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

fn skip(id: &TemplateId, template: &Value, reason: SkipReason) -> Why {
    if reason != SkipReason::ClaimedBy {
        return Why::because(reason.message()).next("lockgate status");
    }
    let owner = object::label(template, keys::CLAIMED_BY).unwrap_or_default();
    let note = format!(
        "the label {}={owner} leaves it to somebody else",
        keys::CLAIMED_BY
    );
    Why::because(note).next(unlabel(id, keys::CLAIMED_BY))
}

/// The command that tells where a Policy is, if it is one: no binding says it.
pub(crate) fn rollout_of_policy(id: &TemplateId) -> Option<String> {
    let is_policy = id.kind == "Policy" && id.group() == "policy.open-cluster-management.io";
    is_policy.then(|| format!("lockgate rollout status {}", asked(id)))
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
