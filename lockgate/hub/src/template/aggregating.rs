//! A template's status as a script makes it, and what becomes of that.

use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::{Binding, Condition};
use lockgate_engine::TemplateId;
use lockgate_engine::interpret::{InterpretError, Operation};
use serde_json::Value;

use super::PassError;
use super::report::told_of;
use crate::cache::Key;
use crate::link::LinkError;
use crate::state::{self, State};

/// The condition of a binding whose template has no status, because the script that makes it fails.
pub(super) const AGGREGATED: &str = "Aggregated";

/// What a script answers: the template's status, if it is a new one.
pub(super) type Answer = Result<Option<Value>, InterpretError>;

/// The template's status, if a script says what it is.
pub(super) fn ask(
    state: &State,
    id: &TemplateId,
    binding: &Binding,
    items: &[AggregatedStatusItem],
) -> Option<Answer> {
    let interpreter = state.interpreter(&id.api_version, &id.kind)?;
    interpreter.script(Operation::Aggregate)?;
    let key = Key::new(&id.namespace, &id.name);
    let template = state.kinds.served(&id.api_version, &id.kind)?.cache.get(&key)?;
    let template: Value = state::parse(&template)?;
    let told_of = told_of(state, binding);
    let items: Vec<AggregatedStatusItem> = items
        .iter()
        .filter(|item| told_of.contains(item.cluster_name.as_str()))
        .cloned()
        .collect();
    interpreter.aggregate(&template, &items)
}

/// What came of writing a status that a script made: if the hub does not take what it says, that is the script's error.
pub(super) fn blame(state: &State, id: &TemplateId, written: Result<(), PassError>) -> Result<(), PassError> {
    written.map_err(|error| match error {
        PassError::Link {
            what,
            error:
                ref refusal @ LinkError::Refused {
                    code,
                    ref reason,
                    ref message,
                },
        } if refusal.is_about_content() => {
            let interpreter = state.interpreter(&id.api_version, &id.kind);
            let script = interpreter
                .as_ref()
                .and_then(|one| one.script(Operation::Aggregate));
            let message = match script {
                Some(script) => script.refused(message).to_string(),
                None => message.clone(),
            };
            let error = LinkError::Refused {
                code,
                reason: reason.clone(),
                message,
            };
            PassError::Link { what, error }
        }
        other => other,
    })
}

/// Why the template's status is not what the script makes; what was said `before` where nobody can tell.
pub(super) fn complaint(
    answer: &Answer,
    written: &Result<(), PassError>,
    before: &[Condition],
) -> Option<(&'static str, String)> {
    let message = match (answer, written) {
        (Err(error), _) => error.to_string(),
        (Ok(_), Ok(())) => return None,
        (
            Ok(_),
            Err(PassError::Link {
                error: error @ LinkError::Refused { message, .. },
                ..
            }),
        ) if error.is_about_content() => message.clone(),
        (Ok(_), Err(_)) => Condition::find(before, AGGREGATED)?.message.clone(),
    };
    Some(("ScriptFailed", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hub_refuses_of_a_script_is_said() {
        let refused = |code| {
            Err(PassError::Link {
                what: "failed to write the template's status",
                error: LinkError::Refused {
                    code,
                    reason: "Invalid".to_owned(),
                    message: "status.phase".to_owned(),
                },
            })
        };
        let before = [Condition {
            kind: AGGREGATED.to_owned(),
            message: "as before".to_owned(),
            ..Condition::default()
        }];
        let said = |written: &Result<(), PassError>, before: &[Condition]| {
            complaint(&Ok(None), written, before).map(|(_, message)| message)
        };
        assert_eq!(said(&Ok(()), &before), None);
        for code in [400, 413, 422] {
            assert_eq!(said(&refused(code), &[]).as_deref(), Some("status.phase"));
        }
        // What is no word about the status says nothing of the script.
        for written in [refused(403), refused(503), Err(PassError::Again)] {
            assert_eq!(said(&written, &[]), None);
            assert_eq!(said(&written, &before).as_deref(), Some("as before"));
        }
    }
}
