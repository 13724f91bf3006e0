//! Objects that the hub serves in several versions: one of them is the template.

use lockgate_api::Binding;
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{self, VersionInput};
use serde_json::Value;

use super::{named, wake};
use crate::events::EventTarget;
use crate::state::State;

/// Whether another version of the object is the template. A policy that selects it in this one is told so, once.
pub(super) fn is_elsewhere(
    state: &State,
    id: &TemplateId,
    template: &Value,
    binding: Option<&Binding>,
) -> bool {
    let versions = state.kinds.versions(id.group(), &id.kind);
    let others: Vec<String> = versions
        .iter()
        .map(|kind| kind.resource.api_version())
        .filter(|version| *version != id.api_version)
        .collect();
    if others.is_empty() {
        return false;
    }
    let policies = state.policies.read();
    let other = claim::template_version(&VersionInput {
        template,
        binding,
        others: &others,
        policies: &policies,
    });
    let message = other.and_then(|other| {
        let policy = policies.best(template)?;
        Some(format!(
            "policy({}) selects it as {}, and it is propagated as {other}: one version of an object is its template",
            named(policy),
            id.api_version
        ))
    });
    let mut verdicts = state.verdicts.lock();
    let told = verdicts.get(id).and_then(|verdict| verdict.elsewhere.as_ref());
    if told != message.as_ref() {
        if let Some(message) = &message {
            let target = EventTarget::of_value(template);
            state.events.warn(&target, "ApplyPolicyFailed", message);
        }
        verdicts.entry(id.clone()).or_default().elsewhere = message;
    }
    if let Some(other) = other
        && binding.is_none_or(|binding| binding.spec.resource.api_version != other)
    {
        // What woke this one may concern the other, which nobody has bound yet.
        wake(
            state,
            TemplateId {
                api_version: other.to_owned(),
                ..id.clone()
            },
        );
    }
    other.is_some()
}
