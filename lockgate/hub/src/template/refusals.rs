//! What the hub refuses to store of a template's bindings, Works and statuses, told as events by the names that programs know.
//! The pass comes again by itself; what passes with time is not told.

use lockgate_engine::TemplateId;
use lockgate_engine::dependencies::is_attached;

use super::{PassError, binding_key};
use crate::cache::Key;
use crate::events::EventTarget;
use crate::link::LinkError;
use crate::state::State;

/// Tells of a pass over a template that the hub refused.
pub(crate) fn tell(state: &State, id: &TemplateId, result: &Result<(), PassError>) {
    let Err(PassError::Link { what, error }) = result else {
        return;
    };
    let LinkError::Refused {
        code: 400..500,
        message,
        ..
    } = error
    else {
        return;
    };
    let (cache, resource) = state.bindings(&id.namespace);
    let binding = cache.get(&binding_key(id));
    let follows = binding
        .as_ref()
        .and_then(|cached| state.bindings_read.parse(cached))
        .is_some_and(|binding| is_attached(&binding));
    let reason = reason(what, follows);
    let message = format!("{what}: {message}");
    if let Some(binding) = &binding {
        let target = EventTarget::of_cached(&resource, binding);
        state.events.warn(&target, reason, &message);
    }
    let kind = state.kinds.served(&id.api_version, &id.kind);
    let template = kind.and_then(|kind| {
        let cached = kind.cache.get(&Key::new(&id.namespace, &id.name))?;
        Some(EventTarget::of_cached(&kind.resource, &cached))
    });
    if let Some(target) = template {
        state.events.warn(&target, reason, &message);
    }
}

/// The reason by what was tried. `follows` is whether the template goes where others need it.
fn reason(what: &str, follows: bool) -> &'static str {
    match what {
        "failed to create the Work" | "failed to write the Work" => "SyncWorkFailed",
        "failed to delete a Work" | "failed to let a Work go" => "CleanupWorkFailed",
        "failed to write the binding's status" | "failed to write the template's status" => {
            "AggregateStatusFailed"
        }
        _ if follows => "SyncScheduleResultToDependenciesFailed",
        _ => "ApplyPolicyFailed",
    }
}
