//! The status of a Deployment: counts, and whether it is available and moves.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{limits, progressed_at};
use crate::object::{Says, after, condition, int, replicas, set_condition, set_count, stamp, status_of};

/// Seconds that mean "no deadline".
const NEVER: i64 = i32::MAX as i64;

/// The Deployment with its next status, and when to look again. `planned` is how many Pods all sets are to have.
pub(super) fn next(
    deployment: &Value,
    new: Option<&Value>,
    old: &[&Value],
    planned: i64,
    set: Option<&str>,
    news: Option<&str>,
    now: Timestamp,
) -> (Value, Option<Timestamp>) {
    let before = status_of(deployment);
    let sum = |field: &str| {
        new.into_iter()
            .chain(old.iter().copied())
            .map(|set| int(&set["status"][field]))
            .sum::<i64>()
    };
    let mut status = before.clone();
    let available = sum("availableReplicas");
    status["observedGeneration"] = deployment["metadata"]["generation"].clone();
    set_count(&mut status, "replicas", sum("replicas"));
    set_count(
        &mut status,
        "updatedReplicas",
        new.map_or(0, |set| int(&set["status"]["replicas"])),
    );
    set_count(&mut status, "readyReplicas", sum("readyReplicas"));
    set_count(&mut status, "availableReplicas", available);
    set_count(&mut status, "unavailableReplicas", (planned - available).max(0));
    availability(deployment, &mut status, now);

    let mut wanted = deployment.clone();
    wanted["status"] = status;
    let wake = progress(&mut wanted, &before, set, news, now);
    (wanted, wake)
}

/// Whether everything is of the present template, and there.
pub(super) fn is_complete(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let wanted = replicas(deployment);
    ["updatedReplicas", "replicas", "availableReplicas"]
        .iter()
        .all(|field| int(&status[*field]) == wanted)
        && int(&status["observedGeneration"]) >= int(&deployment["metadata"]["generation"])
}

/// Sets the condition `Available`.
pub(crate) fn availability(deployment: &Value, status: &mut Value, now: Timestamp) {
    let (_, unavailable) = limits(deployment);
    let says = if int(&status["availableReplicas"]) >= replicas(deployment) - unavailable {
        Says::new(
            true,
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        Says::new(
            false,
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let is_same = |old: &Value| old["reason"] == says.reason && old["status"] == says.status;
    if condition(status, "Available").is_some_and(is_same) {
        return;
    }
    set_condition(
        status,
        "Available",
        &says,
        json!({"lastUpdateTime": stamp(now)}),
        now,
    );
}

/// Sets the condition `Progressing`, with the present as the time of its update.
pub(crate) fn set_progress(status: &mut Value, ok: bool, reason: &str, message: &str, now: Timestamp) {
    renew(status, &Says::new(ok, reason, message), now);
}

fn renew(status: &mut Value, says: &Says<'_>, now: Timestamp) {
    set_condition(
        status,
        "Progressing",
        says,
        json!({"lastUpdateTime": stamp(now)}),
        now,
    );
}

/// Says how the rollout goes; returns when its time is up.
fn progress(
    deployment: &mut Value,
    before: &Value,
    set: Option<&str>,
    news: Option<&str>,
    now: Timestamp,
) -> Option<Timestamp> {
    let paused = deployment["spec"]["paused"] == true;
    let deadline = deployment["spec"]["progressDeadlineSeconds"]
        .as_i64()
        .filter(|seconds| *seconds < NEVER);
    let reason = condition(before, "Progressing").map(|c| c["reason"].as_str().unwrap_or("").to_owned());
    let complete = is_complete(deployment);
    let status = &mut deployment["status"];
    deadline?;
    if paused {
        if reason.as_deref() != Some("DeploymentPaused")
            && reason.as_deref() != Some("NewReplicaSetAvailable")
        {
            renew(
                status,
                &Says::unknown("DeploymentPaused", "Deployment is paused"),
                now,
            );
        }
        return None;
    }
    if reason.as_deref() == Some("DeploymentPaused") {
        renew(
            status,
            &Says::unknown("DeploymentResumed", "Deployment is resumed"),
            now,
        );
    }
    let settled = reason.as_deref() == Some("NewReplicaSetAvailable")
        && int(&status["replicas"]) == int(&status["updatedReplicas"])
        && news.is_none();
    if settled {
        return None;
    }
    let set = set.unwrap_or_default();
    if complete {
        set_progress(
            status,
            true,
            "NewReplicaSetAvailable",
            &format!("ReplicaSet \"{set}\" has successfully progressed."),
            now,
        );
        return None;
    }
    if let Some(news) = news {
        set_progress(status, true, "NewReplicaSetCreated", news, now);
    } else if moved(status, before) || reason.is_none() {
        set_progress(
            status,
            true,
            "ReplicaSetUpdated",
            &format!("ReplicaSet \"{set}\" is progressing."),
            now,
        );
    }
    time_out(deployment, set, now)
}

/// Whether a rollout moved on since the last status.
fn moved(status: &Value, before: &Value) -> bool {
    let count = |status: &Value, field: &str| int(&status[field]);
    let old = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    ["updatedReplicas", "readyReplicas", "availableReplicas"]
        .iter()
        .any(|field| count(status, field) > count(before, field))
        || old(status) < old(before)
}

/// Says so when a rollout has not moved for too long; returns when that would be.
pub(crate) fn time_out(deployment: &mut Value, set: &str, now: Timestamp) -> Option<Timestamp> {
    let seconds = deployment["spec"]["progressDeadlineSeconds"]
        .as_i64()
        .filter(|seconds| *seconds < NEVER)?;
    let status = &mut deployment["status"];
    let reason = &condition(status, "Progressing")?["reason"];
    if reason == "ProgressDeadlineExceeded" || reason == "NewReplicaSetAvailable" {
        return None;
    }
    // The time of the update has whole seconds: one more is surely later.
    let end = after(progressed_at(status)?, seconds + 1);
    if now < end {
        return Some(end);
    }
    let message = format!("ReplicaSet \"{set}\" has timed out progressing.");
    set_progress(status, false, "ProgressDeadlineExceeded", &message, now);
    None
}
