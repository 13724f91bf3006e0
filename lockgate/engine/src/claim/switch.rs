//! Switching the gate `StaticPolicy` moves nothing, in either direction.
//!
//! Each record says whether the gate was on when it was written. A template whose record says otherwise than the gate does
//! is looked at for the first time since the switch: whoever would act on it now acts by the switch alone, and is passed
//! over. The record names that policy with its generation, and the template stays as it is until another policy would act,
//! or that one in another generation; or until the user changes the template, or somebody asks.

use std::sync::Arc;

use lockgate_api::{Binding, PropagationPolicy};
use serde_json::Value;

use super::record::{Past, Record};
use super::{Claim, ClaimInput, holder, would_wait};

/// Who owns a template, and what its record must say of the gate.
#[derive(Debug)]
pub(super) struct Ruling {
    pub(super) holder: Option<Arc<PropagationPolicy>>,
    pub(super) preempted: Option<Claim>,
    /// Whether the owner's intent waits because of a switch.
    pub(super) held: bool,
    pub(super) stamp: Stamp,
}

/// What a record says of the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    static_policy: bool,
    passed: Option<String>,
}

impl Stamp {
    /// Whether a record says this.
    pub(super) fn is_on(&self, record: &Record) -> bool {
        self.static_policy == record.static_policy && self.passed == record.passed
    }

    /// What is activated while the gate is on stays with its owner: nobody is passed over any more.
    pub(super) fn forget_passed(&mut self) {
        self.passed = None;
    }

    /// Makes a record say this.
    pub(super) fn put(&self, mut record: Record) -> Record {
        record.static_policy = self.static_policy;
        record.passed.clone_from(&self.passed);
        record
    }
}

/// Who owns the template: as the gates say, unless that would move something by a switch alone.
pub(super) fn rule(input: &ClaimInput<'_>, past: &Past) -> Ruling {
    let static_policy = input.gates.static_policy;
    let (holder, preempted) = holder::holder(input, past);
    let free = |holder, preempted| Ruling {
        holder,
        preempted,
        held: false,
        stamp: Stamp {
            static_policy,
            passed: None,
        },
    };
    let unmoved = past.record.as_ref().filter(|_| !past.changed() && !past.asked);
    let (Some(record), Some(winner)) = (unmoved, &holder) else {
        return free(holder, preempted);
    };
    let passed = Some(name_of(winner));
    if record.static_policy == static_policy && record.passed != passed {
        return free(holder, preempted);
    }
    let stays = holder::stays(input);
    let same = stays
        .as_ref()
        .is_some_and(|stays| Claim::by(stays) == Claim::by(winner));
    if same && !would_act(input, record, winner) {
        return free(holder, preempted);
    }
    Ruling {
        holder: stays,
        preempted: None,
        held: true,
        stamp: Stamp {
            static_policy,
            passed,
        },
    }
}

/// Whether a policy as it is now was passed over in a switch, as far as its template's binding says.
pub(super) fn is_passed(policy: &PropagationPolicy, binding: &Binding) -> bool {
    Record::find(&Value::Null, Some(binding))
        .and_then(|record| record.passed)
        .is_some_and(|passed| passed == name_of(policy))
}

/// A policy and its generation, as a record names them.
fn name_of(policy: &PropagationPolicy) -> String {
    format!("{}@{}", policy.permanent_id(), policy.metadata.generation)
}

/// Whether a policy that keeps its template would move it, now that the gate is off.
fn would_act(input: &ClaimInput<'_>, record: &Record, policy: &PropagationPolicy) -> bool {
    let differs = match input.binding {
        // What it suspends is suspended at once, and moves nothing.
        Some(binding) => would_wait(policy, binding),
        // What was decided before and cut off is finished.
        None => !record.is_by(policy),
    };
    !input.gates.static_policy && !policy.spec.is_lazy() && differs
}
