//! Workloads without Pods: the status that a cluster would come to, written directly.
//!
//! For fleets of many thousand workloads. A workload first gets the status of one that has just been taken up, and
//! after the delay the one that it comes to: all there, or, if it misbehaves, as far as a rollout gets. Without a
//! delay only the latter is written. Nothing is scheduled, so that resource requests do not count.

mod deployment;
mod others;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::action::Action;
use crate::behaviour::of_workload;
use crate::object::{int, is_deleting, later, text};

/// What a decision about a workload without Pods looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The workload.
    pub workload: &'a Value,
    /// On how many nodes it runs, if it is a DaemonSet.
    pub nodes: i64,
    /// Since when it is in its present [`stage`].
    pub since: Timestamp,
    /// The usual delay.
    pub delay: Duration,
}

/// A number that changes when a workload begins to wait for something else.
pub fn stage(workload: &Value) -> u64 {
    u64::try_from(int(&workload["metadata"]["generation"])).unwrap_or(0)
}

/// How far a workload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It has just been taken up.
    Moving,
    /// It has come to its end, for good or ill.
    There { well: bool },
}

/// What is to be done for a workload.
pub fn decide(seen: &Snapshot<'_>, now: Timestamp) -> Vec<Action> {
    let workload = seen.workload;
    if is_deleting(workload) {
        return Vec::new();
    }
    let kind = text(&workload["kind"]);
    if kind == "Job"
        && let Some(finished) = crate::job::finished_at(workload)
    {
        return crate::job::expire(workload, finished, now);
    }
    let behaviour = of_workload(workload);
    let end = later(seen.since, behaviour.start_delay(seen.delay));
    let there = Progress::There {
        well: behaviour.ends_well(),
    };
    let (wanted, wake) = next(seen, kind, there, now);
    // What has come to its end stays there; what has not gets there when the delay is over.
    let (wanted, wake) = if wanted == *workload || now >= end {
        (wanted, wake)
    } else {
        let (moving, _) = next(seen, kind, Progress::Moving, now);
        (moving, Some(end))
    };
    let mut actions = Vec::new();
    if wanted != *workload {
        actions.push(Action::UpdateStatus(wanted));
    }
    actions.extend(wake.map(Action::WakeAt));
    actions
}

fn next(seen: &Snapshot<'_>, kind: &str, progress: Progress, now: Timestamp) -> (Value, Option<Timestamp>) {
    match kind {
        "Deployment" => deployment::next(seen.workload, progress, now),
        "StatefulSet" => (others::stateful_set(seen.workload, progress), None),
        "DaemonSet" => (others::daemon_set(seen.workload, seen.nodes, progress), None),
        "ReplicaSet" => (others::replica_set(seen.workload, progress), None),
        "Job" => (others::job(seen.workload, progress, now), None),
        _ => (seen.workload.clone(), None),
    }
}
