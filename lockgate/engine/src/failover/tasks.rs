//! When a cluster has been left: the task is over, and what is there may go.

use jiff::Timestamp;
use lockgate_api::BindingSpec;
use lockgate_api::binding::EvictionTask;
use serde_json::json;

use super::{later, second};

/// How long a graceful task takes at most, if nobody says.
const GRACE: i64 = 600;

/// What became of the tasks of a binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// The tasks that go on.
    pub going_on: Vec<EvictionTask>,
    /// When to look again.
    pub next: Option<Timestamp>,
    /// Whether a task would be over if the new copies were well.
    pub waits_for_health: bool,
}

/// Whether what is there goes before anything comes elsewhere.
pub fn is_direct(task: &EvictionTask) -> bool {
    matches!(task.purge_mode.as_str(), "Directly" | "Immediately")
}

/// Which tasks go on.
///
/// A task is over when every cluster that the binding goes to is well, or its grace is over; a direct one when nothing is
/// left there. `suppressDeletion` keeps it for as long as somebody says true, and ends it once somebody says false. While a
/// cluster that the binding goes to is held back nothing is over, for the copy there may never come; and nothing is over
/// while the binding goes nowhere.
pub fn finish(
    spec: &BindingSpec,
    healthy: &dyn Fn(&str) -> bool,
    held: &dyn Fn(&str) -> bool,
    is_left: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> Finished {
    let targets = || spec.clusters.iter().map(|target| target.name.as_str());
    let all_well = targets().next().is_some() && targets().all(healthy);
    let nowhere = targets().next().is_none();
    let any_held = targets().any(held);
    let mut finished = Finished::default();
    for task in &spec.graceful_eviction_tasks {
        let mut task = task.clone();
        let created = task.rest.get("creationTimestamp").and_then(|time| time.as_str());
        let created: Timestamp = match created.and_then(|time| time.parse().ok()) {
            Some(created) => created,
            None => {
                task.rest
                    .insert("creationTimestamp".to_owned(), json!(second(now)));
                now
            }
        };
        let suppressed = task
            .rest
            .get("suppressDeletion")
            .and_then(|value| value.as_bool());
        let held = any_held || held(&task.from_cluster);
        // Somebody wrote the task by hand, and the binding has not left yet.
        let still_there = targets().any(|name| name == task.from_cluster);
        let over = if still_there {
            finished.waits_for_health = true;
            false
        } else if is_direct(&task) {
            is_left(&task.from_cluster)
        } else if nowhere || held || suppressed == Some(true) {
            false
        } else if suppressed == Some(false) {
            true
        } else {
            let grace = task
                .rest
                .get("gracePeriodSeconds")
                .and_then(|grace| grace.as_i64());
            let due = later(created, grace.unwrap_or(GRACE));
            if due > now {
                finished.next = Some(finished.next.map_or(due, |next| next.min(due)));
            }
            finished.waits_for_health |= !all_well && due > now;
            all_well || due <= now
        };
        if !over {
            finished.going_on.push(task);
        }
    }
    if finished.going_on.is_empty() {
        finished.next = None;
    }
    finished
}
