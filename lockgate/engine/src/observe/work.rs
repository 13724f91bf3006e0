//! What a Work says of itself: whether it is sent, and whether the member took it.

use jiff::Timestamp;
use lockgate_api::meta::Condition;
use lockgate_api::work::Work;

use super::{Trouble, cut, stamp};

/// The type of the condition that says whether the member took the manifest.
pub const APPLIED: &str = "Applied";
/// The reason of `Applied` where the member's object was gone and could not be made again.
pub const RECREATE_FAILED: &str = "ReCreateFailed";
/// The longest reason of a failure that is kept, in characters.
const FAILURE: usize = 4096;

/// The condition `Applied`. `generation` is that of the Work whose manifest was sent; `recreated` says that the member's
/// object was gone and is made again.
pub fn applied(outcome: Result<(), &str>, recreated: bool, generation: i64, now: Timestamp) -> Condition {
    let (status, reason, message) = match (outcome, recreated) {
        (Ok(()), false) => ("True", "AppliedSuccessful", SENT.to_owned()),
        (Ok(()), true) => ("True", "ReCreateSuccessful", SENT.to_owned()),
        (Err(why), false) => ("False", "AppliedFailed", failure(why)),
        (Err(why), true) => ("False", RECREATE_FAILED, failure(why)),
    };
    Condition {
        kind: APPLIED.to_owned(),
        status: status.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: stamp(now),
        reason: reason.to_owned(),
        message,
    }
}

const SENT: &str = "Manifest has been successfully applied";

fn failure(why: &str) -> String {
    // A Work holds one manifest, and none of it was applied.
    format!("Failed to apply all manifests (0/1): {}", cut(why, FAILURE))
}

/// The condition `Dispatching` of a Work that is sent. It carries no generation: it is written when the status turns, and
/// only then.
pub fn dispatching(now: Timestamp) -> Condition {
    let message = "Work is being dispatched to member clusters.";
    dispatching_is("True", "Dispatching", message.to_owned(), now)
}

/// The condition `Dispatching` of a Work that is not sent. Programs know the sentence; who holds it back, and why, follows.
pub fn suspended(by: &str, now: Timestamp) -> Condition {
    let mut message = "Work dispatching is in a suspended state.".to_owned();
    if !by.is_empty() {
        message.push(' ');
        message.push_str(by);
    }
    dispatching_is("False", "SuspendDispatching", message, now)
}

fn dispatching_is(status: &str, reason: &str, message: String, now: Timestamp) -> Condition {
    Condition {
        kind: "Dispatching".to_owned(),
        status: status.to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: reason.to_owned(),
        message,
    }
}

/// The type of the condition that is there while the member's object cannot be read.
pub const OBSERVED: &str = "Observed";

/// The condition of a Work whose object is there, and of which nobody can say what it reports, or how it does.
pub fn unobserved(trouble: &Trouble, now: Timestamp) -> Condition {
    Condition {
        kind: OBSERVED.to_owned(),
        status: "False".to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: trouble.reason.to_owned(),
        message: cut(&trouble.message, FAILURE).to_owned(),
    }
}

/// Whether what a Work says of its object is all that there is to say: nothing of it could not be read.
pub fn is_observed(work: &Work) -> bool {
    Condition::find(&work.status.conditions, OBSERVED).is_none_or(|condition| condition.status != "False")
}

/// The type of the condition that is there while somebody on the member changes back what is corrected.
pub const UNDISPUTED: &str = "Undisputed";

/// The condition of a Work whose object somebody else changes again and again.
pub fn disputed(who_and_what: &str, now: Timestamp) -> Condition {
    Condition {
        kind: UNDISPUTED.to_owned(),
        status: "False".to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: "DriftFight".to_owned(),
        message: cut(who_and_what, FAILURE).to_owned(),
    }
}

/// Whether the member took the Work as it is now. What was said of an older generation does not count.
pub fn is_applied(work: &Work) -> bool {
    Condition::find(&work.status.conditions, APPLIED)
        .is_some_and(|condition| condition.is_true() && is_present(condition, work))
}

/// Whether the member has a copy of some content of the Work, the present one or an older one.
pub fn has_copy(work: &Work) -> bool {
    work.status.last_applied.is_some()
        || Condition::find(&work.status.conditions, APPLIED).is_some_and(Condition::is_true)
}

/// Whether a condition speaks of the Work as it is now. One that does not say of what it speaks is believed.
fn is_present(condition: &Condition, work: &Work) -> bool {
    let of = condition
        .observed_generation
        .or_else(|| work.status.last_applied.as_ref().map(|last| last.work_generation));
    of.is_none_or(|generation| generation >= work.metadata.generation)
}
