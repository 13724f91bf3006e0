//! The claim station: which policy owns a template, and is its latest intent activated?
//!
//! A *claim* is a label and annotations on the template: who decides about it. An *activation* copies what that policy says
//! to the template's binding: only that moves anything. The two are apart, so that a policy can own a template and still
//! wait (`activationPreference: Lazy`, the gate `StaticPolicy`, no policy left). Everything follows from stored objects;
//! which event woke us, or whether we were running when something changed, makes no difference.

mod binding;
mod content;
mod holder;
mod mark;
mod record;
mod skip;

pub use binding::{activated_spec, propagation_differs, suspension_of};
pub use content::{ContentHashes, user_content};
pub use mark::{Claim, ClaimKind};
pub use record::{Change, Record};
pub use skip::{SkipReason, skip_kind, skip_template};

use std::sync::Arc;

use lockgate_api::{Binding, PropagationPolicy, keys};
use serde_json::Value;

use crate::gates::Gates;
use crate::object;
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
    /// Whether the user wrote the template after a Lazy policy's selectors began to name it. Looked at only when nothing
    /// was recorded yet; `None` if nobody could tell, which holds.
    pub newer_than_policy: Option<bool>,
}

/// What the station answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Who owns the template from now on; nobody if absent.
    pub holder: Option<Arc<PropagationPolicy>>,
    /// Whom it was taken from, if by preemption.
    pub preempted: Option<Claim>,
    /// What happens to its propagation.
    pub act: Act,
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
}

/// Decides who owns a template and whether the owner's intent is activated.
pub fn claim(input: &ClaimInput<'_>) -> Decision {
    let template = input.template;
    let record = Record::find(template, input.binding);
    let hashes = ContentHashes::of(template);
    let change = record
        .as_ref()
        .map_or(Change::Unknown, |record| record.compare(template, &hashes));
    let changed = matches!(change, Change::ByUser);
    let asked = asked(template, record.as_ref());

    let (holder, preempted) = holder::holder(input, changed || asked);
    let Some(policy) = holder else {
        let act = if input.binding.is_some() {
            Act::Freeze { changed }
        } else {
            Act::Wait
        };
        return Decision {
            holder: None,
            preempted: None,
            act,
        };
    };
    let act = activation(input, &policy, record.as_ref(), change, asked);
    Decision {
        holder: Some(policy),
        preempted,
        act,
    }
}

fn activation(
    input: &ClaimInput<'_>,
    policy: &PropagationPolicy,
    record: Option<&Record>,
    change: Change,
    asked: bool,
) -> Act {
    if asked {
        return Act::Activate(Because::Asked);
    }
    let refresh = matches!(change, Change::ByDefaults | Change::ByClaim);
    let waits = if policy.spec.is_lazy() {
        Some(HoldReason::Lazy)
    } else if input.gates.static_policy {
        Some(HoldReason::StaticPolicy)
    } else {
        None
    };
    if matches!(change, Change::ByUser) {
        return Act::Activate(Because::TemplateChanged);
    }
    let Some(binding) = input.binding else {
        // Claimed, and nothing was ever sent.
        return match waits {
            Some(HoldReason::Lazy) if record.is_some() || input.newer_than_policy != Some(true) => Act::Hold {
                why: HoldReason::Lazy,
                // A record on the template is written with the template, so that a mere generation never settles.
                refresh: record.is_none() || change == Change::ByDefaults,
            },
            _ => Act::Activate(Because::First),
        };
    };
    if record.is_none() && waits.is_some() {
        // What another control plane wrote has no record. Missing evidence moves nothing.
        return if propagation_differs(policy, binding) {
            hold(waits, true)
        } else {
            Act::Keep { refresh: true }
        };
    }
    if record.is_none() {
        // The same, where nothing waits: the next line of writes finds that nothing differs, and leaves a record.
        return Act::Activate(Because::First);
    }
    if !propagation_differs(policy, binding) {
        return Act::Keep { refresh };
    }
    match waits {
        Some(_) => hold(waits, refresh),
        None => Act::Activate(Because::PolicyChanged),
    }
}

fn hold(why: Option<HoldReason>, refresh: bool) -> Act {
    Act::Hold {
        why: why.unwrap_or(HoldReason::Lazy),
        refresh,
    }
}

/// Whether somebody asked for an activation that has not happened yet.
fn asked(template: &Value, record: Option<&Record>) -> bool {
    match object::annotation(template, keys::ACTIVATE) {
        None | Some("") => false,
        Some(request) => record.is_none_or(|record| record.request.as_deref() != Some(request)),
    }
}

#[cfg(test)]
mod tests;
