//! The scheduler: a node for each Pod that has none.
//!
//! A node takes a Pod if it is schedulable, its taints are tolerated, selector and required affinity match, and its
//! free resources suffice. Of those the one with the fewest Pods is taken, by name among equals. Affinity between
//! Pods and topology spread are not looked at.

mod fit;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::Action;
use crate::object::{Says, is_deleting, items, key, set_condition, status_of, text, with_status};

pub use fit::{Amounts, NodeInfo, requests};
pub(crate) use fit::{matches_node, tolerates};

/// What is to be done for a Pod that has no node.
pub fn decide<'a>(pod: &Value, nodes: impl IntoIterator<Item = &'a NodeInfo>, now: Timestamp) -> Vec<Action> {
    let gated = !items(&pod["spec"]["schedulingGates"]).is_empty();
    let placed = !text(&pod["spec"]["nodeName"]).is_empty();
    if gated || placed || is_deleting(pod) {
        return Vec::new();
    }
    let wanted = requests(&pod["spec"]);
    let mut best: Option<&NodeInfo> = None;
    let mut total = 0_usize;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut hopeless = 0_usize;
    for node in nodes {
        total += 1;
        let refusal = fit::refusal(pod, &wanted, node);
        if refusal.reasons.is_empty() {
            let fewer = best.is_none_or(|best| (node.pods(), &node.name) < (best.pods(), &best.name));
            best = if fewer { Some(node) } else { best };
            continue;
        }
        hopeless += usize::from(refusal.is_final);
        for reason in refusal.reasons {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if let Some(node) = best {
        return key(pod)
            .map(|pod| Action::Bind {
                pod,
                node: node.name.clone(),
            })
            .into_iter()
            .collect();
    }
    let message = message(total, &reasons, hopeless);
    let mut status = status_of(pod);
    let says = Says::new(false, "Unschedulable", &message);
    set_condition(
        &mut status,
        "PodScheduled",
        &says,
        json!({"lastProbeTime": null}),
        now,
    );
    with_status(pod, status)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect()
}

/// Why no node takes the Pod, in the words of the scheduler.
fn message(total: usize, reasons: &BTreeMap<String, usize>, hopeless: usize) -> String {
    if total == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counted: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    counted.sort();
    let mut victims = Vec::new();
    if total > hopeless {
        victims.push(format!(
            "{} No preemption victims found for incoming pod",
            total - hopeless
        ));
    }
    if hopeless > 0 {
        victims.push(format!("{hopeless} Preemption is not helpful for scheduling"));
    }
    victims.sort();
    format!(
        "0/{total} nodes are available: {}. no new claims to deallocate, preemption: 0/{total} nodes are available: {}.",
        counted.join(", "),
        victims.join(", "),
    )
}
