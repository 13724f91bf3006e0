//! What a member does not take, told as events. The Work's status says it for as long as it is so; what it says already was
//! told.

use lockgate_api::{Condition, Work};
use lockgate_engine::observe;
use serde_json::Value;

use super::dispatching::{object_key, template_of};
use crate::events::EventTarget;
use crate::state::State;

/// Tells of a Work and its template that the member does not have what the Work holds, and why.
pub(super) fn tell_failed(state: &State, cluster: &str, work: &Work, manifest: &Value, why: &str) {
    let told = Condition::find(&work.status.conditions, observe::APPLIED)
        .is_some_and(|condition| !condition.is_true() && condition.message.ends_with(why));
    if told {
        return;
    }
    let message = format!(
        "Failed to apply resource({}) to cluster {cluster}: {why}",
        object_key(manifest)
    );
    for target in [template_of(manifest), EventTarget::of_work(work)] {
        state.events.warn(&target, "SyncFailed", &message);
    }
}
