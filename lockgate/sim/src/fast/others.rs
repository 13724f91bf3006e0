//! StatefulSets, DaemonSets, ReplicaSets and Jobs without Pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Progress;
use crate::job::{End, finished_at, write_end};
use crate::object::{Says, int, is_true, replicas, set_condition, set_count, stamp, status_of, text};
use crate::statefulset::revision;

fn with(workload: &Value, status: Value) -> Value {
    let mut changed = workload.clone();
    changed["status"] = status;
    changed
}

fn observed(workload: &Value) -> Value {
    let mut status = status_of(workload);
    status["observedGeneration"] = workload["metadata"]["generation"].clone();
    status
}

/// One Pod after the other: a rollout that is stuck has one new Pod, which is not ready.
pub(super) fn stateful_set(set: &Value, progress: Progress) -> Value {
    let mut status = observed(set);
    let wanted = replicas(set);
    let update = revision(set);
    let current = match text(&status["currentRevision"]) {
        "" => update.clone(),
        current => current.to_owned(),
    };
    let before = int(&status["readyReplicas"]);
    let (all, ready, updated, current) = match progress {
        Progress::There { well: true } => (wanted, wanted, wanted, update.clone()),
        _ if current != update => {
            let ready = before.min((wanted - 1).max(0));
            ((ready + 1).min(wanted), ready, 1.min(wanted), current)
        }
        Progress::Moving => {
            let ready = before.min(wanted);
            let all = (ready + 1).min(wanted);
            (all, ready, all, current)
        }
        // The first Pod never comes up; those that ran all fail.
        Progress::There { well: false } => {
            let all = int(&status["replicas"]).max(1).min(wanted);
            (all, 0, all, current)
        }
    };
    status["replicas"] = json!(all);
    status["availableReplicas"] = json!(ready);
    set_count(&mut status, "readyReplicas", ready);
    set_count(&mut status, "updatedReplicas", updated);
    set_count(
        &mut status,
        "currentReplicas",
        if current == update { all } else { all - updated },
    );
    status["currentRevision"] = json!(current);
    status["updateRevision"] = json!(update);
    status["collisionCount"] = json!(0);
    with(set, status)
}

/// A Pod of a new template takes the place of an old one: a rollout that is stuck lacks one.
pub(super) fn daemon_set(set: &Value, nodes: i64, progress: Progress) -> Value {
    let mut status = observed(set);
    let before = int(&status["numberReady"]);
    let (ready, updated) = match progress {
        Progress::There { well: true } => (nodes, nodes),
        _ if before == 0 => (0, nodes),
        _ => (before.min((nodes - 1).max(0)), 1.min(nodes)),
    };
    status["desiredNumberScheduled"] = json!(nodes);
    status["currentNumberScheduled"] = json!(nodes);
    status["numberMisscheduled"] = json!(0);
    status["numberReady"] = json!(ready);
    set_count(&mut status, "updatedNumberScheduled", updated);
    set_count(&mut status, "numberAvailable", ready);
    set_count(&mut status, "numberUnavailable", nodes - ready);
    with(set, status)
}

pub(super) fn replica_set(set: &Value, progress: Progress) -> Value {
    let mut status = observed(set);
    let wanted = replicas(set);
    let ready = match progress {
        Progress::There { well: true } => wanted,
        Progress::There { well: false } => 0,
        Progress::Moving => int(&status["readyReplicas"]).min(wanted),
    };
    status["replicas"] = json!(wanted);
    set_count(&mut status, "fullyLabeledReplicas", wanted);
    set_count(&mut status, "readyReplicas", ready);
    set_count(&mut status, "availableReplicas", ready);
    with(set, status)
}

pub(super) fn job(job: &Value, progress: Progress, now: Timestamp) -> Value {
    if finished_at(job).is_some() {
        return job.clone();
    }
    let mut status = status_of(job);
    let probed = || json!({"lastProbeTime": stamp(now)});
    if job["spec"]["suspend"] == true {
        if !is_true(&status, "Suspended") {
            let says = Says::new(true, "JobSuspended", "Job suspended");
            set_condition(&mut status, "Suspended", &says, probed(), now);
        }
        set_count(&mut status, "active", 0);
        return with(job, status);
    }
    if is_true(&status, "Suspended") {
        set_condition(
            &mut status,
            "Suspended",
            &Says::new(false, "JobResumed", "Job resumed"),
            probed(),
            now,
        );
    }
    if status["startTime"].is_null() {
        status["startTime"] = json!(stamp(now));
    }
    status["uncountedTerminatedPods"] = json!({});
    let completions = job["spec"]["completions"].as_i64().unwrap_or(1);
    match progress {
        Progress::Moving => {
            let parallelism = job["spec"]["parallelism"].as_i64().unwrap_or(1);
            set_count(&mut status, "active", parallelism.min(completions));
            status["ready"] = json!(0);
            status["terminating"] = json!(0);
        }
        Progress::There { well: true } => {
            set_count(&mut status, "succeeded", completions);
            write_end(&mut status, &End::Complete, now);
        }
        Progress::There { well: false } => {
            set_count(
                &mut status,
                "failed",
                job["spec"]["backoffLimit"].as_i64().unwrap_or(6) + 1,
            );
            write_end(&mut status, &End::BACKOFF, now);
        }
    }
    with(job, status)
}
