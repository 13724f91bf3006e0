//! Who owns a template.

use std::sync::Arc;

use lockgate_api::PropagationPolicy;

use super::binding::propagation_differs;
use super::record::Past;
use super::{Claim, ClaimInput, ClaimKind};
use crate::selector::policy_match;

/// The policy that owns the template from now on, and whose claim it took by preemption.
pub(super) fn holder(input: &ClaimInput<'_>, past: &Past) -> (Option<Arc<PropagationPolicy>>, Option<Claim>) {
    let best = || input.policies.best(input.template).cloned();
    let claim = claimed(input);
    let current = claim.as_ref().and_then(|claim| find(input, claim));

    if input.gates.static_policy {
        // Policies never move a template that was propagated: it is matched from scratch when the user changes it. One
        // that never was is taken by the best policy as soon as there is one.
        let from_scratch = past.changed() || past.asked || !managed(input, past, claim.as_ref());
        return match current {
            Some(current) if !from_scratch => (Some(current), None),
            None if !from_scratch && input.binding.is_some() => (None, None),
            _ => (best(), None),
        };
    }
    match current {
        None => (best(), None),
        Some(current) => match preemptor(input, &current) {
            Some(winner) => (Some(winner), claim),
            None => (Some(current), None),
        },
    }
}

/// Who owns the template if nobody takes it: the present owner; else nobody, where something was sent.
pub(super) fn stays(input: &ClaimInput<'_>) -> Option<Arc<PropagationPolicy>> {
    match claimed(input).and_then(|claim| find(input, &claim)) {
        None if input.binding.is_none() => input.policies.best(input.template).cloned(),
        current => current,
    }
}

/// The template's claim is the authority. One that was stripped (`kubectl replace`) is restored from the binding.
fn claimed(input: &ClaimInput<'_>) -> Option<Claim> {
    Claim::on_template(input.template).or_else(|| Claim::on_binding(&input.binding?.metadata))
}

/// Whether something may have been activated for this template.
fn managed(input: &ClaimInput<'_>, past: &Past, claim: Option<&Claim>) -> bool {
    let activated = match &past.record {
        Some(record) => !record.policy.is_empty(),
        None => claim.is_some() && !past.copied,
    };
    input.binding.is_some() || activated
}

/// The policy behind a claim: it exists, with the same id, and still matches.
fn find(input: &ClaimInput<'_>, claim: &Claim) -> Option<Arc<PropagationPolicy>> {
    let policy = input.policies.get(&claim.namespace, &claim.name)?;
    let is_same = policy.permanent_id() == claim.id || is_restored(input, policy);
    (is_same && policy_match(policy, input.template).is_some()).then(|| policy.clone())
}

/// Whether a policy that has the name of the owner, and another id, counts as the owner: where that moves nothing. A backup
/// brings policies back with new uids, and whoever else matches would move what nobody asked to move. One that says something
/// else than what was activated is another policy, and competes with all.
fn is_restored(input: &ClaimInput<'_>, policy: &PropagationPolicy) -> bool {
    input.binding.is_some_and(|binding| {
        input.gates.static_policy || policy.spec.is_lazy() || !propagation_differs(policy, binding)
    })
}

/// The policy that takes the template from its holder: `preemption: Always`, the template named by its selectors, and a
/// strictly higher rank. Every PropagationPolicy ranks above every ClusterPropagationPolicy.
fn preemptor(input: &ClaimInput<'_>, current: &PropagationPolicy) -> Option<Arc<PropagationPolicy>> {
    if !input.gates.preemption {
        return None;
    }
    input
        .policies
        .preemptors(input.template)
        .into_iter()
        .find(|candidate| rank(candidate) > rank(current))
        .cloned()
}

fn rank(policy: &PropagationPolicy) -> (bool, i32) {
    let namespaced = Claim::by(policy).kind == ClaimKind::Namespaced;
    (namespaced, policy.spec.priority.unwrap_or(0))
}
