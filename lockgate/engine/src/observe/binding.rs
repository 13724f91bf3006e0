//! What a binding says: where it goes, and what became of it there.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lockgate_api::BindingStatus;
use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::meta::Condition;
use lockgate_api::work::Work;

use super::work::{APPLIED, UNDISPUTED};
use super::{Health, cut, is_applied, stamp};

/// The longest reason of a failure to place that is kept, in characters.
const FAILURE: usize = 4096;

/// What a binding says of a cluster for which something newer is on its way; it is no failure.
pub const NOT_YET: &str = "The newest content is not applied yet";

/// Whether what was activated could not be carried out: it was not placed, or some cluster refuses it.
pub fn is_failing(status: &BindingStatus) -> bool {
    Condition::find(&status.conditions, "Scheduled").is_some_and(|condition| condition.status == "False")
        || status
            .aggregated_status
            .iter()
            .any(|item| !item.applied && !item.applied_message.is_empty() && item.applied_message != NOT_YET)
}

/// A Work of the binding.
#[derive(Clone, Copy, Debug)]
pub struct WorkView<'a> {
    /// The cluster that it is for.
    pub cluster: &'a str,
    /// The Work.
    pub work: &'a Work,
}

/// What each cluster reports, by name, and the condition `FullyApplied`. Works that are being deleted say nothing any
/// more. `targets` are all clusters that the binding should be on: those placed, those of referrers, and those that it
/// is leaving gracefully.
pub fn aggregate_works(
    works: &[WorkView<'_>],
    targets: &BTreeSet<&str>,
    now: Timestamp,
) -> (Vec<AggregatedStatusItem>, Condition) {
    let mut items: Vec<AggregatedStatusItem> = works
        .iter()
        .filter(|view| !view.work.metadata.deleting())
        .map(item)
        .collect();
    items.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    let full = !targets.is_empty()
        && items.len() == targets.len()
        && items
            .iter()
            .all(|item| item.applied && targets.contains(&*item.cluster_name));
    (items, fully_applied(full, now))
}

fn item(view: &WorkView<'_>) -> AggregatedStatusItem {
    let status = &view.work.status;
    let seen = status.manifest_statuses.first();
    let applied = is_applied(view.work);
    let health = match seen {
        Some(seen) if applied => Health::parse(&seen.health),
        _ => Health::Unknown,
    };
    AggregatedStatusItem {
        cluster_name: view.cluster.to_owned(),
        // What is there is still there while something newer waits.
        status: seen.and_then(|seen| seen.status.clone()),
        applied,
        applied_message: if applied {
            // It is what it should be, and somebody else does not leave it so.
            Condition::find(&status.conditions, UNDISPUTED)
                .map_or_else(String::new, |condition| condition.message.clone())
        } else {
            why_not(&status.conditions)
        },
        health: health.as_str().to_owned(),
    }
}

/// Why a Work is not applied. One that was never sent says nothing.
fn why_not(conditions: &[Condition]) -> String {
    match Condition::find(conditions, APPLIED) {
        None => String::new(),
        Some(condition) if condition.is_true() => NOT_YET.to_owned(),
        Some(condition) => condition.message.clone(),
    }
}

/// The condition `FullyApplied`.
pub fn fully_applied(full: bool, now: Timestamp) -> Condition {
    let (status, reason, message) = if full {
        (
            "True",
            "FullyAppliedSuccess",
            "All works have been successfully applied",
        )
    } else {
        (
            "False",
            "FullyAppliedFailed",
            "Failed to apply all works, see status.aggregatedStatus for details",
        )
    };
    Condition {
        kind: "FullyApplied".to_owned(),
        status: status.to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// What became of placing a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled<'a> {
    /// It was placed.
    Success,
    /// No cluster fits, and why.
    NoClusterFit(&'a str),
    /// Clusters fit, but have no room, and why.
    Unschedulable(&'a str),
    /// A quota is used up, and which.
    QuotaExceeded(&'a str),
    /// Something else went wrong.
    Error(&'a str),
}

/// The condition `Scheduled`.
pub fn scheduled(outcome: Scheduled<'_>, now: Timestamp) -> Condition {
    let (status, reason, message) = match outcome {
        Scheduled::Success => ("True", "Success", "Binding has been scheduled successfully."),
        Scheduled::NoClusterFit(why) => ("False", "NoClusterFit", why),
        Scheduled::Unschedulable(why) => ("False", "Unschedulable", why),
        Scheduled::QuotaExceeded(why) => ("False", "QuotaExceeded", why),
        Scheduled::Error(why) => ("False", "SchedulerError", why),
    };
    Condition {
        kind: "Scheduled".to_owned(),
        status: status.to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: reason.to_owned(),
        message: cut(message, FAILURE).to_owned(),
    }
}
