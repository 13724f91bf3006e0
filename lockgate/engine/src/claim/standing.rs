//! What a policy's status says of its templates, and a binding's of a template that nobody owns.
//!
//! What concerns many templates at once is said once, on the policy; a binding says only what no policy can say for it.

use jiff::Timestamp;
use lockgate_api::policy::PropagationStatus;
use lockgate_api::{Condition, PropagationPolicy, ResourceSelector};

use super::{Act, Decision, HoldReason, switch, waits};
use crate::gates::Gates;

/// How many names of those that wait a policy gives.
const NAMED: usize = 20;
/// The condition that says whether everything is as the policy says.
const ACTIVATED: &str = "Activated";
/// The condition that says that a policy cannot take what it means to.
const PREEMPTION: &str = "Preemption";
/// The condition that says that a part of a policy has no effect.
const EFFECTIVE: &str = "Effective";
/// The condition that says that a policy names kinds of which nothing can be propagated.
const KINDS_SERVED: &str = "KindsServed";

/// How a template is with the policy that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// What the policy says is activated.
    UpToDate,
    /// It is not, and waits.
    Held(HoldReason),
    /// It is not yet.
    NotYet,
}

impl Decision {
    /// How the template is with its owner once this decision is carried out.
    pub fn standing(&self) -> Standing {
        match self.act {
            Act::Hold { why, .. } => Standing::Held(why),
            _ => Standing::UpToDate,
        }
    }
}

/// How a template is with its owner, where that follows from its binding alone: nothing else of it has changed.
pub fn standing(policy: &PropagationPolicy, binding: &lockgate_api::Binding, gates: Gates) -> Standing {
    if !super::would_wait(policy, binding) {
        return Standing::UpToDate;
    }
    let passed = || switch::is_passed(policy, binding).then_some(HoldReason::GateChanged);
    waits(policy, gates)
        .or_else(passed)
        .map_or(Standing::NotYet, Standing::Held)
}

/// The templates of one policy, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    claimed: i64,
    pending: i64,
    failing: i64,
    named: Vec<String>,
    why: Option<HoldReason>,
}

impl Counts {
    /// Counts a template. Those that are counted first are the ones that are named.
    pub fn add(&mut self, template: &dyn std::fmt::Display, standing: Standing, failing: bool) {
        self.claimed += 1;
        self.failing += i64::from(failing);
        if standing == Standing::UpToDate {
            return;
        }
        self.pending += 1;
        if let Standing::Held(why) = standing {
            self.why.get_or_insert(why);
        }
        if self.named.len() < NAMED {
            self.named.push(template.to_string());
        }
    }

    /// Says it in a policy's status.
    pub fn tell(self, generation: i64, now: Timestamp, status: &mut PropagationStatus) {
        let (reason, message) = match (self.pending, self.why) {
            (0, _) => (
                "UpToDate",
                "every template of this policy is as it says".to_owned(),
            ),
            (pending, None) => (
                "Activating",
                format!("{pending} of {} templates are not as it says yet", self.claimed),
            ),
            (pending, Some(why)) => (
                why.as_str(),
                format!(
                    "{pending} of {} templates wait for a change of their own; lockgate pending shows what they would do",
                    self.claimed
                ),
            ),
        };
        let activated = condition(ACTIVATED, self.pending == 0, reason, message, now);
        activated.put(&mut status.conditions);
        status.observed_generation = Some(generation);
        status.claimed = Some(self.claimed);
        status.up_to_date = Some(self.claimed - self.pending);
        status.pending = Some(self.pending);
        status.failing = Some(self.failing);
        status.pending_templates = self.named;
    }
}

/// Says in a policy's status why its `preemption: Always` takes nothing, or not everything; nothing if it works.
/// `is_namespaced` tells the scope of a selector's kind, where it is known.
pub fn preemption(
    policy: &PropagationPolicy,
    gates: Gates,
    is_namespaced: impl Fn(&ResourceSelector) -> Option<bool>,
    now: Timestamp,
    status: &mut PropagationStatus,
) {
    let without_namespace = || {
        let selectors = policy.spec.resource_selectors.iter();
        let without =
            selectors.filter(|selector| policy.is_cluster_scoped() && selector.namespace.is_empty());
        without
            .filter(|selector| is_namespaced(selector) == Some(true))
            .map(|selector| format!("{} {}", selector.kind, selector.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let trouble = if !policy.spec.preempts() {
        None
    } else if gates.static_policy {
        let message = "preemption: Always takes nothing while the feature gate StaticPolicy is on";
        Some(("StaticPolicy", message.to_owned()))
    } else if !gates.preemption {
        let message =
            "preemption: Always takes nothing while the feature gate PropagationPolicyPreemption is off";
        Some(("GateOff", message.to_owned()))
    } else {
        let names = without_namespace();
        (!names.is_empty()).then(|| {
            let message = format!(
                "preemption: Always takes nothing by the selectors of {names}: they must give the namespace"
            );
            ("NoNamespace", message)
        })
    };
    match trouble {
        Some((reason, message)) => {
            condition(PREEMPTION, false, reason, message, now).put(&mut status.conditions);
        }
        None => status.conditions.retain(|condition| condition.kind != PREEMPTION),
    }
}

/// Says in a policy's status which parts of it have no effect because their feature gates are off; nothing if all have.
pub fn effective(policy: &PropagationPolicy, gates: Gates, now: Timestamp, status: &mut PropagationStatus) {
    let spec = &policy.spec;
    let preserves = |which: &str| {
        let failover = spec.failover.as_ref().and_then(|failover| failover.get(which));
        failover.is_some_and(|behaviour| behaviour.get("statePreservation").is_some())
    };
    let is_affine = spec.placement.workload_affinity.is_some();
    let parts = [
        (
            is_affine && !gates.workload_affinity,
            "placement.workloadAffinity (WorkloadAffinity)",
        ),
        (spec.failover.is_some() && !gates.failover, "failover (Failover)"),
        (
            (preserves("application") || preserves("cluster")) && !gates.stateful_failover,
            "failover's statePreservation (StatefulFailoverInjection)",
        ),
        (
            spec.propagate_deps && !gates.propagate_deps,
            "propagateDeps (PropagateDeps)",
        ),
    ];
    let idle: Vec<&str> = parts
        .into_iter()
        .filter_map(|(is_idle, name)| is_idle.then_some(name))
        .collect();
    if idle.is_empty() {
        status.conditions.retain(|condition| condition.kind != EFFECTIVE);
        return;
    }
    let message = format!(
        "without effect while the feature gate is off: {}",
        idle.join(", ")
    );
    condition(EFFECTIVE, false, "GateOff", message, now).put(&mut status.conditions);
}

/// Why no object of a kind is propagated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The hub does not serve it; a typing error, or a definition that is still to come.
    NotServed,
    /// The hub serves it, and does not show its objects.
    NotShown(String),
    /// Its objects have no namespace, and the policy is about those of its own.
    NotNamespaced,
    /// It is one that is never propagated.
    Never,
}

/// Says in a policy's status which of its kinds cannot be propagated, and why; nothing if all can. `unserved` tells it of a
/// selector's kind.
pub fn kinds_served(
    policy: &PropagationPolicy,
    unserved: impl Fn(&ResourceSelector) -> Option<Unserved>,
    now: Timestamp,
    status: &mut PropagationStatus,
) {
    let mut told: Vec<(Unserved, String)> = Vec::new();
    for selector in &policy.spec.resource_selectors {
        let Some(why) = unserved(selector) else { continue };
        let words = match &why {
            Unserved::NotServed => "the hub does not serve it".to_owned(),
            Unserved::NotShown(error) => format!("the hub does not show its objects: {error}"),
            Unserved::NotNamespaced => {
                "its objects are in no namespace: use a ClusterPropagationPolicy".to_owned()
            }
            Unserved::Never => "it is never propagated".to_owned(),
        };
        let line = format!("{} {} ({words})", selector.api_version, selector.kind);
        if !told.iter().any(|(_, other)| *other == line) {
            told.push((why, line));
        }
    }
    let Some((first, _)) = told.first() else {
        status
            .conditions
            .retain(|condition| condition.kind != KINDS_SERVED);
        return;
    };
    let reason = match first {
        Unserved::NotServed => "NotServed",
        Unserved::NotShown(_) => "NotShown",
        Unserved::NotNamespaced => "NotNamespaced",
        Unserved::Never => "NeverPropagated",
    };
    let more = told.len().saturating_sub(NAMED);
    let mut lines: Vec<String> = told.into_iter().take(NAMED).map(|(_, line)| line).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let message = format!("nothing is propagated of {}", lines.join(", "));
    condition(KINDS_SERVED, false, reason, message, now).put(&mut status.conditions);
}

/// Says on a binding that nobody owns its template, and what that means; nothing if somebody does. `candidate` is a
/// policy that matches and may not take the template before it changes.
pub fn orphaned(
    act: &Act,
    candidate: Option<&PropagationPolicy>,
    gates: Gates,
    now: Timestamp,
) -> Option<Condition> {
    let Act::Freeze { changed } = *act else {
        return None;
    };
    let (reason, message) = match (candidate, changed) {
        (Some(policy), _) => {
            let namespace = &policy.metadata.namespace;
            let slash = if namespace.is_empty() { "" } else { "/" };
            let message = format!(
                "its policy is gone, and what was sent stays; policy {namespace}{slash}{} takes it when the template \
                 changes, or when lockgate activate asks for it",
                policy.metadata.name
            );
            // Without the gate, whoever matches takes the template, unless it was a switch of the gate that let nobody.
            let why = if gates.static_policy {
                HoldReason::StaticPolicy
            } else {
                HoldReason::GateChanged
            };
            (why.as_str(), message)
        }
        (None, false) => (
            "NoPolicy",
            "no policy matches the template any more, and what was sent stays".to_owned(),
        ),
        (None, true) => (
            "NoPolicy",
            "no policy matches the template any more; it has changed since, and the change waits for a policy"
                .to_owned(),
        ),
    };
    Some(condition(ACTIVATED, false, reason, message, now))
}

fn condition(kind: &str, is: bool, reason: &str, message: String, now: Timestamp) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: if is { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests;
