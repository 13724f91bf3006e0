//! When a cluster has been left: the task is over, and what is there may go.

use jiff::Timestamp;
use lockgate_api::BindingSpec;
use lockgate_api::binding::EvictionTask;
use serde_json::json;

use super::{APPLICATION_FAILURE, later, second};

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

/// Whether a cluster is left because the application fails there.
pub fn is_failing(task: &EvictionTask) -> bool {
    let reason = task.rest.get("reason").and_then(|reason| reason.as_str());
    reason == Some(APPLICATION_FAILURE)
}

/// The tasks of each cause, in the order in which they are tried where not all clusters can be left at once. A cluster that
/// nothing may stay on goes first: where the application fails it may stay.
pub fn by_cause(tasks: Vec<EvictionTask>) -> Vec<Vec<EvictionTask>> {
    let (failing, tainted): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_failing);
    let causes = [tainted, failing].into_iter();
    causes.filter(|tasks| !tasks.is_empty()).collect()
}

/// When the grace of a task is over; `None` if time does not end it. A task that does not say when it was made was made now.
pub fn grace_ends(task: &EvictionTask, now: Timestamp) -> Option<Timestamp> {
    let suppressed = task
        .rest
        .get("suppressDeletion")
        .and_then(|value| value.as_bool());
    if is_direct(task) || suppressed.is_some() {
        return None;
    }
    let created = task.rest.get("creationTimestamp").and_then(|time| time.as_str());
    let created: Timestamp = created.and_then(|time| time.parse().ok()).unwrap_or(now);
    let grace = task
        .rest
        .get("gracePeriodSeconds")
        .and_then(|grace| grace.as_i64());
    Some(later(created, grace.unwrap_or(GRACE)))
}

/// Whether nothing that was left behind goes: the workload is held back where it was, or where it goes.
pub fn is_paused(spec: &BindingSpec, from: &str, held: &dyn Fn(&str) -> bool) -> bool {
    held(from) || spec.clusters.iter().any(|target| held(&target.name))
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
    let mut finished = Finished::default();
    for task in &spec.graceful_eviction_tasks {
        let mut task = task.clone();
        let due = grace_ends(&task, now);
        let created = task.rest.get("creationTimestamp").and_then(|time| time.as_str());
        if created.is_none_or(|time| time.parse::<Timestamp>().is_err()) {
            task.rest
                .insert("creationTimestamp".to_owned(), json!(second(now)));
        }
        let suppressed = task
            .rest
            .get("suppressDeletion")
            .and_then(|value| value.as_bool());
        let held = is_paused(spec, &task.from_cluster, held);
        // Somebody wrote the task by hand, and the binding has not left yet.
        let still_there = targets().any(|name| name == task.from_cluster);
        let over = if still_there {
            false
        } else if is_direct(&task) {
            !held && is_left(&task.from_cluster)
        } else if nowhere || held || suppressed == Some(true) {
            false
        } else if suppressed == Some(false) {
            true
        } else {
            let ended = due.is_some_and(|due| due <= now);
            finished.waits_for_health |= !all_well && !ended;
            if !all_well
                && !ended
                && let Some(due) = due
            {
                finished.next = Some(finished.next.map_or(due, |next| next.min(due)));
            }
            all_well || ended
        };
        if !over {
            finished.going_on.push(task);
        }
    }
    finished
}
