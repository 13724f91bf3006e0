//! Fights over a template's status. A hub may run controllers of its own that take a template for a workload and write what
//! they see of it; each of our writes would bring theirs, and each of theirs ours. So what somebody else writes is put back at
//! once twice, and from then on after longer and longer pauses.

use lockgate_engine::TemplateId;
use lockgate_engine::dispatch::Corrections;
use serde_json::Value;

use super::REPORT_AFTER;
use crate::cache::Cached;
use crate::events::EventTarget;
use crate::state::{self, State};

/// How often somebody else wrote a template's status.
#[derive(Debug, Default)]
pub(crate) struct StatusDispute {
    corrections: Corrections,
    /// Whether somebody wrote it since we did.
    touched: bool,
}

/// Whether two forms of a template differ in nothing but their status.
pub(crate) fn is_status_only(old: &Cached, new: &Cached) -> bool {
    let has_status = |cached: &Cached| cached.mentions("\"status\"");
    if old.uid != new.uid || old.generation != new.generation || !(has_status(old) || has_status(new)) {
        return false;
    }
    let rest = |cached: &Cached| {
        let mut object: Value = state::parse(cached)?;
        object.as_object_mut()?.remove("status");
        object["metadata"].as_object_mut()?.remove("resourceVersion");
        Some(object)
    };
    rest(old).is_some_and(|old| Some(old) == rest(new))
}

/// Somebody else wrote a template's status, and nothing else of it: it moves nothing, and what members say is told again.
pub(crate) fn touched(state: &State, id: TemplateId) {
    let mut disputes = state.status_disputes.lock();
    disputes.entry(id.clone()).or_default().touched = true;
    drop(disputes);
    state.reports.add_soon(id, 1, REPORT_AFTER);
}

/// Notes that a template's status says what we would write.
pub(super) fn agrees(state: &State, id: &TemplateId) {
    if let Some(dispute) = state.status_disputes.lock().get_mut(id) {
        dispute.touched = false;
    }
}

/// Whether a template's status is left as somebody else wrote it, for now. If not, it is corrected.
pub(super) fn leaves_alone(state: &State, id: &TemplateId, template: &Value) -> bool {
    let now = state.clock.now();
    let mut disputes = state.status_disputes.lock();
    let Some(dispute) = disputes.get_mut(id).filter(|dispute| dispute.touched) else {
        return false;
    };
    if let Some(until) = dispute.corrections.paused_until(now) {
        state.reports.add_at(id.clone(), 1, until);
        return true;
    }
    dispute.touched = false;
    if let Some(pause) = dispute.corrections.record(now) {
        let message = format!(
            "somebody else writes the status of this template again and again; what members say is written now, and not again \
             within {} s. A hub that runs workloads itself is not meant for templates of them",
            pause.as_secs()
        );
        state
            .events
            .warn(&EventTarget::of_value(template), "StatusFight", &message);
    }
    false
}
