//! What an activation writes to the binding.

use lockgate_api::binding::ObjectReference;
use lockgate_api::policy::Suspension;
use lockgate_api::{Binding, BindingSpec, PropagationPolicy};
use serde_json::Value;

use crate::gate::is_suspended;
use crate::object::{self, TemplateId};
use crate::render;

/// The binding's spec after an activation. What placing, eviction, dependencies and rebalancing wrote is kept.
pub fn activated_spec(
    policy: &PropagationPolicy,
    template: &Value,
    previous: Option<&BindingSpec>,
) -> BindingSpec {
    let mut spec = previous.cloned().unwrap_or_default();
    spec.resource = reference(template);
    let workload = render::workload(template);
    spec.replicas = workload.as_ref().map_or(0, |workload| workload.replicas);
    spec.replica_requirements = workload.and_then(|workload| workload.requirements);
    apply_policy(policy, &mut spec);
    spec
}

/// How a binding names its template.
pub fn reference(template: &Value) -> ObjectReference {
    let id = TemplateId::of(template);
    ObjectReference {
        api_version: id.api_version,
        kind: id.kind,
        namespace: id.namespace,
        name: id.name,
        uid: object::meta_text(template, "uid").to_owned(),
        resource_version: object::meta_text(template, "resourceVersion").to_owned(),
    }
}

/// Whether the policy's propagation fields differ from the activated ones.
pub fn propagation_differs(policy: &PropagationPolicy, binding: &Binding) -> bool {
    differs(policy, &binding.spec)
}

/// Whether anything of the policy is left to wait for: what it suspends never waits.
pub fn would_wait(policy: &PropagationPolicy, binding: &Binding) -> bool {
    let mut spec = binding.spec.clone();
    spec.suspension = held_suspension(policy.spec.suspension.as_ref(), spec.suspension.as_ref());
    differs(policy, &spec)
}

/// Whether an edit of a policy moves nothing and takes nothing, whatever its templates are: it was Lazy and is, its
/// binding relationships are the same, and so is what it suspends. Then only the number of templates that wait changes.
pub fn only_waits(old: &PropagationPolicy, new: &PropagationPolicy) -> bool {
    let (before, after) = (&old.spec, &new.spec);
    before.is_lazy()
        && after.is_lazy()
        && old.metadata.uid == new.metadata.uid
        && old.permanent_id() == new.permanent_id()
        && !old.metadata.deleting()
        && !new.metadata.deleting()
        && before.resource_selectors == after.resource_selectors
        && before.priority == after.priority
        && before.preemption == after.preemption
        && before.suspension == after.suspension
}

fn differs(policy: &PropagationPolicy, activated: &BindingSpec) -> bool {
    let mut spec = activated.clone();
    apply_policy(policy, &mut spec);
    spec != *activated
}

fn apply_policy(policy: &PropagationPolicy, spec: &mut BindingSpec) {
    let wanted = &policy.spec;
    spec.placement = Some(wanted.placement.clone());
    spec.propagate_deps = wanted.propagates_deps();
    spec.scheduler_name.clone_from(&wanted.scheduler_name);
    spec.failover.clone_from(&wanted.failover);
    spec.conflict_resolution = if wanted.conflict_resolution.is_empty() {
        "Abort".to_owned()
    } else {
        wanted.conflict_resolution.clone()
    };
    spec.preserve_resources_on_deletion = wanted.preserve_resources_on_deletion;
    spec.suspension = suspension_of(wanted.suspension.as_ref(), spec.suspension.as_ref());
}

/// The binding's suspension: the policy's in the released spelling, and the binding's own `scheduling`.
pub fn suspension_of(policy: Option<&Suspension>, binding: Option<&Suspension>) -> Option<Suspension> {
    let scheduling = binding.and_then(|suspension| suspension.scheduling);
    let Some(policy) = policy else {
        return scheduling.map(|scheduling| Suspension {
            scheduling: Some(scheduling),
            ..Suspension::default()
        });
    };
    Some(Suspension {
        dispatching: policy.dispatching.or(policy.suspend_dispatching),
        dispatching_on_clusters: policy
            .dispatching_on_clusters
            .clone()
            .or_else(|| policy.suspend_dispatching_on_clusters.clone()),
        scheduling,
        ..Suspension::default()
    })
}

/// The binding's suspension while the rest of the policy waits. What a policy suspends is suspended at once, for that moves
/// nothing; what it no longer suspends stays suspended until it is activated.
pub fn held_suspension(policy: Option<&Suspension>, binding: Option<&Suspension>) -> Option<Suspension> {
    let wanted = suspension_of(policy, None).unwrap_or_default();
    let mut names = wanted
        .dispatching_on_clusters
        .map_or_else(Vec::new, |clusters| clusters.cluster_names);
    let mut held = binding.cloned();
    if wanted.dispatching == Some(true) {
        held.get_or_insert_default().dispatching = Some(true);
    }
    names.retain(|name| !is_suspended(held.as_ref(), name));
    if !names.is_empty() {
        let suspension = held.get_or_insert_default();
        let listed = &mut suspension
            .dispatching_on_clusters
            .get_or_insert_default()
            .cluster_names;
        for name in names {
            if !listed.contains(&name) {
                listed.push(name);
            }
        }
    }
    held
}

#[cfg(test)]
mod tests;
