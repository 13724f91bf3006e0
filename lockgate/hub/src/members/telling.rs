//! What a Work's status says, written once for each difference.

use std::sync::Arc;

use lockgate_api::Work;
use lockgate_engine::TemplateId;
use lockgate_engine::observe;
use serde_json::Value;

use super::dispatching::{SendError, last_applied};
use crate::cache::Key;
use crate::state::{REPORT, State};
use crate::template::{self, REPORT_AFTER};

/// What came of a Work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The member has it.
    Applied {
        /// The object was gone and is made again.
        recreated: bool,
    },
    /// The member said no.
    Failed {
        /// Why.
        message: String,
        /// The object was gone and could not be made again.
        recreated: bool,
    },
    /// Nothing was sent, because it is suspended.
    Suspended,
    /// Nothing was sent, and what was said before still holds.
    Unchanged,
}

/// Writes a Work's status, if it says something new.
pub(crate) async fn tell(
    state: &Arc<State>,
    key: &Key,
    work: &Work,
    outcome: Outcome,
    live: Option<&Value>,
) -> Result<(), SendError> {
    let now = state.clock.now();
    let mut status = work.status.clone();
    let generation = work.metadata.generation;
    match &outcome {
        Outcome::Applied { recreated } => {
            observe::dispatching(false, now).put(&mut status.conditions);
            let known = lockgate_api::Condition::find(&status.conditions, "Applied").cloned();
            let told = observe::applied(Ok(()), *recreated, generation, now);
            // How it came to be applied is history once it is.
            let same = known.is_some_and(|known| {
                known.is_true()
                    && known.observed_generation.is_none_or(|seen| seen == generation)
                    && !recreated
            });
            if !same {
                told.put(&mut status.conditions);
            }
            if let Some(live) = live {
                status.last_applied = Some(last_applied(work, live));
            }
        }
        Outcome::Failed { message, recreated } => {
            observe::dispatching(false, now).put(&mut status.conditions);
            observe::applied(Err(message), *recreated, generation, now).put(&mut status.conditions);
        }
        Outcome::Suspended => {
            let before =
                lockgate_api::Condition::find(&status.conditions, "Dispatching").map(|c| c.status.clone());
            let told = observe::dispatching(true, now);
            if before.as_deref() != Some("False") {
                let target = crate::events::EventTarget {
                    api_version: "work.karmada.io/v1alpha1".to_owned(),
                    kind: "Work".to_owned(),
                    namespace: work.metadata.namespace.clone(),
                    name: work.metadata.name.clone(),
                    uid: work.metadata.uid.clone(),
                };
                state.events.success(&target, "WorkDispatching", &told.message);
            }
            told.put(&mut status.conditions);
        }
        Outcome::Unchanged => {}
    }
    if let Some(live) = live
        && lockgate_engine::object::label(live, lockgate_api::keys::MANAGED) == Some("true")
    {
        status.manifest_statuses = vec![observe::manifest_status(live, 0)];
    }
    if status == work.status {
        return Ok(());
    }
    let mut told = work.clone();
    told.status = status;
    template::write_work_status(state, key, &told)
        .await
        .map_err(|error| match error {
            template::PassError::Again => SendError::Again,
            other => SendError::Hub(other),
        })?;
    if let Some(manifest) = work.spec.workload.manifests.first() {
        state
            .templates
            .add_soon(TemplateId::of(manifest), REPORT, REPORT_AFTER);
    }
    Ok(())
}
