//! Jobs and CronJobs.
//!
//! A Job that finished says so once and is never changed again. Servers refuse a finished Job that is inconsistent, so
//! `Failed` comes with `FailureTarget`, `Complete` with `SuccessCriteriaMet` and its time, and neither with active Pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{MemberReport, set, set_count, sum};
use crate::observe::{count, is_true, stamp};

/// Jobs.
pub(super) fn job(members: &[MemberReport<'_>], now: Timestamp, status: &mut Value) {
    if members.is_empty() || is_finished(status) {
        return;
    }
    // Pods that ended do not come back: a server refuses a count that falls, as it does when a cluster leaves.
    for field in ["succeeded", "failed"] {
        let number = sum(members, field).max(count(status, field));
        set_count(status, field, number, &[]);
    }
    let says = |kind: &'static str| {
        move |member: &&MemberReport<'_>| member.status.is_some_and(|status| is_true(status, kind))
    };
    let failed: Vec<&str> = members
        .iter()
        .filter(says("Failed"))
        .map(|member| member.cluster)
        .collect();
    let all = |kind: &'static str| members.iter().filter(says(kind)).count() == members.len();
    let starts = times(members, "startTime");
    let all_started = starts.len() == members.len();
    let mut conditions = Vec::new();
    if !failed.is_empty() {
        let message = format!("Job executed failed in member clusters {}", failed.join(","));
        conditions.push(("FailureTarget", "JobFailed", message.clone()));
        conditions.push(("Failed", "JobFailed", message));
    } else if all("Complete") {
        conditions.push(("SuccessCriteriaMet", "Completed", "Job completed".to_owned()));
        conditions.push(("Complete", "Completed", "Job completed".to_owned()));
        let end = times(members, "completionTime").into_iter().max();
        let end = end.map_or_else(|| stamp(now), |(_, text)| text.to_owned());
        set(status, "completionTime", Some(json!(end)));
    } else if all("SuccessCriteriaMet") {
        conditions.push(("SuccessCriteriaMet", "Completed", "Job completed".to_owned()));
    }
    let finished = conditions.len() > 1;
    let active = if finished { 0 } else { sum(members, "active") };
    set_count(status, "active", active, &[]);
    if status["startTime"].is_null() && (all_started || finished) {
        let start = starts.into_iter().min();
        let start = start.map_or_else(|| stamp(now), |(_, text)| text.to_owned());
        set(status, "startTime", Some(json!(start)));
    }
    for (kind, reason, message) in conditions {
        put(status, kind, reason, &message, now);
    }
}

fn is_finished(status: &Value) -> bool {
    is_true(status, "Complete") || is_true(status, "Failed")
}

/// Adds a condition that is true. One that was said already is left as it is.
fn put(status: &mut Value, kind: &str, reason: &str, message: &str, now: Timestamp) {
    if is_true(status, kind) {
        return;
    }
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != kind);
    conditions.push(json!({
        "type": kind,
        "status": "True",
        "lastProbeTime": stamp(now),
        "lastTransitionTime": stamp(now),
        "reason": reason,
        "message": message,
    }));
    set(status, "conditions", Some(Value::Array(conditions)));
}

/// The times that members give, each as it was written. What is no time is left out.
fn times<'a>(members: &[MemberReport<'a>], field: &str) -> Vec<(Timestamp, &'a str)> {
    members
        .iter()
        .filter_map(|member| {
            let text = member.status?.get(field)?.as_str()?;
            Some((text.parse().ok()?, text))
        })
        .collect()
}

/// CronJobs: the latest times, and all that is active.
pub(super) fn cron_job(members: &[MemberReport<'_>], status: &mut Value) {
    let active: Vec<Value> = members
        .iter()
        .filter_map(|member| member.status?.get("active")?.as_array())
        .flatten()
        .cloned()
        .collect();
    let active = (!active.is_empty()).then_some(Value::Array(active));
    set(status, "active", active);
    for field in ["lastScheduleTime", "lastSuccessfulTime"] {
        if let Some((_, text)) = times(members, field).into_iter().max() {
            set(status, field, Some(json!(text)));
        }
    }
}
