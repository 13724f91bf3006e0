//! The claim station: which policy owns a template, and is its latest intent activated?
//!
//! A *claim* is a label and annotations on the template: who decides about it. An *activation* copies what that policy says
//! to the template's binding: only that moves anything. The two are apart, so that a policy can own a template and still
//! wait (`activationPreference: Lazy`, the gate `StaticPolicy`, no policy left). Everything follows from stored objects;
//! which event woke us, or whether we were running when something changed, makes no difference.

mod apply;
mod binding;
mod content;
mod holder;
mod mark;
mod order;
mod record;
mod skip;
mod standing;
mod switch;
mod versions;

pub use binding::{
    activated_spec, held_suspension, only_waits, propagation_differs, reference, suspension_of, would_wait,
};
pub(crate) use content::short_hash;
pub use content::{ContentHashes, user_content};
pub use mark::{Claim, ClaimKind};
pub use order::{is_users, last_written, tell_selectors};
pub use record::{Change, Record};
pub use skip::{SkipReason, Skips, in_cluster_namespace, skip_kind, skip_template};
pub use standing::{Counts, Standing, Unserved, effective, kinds_served, orphaned, preemption, standing};
pub use versions::{VersionInput, template_version};

use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::{Binding, PropagationPolicy};
use serde_json::Value;

use self::record::{MovedBy, Past};
use self::switch::{Ruling, Stamp};
use crate::gates::Gates;
use crate::selector::PolicyIndex;

/// What the station looks at.
#[derive(Debug)]
pub struct ClaimInput<'a> {
    /// The template as it is stored.
    pub template: &'a Value,
    /// All policies.
    pub policies: &'a PolicyIndex,
    /// The template's binding, if it has one that is not being deleted.
    pub binding: Option<&'a Binding>,
    /// The feature gates.
    pub gates: Gates,
    /// When a user last wrote the template; absent if the template itself says so, or nobody knows.
    pub written: Option<Timestamp>,
}

/// What the station answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Who owns the template from now on; nobody if absent.
    pub holder: Option<Arc<PropagationPolicy>>,
    /// Whom it was taken from, if by preemption.
    pub preempted: Option<Claim>,
    /// Why what the owner says waits for the template's own changes, if it does.
    pub waits: Option<HoldReason>,
    /// What happens to its propagation.
    pub act: Act,
    /// What its record must say of the gate.
    stamp: Stamp,
    /// Whether defaults have moved the template since its binding was written.
    defaulted: bool,
}

/// What happens to a template's propagation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// The holder's intent is copied to the binding.
    Activate(Because),
    /// All is as it should be. The record may need to follow a change that was not the user's.
    Keep {
        /// Whether the record must be written again.
        refresh: bool,
    },
    /// The holder says something else than what was activated, and waits for the template's own change.
    Hold {
        /// Why it waits.
        why: HoldReason,
        /// Whether the record must be written again, or for the first time.
        refresh: bool,
    },
    /// Nobody owns the template: what was activated before stays, and nothing else happens.
    Freeze {
        /// Whether the user has changed the template since, so that the change waits for a policy.
        changed: bool,
    },
    /// Nobody owns the template, and nothing was ever activated.
    Wait,
}

/// Why an activation happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// Nothing was activated before.
    First,
    /// The user changed the template.
    TemplateChanged,
    /// The policy changed, or another one took over, and it acts at once.
    PolicyChanged,
    /// Somebody asked for it.
    Asked,
}

/// Why an activation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// The policy is Lazy.
    Lazy,
    /// The gate `StaticPolicy` is on.
    StaticPolicy,
    /// The gate was switched meanwhile: what was held stays held.
    GateChanged,
}

impl HoldReason {
    /// The reason as one word, for conditions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lazy => "Lazy",
            Self::StaticPolicy => "StaticPolicy",
            Self::GateChanged => "GateChanged",
        }
    }
}

/// Decides who owns a template and whether the owner's intent is activated.
pub fn claim(input: &ClaimInput<'_>) -> Decision {
    let past = Past::of(input.template, input.binding);
    let Ruling {
        holder,
        preempted,
        held,
        mut stamp,
    } = switch::rule(input, &past);
    let waits = holder
        .as_ref()
        .and_then(|policy| waits(policy, input.gates).or(held.then_some(HoldReason::GateChanged)));
    let act = match &holder {
        Some(policy) => activation(input, policy, &past, waits),
        None if input.binding.is_some() => Act::Freeze {
            changed: past.changed(),
        },
        None => Act::Wait,
    };
    if input.gates.static_policy && matches!(act, Act::Activate(_)) {
        stamp.forget_passed();
    }
    Decision {
        holder,
        preempted,
        waits,
        act,
        stamp,
        defaulted: input.binding.is_some() && past.change == Change::ByDefaults,
    }
}

fn waits(policy: &PropagationPolicy, gates: Gates) -> Option<HoldReason> {
    if policy.spec.is_lazy() {
        Some(HoldReason::Lazy)
    } else if gates.static_policy {
        Some(HoldReason::StaticPolicy)
    } else {
        None
    }
}

fn activation(
    input: &ClaimInput<'_>,
    policy: &PropagationPolicy,
    past: &Past,
    waits: Option<HoldReason>,
) -> Act {
    if past.asked {
        return Act::Activate(Because::Asked);
    }
    if past.changed() {
        return Act::Activate(Because::TemplateChanged);
    }
    match (input.binding, waits) {
        (Some(binding), _) => next_activation(binding, policy, past, waits),
        (None, Some(why)) => first_activation(input, policy, past, why),
        (None, None) => Act::Activate(Because::First),
    }
}

/// Nothing was sent yet, and the policy is one that waits.
fn first_activation(input: &ClaimInput<'_>, policy: &PropagationPolicy, past: &Past, why: HoldReason) -> Act {
    let template = input.template;
    let (activate, refresh) = match &past.record {
        // Decided before, and cut off before the binding was there; or the binding is gone, and is made again as it was.
        Some(record) if record.is_by(policy) => (true, false),
        Some(record) => {
            let refresh = match past.change {
                Change::ByDefaults => true,
                // Written to the template itself, the record follows a mere generation only where it knows what its own
                // write does to it. Elsewhere it might never settle.
                Change::ByClaim => MovedBy::of(template) != MovedBy::Content,
                _ => false,
            };
            (
                why == HoldReason::StaticPolicy && record.policy.is_empty(),
                refresh,
            )
        }
        // Missing evidence moves nothing: a claim that says nothing of what was activated is recorded, and waits.
        None if Claim::on_template(template).is_some() && !past.copied => (false, true),
        None => (
            why == HoldReason::StaticPolicy
                || order::written_after(template, input.written, policy) == Some(true),
            true,
        ),
    };
    if activate {
        Act::Activate(Because::First)
    } else {
        Act::Hold { why, refresh }
    }
}

/// Something was activated before, and the user has not changed the template since.
fn next_activation(
    binding: &Binding,
    policy: &PropagationPolicy,
    past: &Past,
    waits: Option<HoldReason>,
) -> Act {
    let refresh = past.change != Change::None;
    match waits {
        // What another control plane wrote has no record. The activation finds that nothing differs, and leaves one.
        None if past.record.is_none() => Act::Activate(Because::First),
        None if propagation_differs(policy, binding) => Act::Activate(Because::PolicyChanged),
        Some(why) if binding::would_wait(policy, binding) => Act::Hold { why, refresh },
        _ => Act::Keep { refresh },
    }
}

#[cfg(test)]
mod tests;
