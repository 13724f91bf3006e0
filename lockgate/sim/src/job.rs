//! Jobs: Pods that run to their end, as often as wanted, with a limited number of failures.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimOptions;
use crate::action::Action;
use crate::object::{
    Says, after, annotation, condition, int, is_deleting, is_true, items, key, later, name,
    pod_from_template, set_condition, set_count, stamp, status_of, text, time, uid, with_status,
};
use crate::replicaset::{hand_down, is_active, is_ready};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The longest rest between two attempts.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// How many Pods one decision makes at most.
const BURST: i64 = 500;

/// How a Job came to its end.
pub(crate) enum End {
    Complete,
    Failed {
        reason: &'static str,
        message: &'static str,
    },
}

impl End {
    pub(crate) const BACKOFF: Self = Self::Failed {
        reason: "BackoffLimitExceeded",
        message: "Job has reached the specified backoff limit",
    };
}

/// Whether a Job has come to its end, and when.
pub(crate) fn finished_at(job: &Value) -> Option<Timestamp> {
    let done = ["Complete", "Failed"]
        .into_iter()
        .find(|kind| is_true(&job["status"], kind))?;
    time(&condition(&job["status"], done)?["lastTransitionTime"])
}

/// What is to be done for a Job that has come to its end: it goes when its time to live is over.
pub(crate) fn expire(job: &Value, finished: Timestamp, now: Timestamp) -> Vec<Action> {
    let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else {
        return Vec::new();
    };
    let end = after(finished, seconds);
    if now < end {
        return vec![Action::WakeAt(end)];
    }
    key(job)
        .map(|key| Action::Delete {
            key,
            uid: uid(job).to_owned(),
        })
        .into_iter()
        .collect()
}

/// Writes the end of a Job into its status.
pub(crate) fn write_end(status: &mut Value, end: &End, now: Timestamp) {
    let probed = || json!({"lastProbeTime": stamp(now)});
    match end {
        End::Complete => {
            let says = Says::new(
                true,
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            );
            set_condition(status, "SuccessCriteriaMet", &says, probed(), now);
            set_condition(status, "Complete", &says, probed(), now);
            status["completionTime"] = json!(stamp(now));
        }
        End::Failed { reason, message } => {
            let says = Says::new(true, reason, message);
            set_condition(status, "FailureTarget", &says, probed(), now);
            set_condition(status, "Failed", &says, probed(), now);
        }
    }
    set_count(status, "active", 0);
    status["ready"] = json!(0);
    status["terminating"] = json!(0);
}

/// What is to be done for a Job that controls `pods`.
pub fn decide(job: &Value, pods: &[Value], options: &SimOptions, now: Timestamp) -> Vec<Action> {
    if is_deleting(job) {
        return Vec::new();
    }
    if let Some(finished) = finished_at(job) {
        return expire(job, finished, now);
    }
    let active: Vec<&Value> = pods.iter().filter(|pod| is_active(pod)).collect();
    let delete = |pod: &&Value| {
        key(pod).map(|key| Action::Delete {
            key,
            uid: uid(pod).to_owned(),
        })
    };
    if job["spec"]["suspend"] == true {
        let mut actions: Vec<Action> = active.iter().filter_map(delete).collect();
        actions.extend(with_status(job, suspended(job, now)).map(Action::UpdateStatus));
        return actions;
    }
    let tally = Tally::of(job, pods);
    let mut status = status_of(job);
    if status["startTime"].is_null() {
        status["startTime"] = json!(stamp(now));
    }
    if condition(&status, "Suspended").is_some_and(|c| c["status"] == "True") {
        let says = Says::new(false, "JobResumed", "Job resumed");
        set_condition(
            &mut status,
            "Suspended",
            &says,
            json!({"lastProbeTime": stamp(now)}),
            now,
        );
    }
    set_count(&mut status, "succeeded", tally.succeeded);
    set_count(&mut status, "failed", tally.failed);
    status["uncountedTerminatedPods"] = json!({});
    if is_indexed(job) && !tally.indexes.is_empty() {
        status["completedIndexes"] = json!(ranges(&tally.indexes));
    }
    let mut actions = Vec::new();
    let deadline = job["spec"]["activeDeadlineSeconds"]
        .as_i64()
        .and_then(|seconds| Some(after(time(&status["startTime"])?, seconds)));
    if let Some(end) = tally.end(job, &active, deadline.is_some_and(|deadline| deadline <= now)) {
        actions.extend(active.iter().filter_map(delete));
        write_end(&mut status, &end, now);
        actions.extend(with_status(job, status).map(Action::UpdateStatus));
        return actions;
    }
    let wake = tally.keep_running(job, &active, options, now, &mut actions);
    let made = actions
        .iter()
        .filter(|action| matches!(action, Action::Create(_)))
        .count();
    let gone = actions
        .iter()
        .filter(|action| matches!(action, Action::Delete { .. }))
        .count();
    set_count(
        &mut status,
        "active",
        i64::try_from(active.len() + made - gone).unwrap_or(0),
    );
    status["ready"] = json!(active.iter().filter(|pod| is_ready(pod)).count());
    status["terminating"] = json!(pods.iter().filter(|pod| is_deleting(pod)).count());
    actions.extend(hand_down(job, &active));
    actions.extend(with_status(job, status).map(Action::UpdateStatus));
    actions.extend([wake, deadline].into_iter().flatten().min().map(Action::WakeAt));
    actions
}

fn is_indexed(job: &Value) -> bool {
    job["spec"]["completionMode"] == "Indexed"
}

fn index_of(pod: &Value) -> Option<i64> {
    annotation(pod, INDEX)?.parse().ok()
}

fn suspended(job: &Value, now: Timestamp) -> Value {
    let mut status = status_of(job);
    if let Some(map) = status.as_object_mut() {
        map.remove("startTime");
    }
    set_count(&mut status, "active", 0);
    status["ready"] = json!(0);
    status["terminating"] = json!(0);
    if !is_true(&status, "Suspended") {
        let says = Says::new(true, "JobSuspended", "Job suspended");
        set_condition(
            &mut status,
            "Suspended",
            &says,
            json!({"lastProbeTime": stamp(now)}),
            now,
        );
    }
    status
}

/// What the Pods have come to.
struct Tally {
    succeeded: i64,
    failed: i64,
    indexes: BTreeSet<i64>,
    last_failure: Option<Timestamp>,
}

impl Tally {
    fn of(job: &Value, pods: &[Value]) -> Self {
        let in_phase = |phase: &'static str| pods.iter().filter(move |pod| pod["status"]["phase"] == phase);
        let count = |phase| i64::try_from(in_phase(phase).count()).unwrap_or(0);
        let ends = in_phase("Failed").flat_map(|pod| items(&pod["status"]["containerStatuses"]));
        let mut indexes: BTreeSet<i64> = in_phase("Succeeded").filter_map(index_of).collect();
        indexes.extend(read_ranges(text(&job["status"]["completedIndexes"])));
        let done = if is_indexed(job) {
            i64::try_from(indexes.len()).unwrap_or(0)
        } else {
            count("Succeeded")
        };
        Self {
            // What was counted stays counted, even if somebody removes the Pod.
            succeeded: done.max(int(&job["status"]["succeeded"])),
            failed: count("Failed").max(int(&job["status"]["failed"])),
            indexes,
            last_failure: ends
                .filter_map(|status| time(&status["state"]["terminated"]["finishedAt"]))
                .max(),
        }
    }

    fn end(&self, job: &Value, active: &[&Value], too_late: bool) -> Option<End> {
        let limit = job["spec"]["backoffLimit"].as_i64().unwrap_or(6);
        let restarts: i64 = active
            .iter()
            .filter(|pod| pod["spec"]["restartPolicy"] == "OnFailure")
            .flat_map(|pod| items(&pod["status"]["containerStatuses"]))
            .map(|status| int(&status["restartCount"]))
            .sum();
        if self.failed > limit || (restarts > 0 && restarts >= limit) {
            return Some(End::BACKOFF);
        }
        if too_late {
            let message = "Job was active longer than specified deadline";
            return Some(End::Failed {
                reason: "DeadlineExceeded",
                message,
            });
        }
        let done = match job["spec"]["completions"].as_i64() {
            Some(completions) => self.succeeded >= completions,
            None => self.succeeded > 0 && active.is_empty(),
        };
        done.then_some(End::Complete)
    }

    /// Makes the Pods that are missing, unless a failure is too fresh, and removes those that are too many.
    fn keep_running(
        &self,
        job: &Value,
        active: &[&Value],
        options: &SimOptions,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) -> Option<Timestamp> {
        let parallelism = job["spec"]["parallelism"].as_i64().unwrap_or(1);
        let wanted = match job["spec"]["completions"].as_i64() {
            Some(completions) => parallelism.min(completions - self.succeeded),
            // The Pods agree among themselves when all is done: after the first success none is added.
            None if self.succeeded > 0 => i64::try_from(active.len()).unwrap_or(0),
            None => parallelism,
        };
        let wanted = usize::try_from(wanted).unwrap_or(0);
        for pod in active.iter().skip(wanted) {
            actions.extend(key(pod).map(|key| Action::Delete {
                key,
                uid: uid(pod).to_owned(),
            }));
        }
        if active.len() >= wanted {
            return None;
        }
        if let Some(failure) = self.last_failure {
            let doubled = u32::try_from((self.failed - 1).clamp(0, 16)).unwrap_or(0);
            let end = later(failure, (options.backoff * 2_u32.pow(doubled)).min(LONGEST_REST));
            if now < end {
                return Some(end);
            }
        }
        let missing = i64::try_from(wanted - active.len()).unwrap_or(0).min(BURST);
        if is_indexed(job) {
            let taken: BTreeSet<i64> = active.iter().filter_map(|pod| index_of(pod)).collect();
            let completions = int(&job["spec"]["completions"]);
            let free = (0..completions).filter(|i| !self.indexes.contains(i) && !taken.contains(i));
            let made = free
                .take(usize::try_from(missing).unwrap_or(0))
                .map(|i| Action::Create(pod(job, Some(i))));
            actions.extend(made);
        } else {
            actions.extend((0..missing).map(|_| Action::Create(pod(job, None))));
        }
        None
    }
}

fn pod(job: &Value, index: Option<i64>) -> Value {
    let mut pod = pod_from_template(job, &job["spec"]["template"]);
    match index {
        Some(index) => {
            pod["metadata"]["generateName"] = json!(format!("{}-{index}-", name(job)));
            pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
            pod["metadata"]["labels"][INDEX] = json!(index.to_string());
            pod["spec"]["hostname"] = json!(format!("{}-{index}", name(job)));
        }
        None => pod["metadata"]["generateName"] = json!(format!("{}-", name(job))),
    }
    pod
}

/// Numbers as `0-2,5`.
fn ranges(numbers: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => runs.push((*number, *number)),
        }
    }
    // Two neighbours are written as such; a range has at least three.
    let show = |(start, end): &(i64, i64)| match end - start {
        0 => start.to_string(),
        1 => format!("{start},{end}"),
        _ => format!("{start}-{end}"),
    };
    runs.iter().map(show).collect::<Vec<String>>().join(",")
}

fn read_ranges(text: &str) -> BTreeSet<i64> {
    let bounds = |part: &str| {
        let (start, end) = part.split_once('-').unwrap_or((part, part));
        Some(start.parse::<i64>().ok()?..=end.parse::<i64>().ok()?.min(100_000))
    };
    text.split(',').filter_map(bounds).flatten().collect()
}
