//! What the hub refuses to store of a template's bindings, Works and statuses, told as events by the names that programs know.
//! The pass comes again by itself; what passes with time is not told.

use lockgate_engine::TemplateId;
use lockgate_engine::dependencies::is_attached;
use lockgate_engine::gate::record;

use super::{PassError, binding_key, brief};
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
    let message = format!("{what}: {}", brief::cut(message, brief::MESSAGE));
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

/// Why the hub does not take a Work, in words; none if it took it, or if that may pass by itself.
pub(super) fn of_work(result: &Result<(), PassError>) -> Option<String> {
    match result {
        Err(error @ PassError::Link { error: link, .. })
            if matches!(link, LinkError::Refused { .. }) && link.is_refusal() =>
        {
            // As long as a rollout keeps it: what is told is the same after a restart.
            Some(brief::cut(&error.to_string(), record::WORDS).to_owned())
        }
        _ => None,
    }
}

/// Whether it is what a Work says that the hub does not take: it does not take it from anybody, nor later. That we may not write is
/// said of us, is over as soon as somebody mends our roles, and speaks neither for nor against what a rollout sends.
pub(super) fn is_of_content(result: &Result<(), PassError>) -> bool {
    matches!(result, Err(PassError::Link { error, .. }) if error.is_about_content())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_with_time_is_no_refusal() {
        let what = "failed to write the Work";
        let refused = |code, message: &str| {
            let message = message.to_owned();
            let reason = "Invalid".to_owned();
            LinkError::Refused {
                code,
                reason,
                message,
            }
        };
        let told = |error| {
            let result = Err(PassError::Link { what, error });
            of_work(&result).map(|why| (why, is_of_content(&result)))
        };
        for (code, of_content) in [(400, true), (403, false), (405, false), (413, true), (422, true)] {
            let (why, is_of_content) = told(refused(code, "Too long")).unwrap_or_default();
            assert!(why.starts_with(what) && why.ends_with("Too long"), "{why}");
            assert_eq!(is_of_content, of_content, "{why}");
        }
        for error in [
            refused(401, "who are you"),
            refused(408, "too late"),
            refused(500, "no room"),
            LinkError::Conflict,
            LinkError::NotFound,
            LinkError::Unreachable("no route".to_owned()),
        ] {
            assert_eq!(told(error), None);
        }
        assert_eq!(of_work(&Ok(())), None);
        assert!(!is_of_content(&Ok(())));
        assert_eq!(of_work(&Err(PassError::Again)), None);
    }
}
