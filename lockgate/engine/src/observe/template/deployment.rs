//! Deployments: counts as of any workload, and the conditions that clients wait for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::workload::{Fleet, wanted};
use super::{Counts, MemberReport, is_reported, set, set_count};
use crate::observe::{Health, condition, count, stamp};

/// Names of clusters that a message lists; of more it says how many.
const NAMED: usize = 10;

/// Deployments.
pub(super) fn deployment(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    now: Timestamp,
    status: &mut Value,
) {
    let Some(fleet) = Fleet::new(template, members, counts, is_deployed) else {
        return;
    };
    let replicas = fleet.count("replicas");
    let available = fleet.count("availableReplicas");
    let mut updated = fleet.count("updatedReplicas");
    let wanted = wanted(template);
    let looks_ready = updated >= wanted && replicas <= updated && available >= updated;
    if looks_ready && !fleet.ready {
        updated = updated.min((wanted - 1).max(0));
    }
    for (field, number) in [
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", fleet.count("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", fleet.count("unavailableReplicas")),
    ] {
        set_count(status, field, number, &[]);
    }
    fleet.observe(template, status);
    put(status, available_condition(&fleet.released, fleet.ready), now);
    put(
        status,
        progress_condition(template, &fleet.released, fleet.ready),
        now,
    );
}

/// Whether a cluster has nothing but ready replicas of the new template.
fn is_deployed(member: &MemberReport<'_>) -> bool {
    let no_old = |status: &Value| count(status, "replicas") <= count(status, "updatedReplicas");
    member.is_ready() && member.status.is_some_and(no_old)
}

/// A condition's content, without times.
struct Says {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// Available if every cluster says so, or if none is asked for anything.
fn available_condition(members: &[MemberReport<'_>], ready: bool) -> Says {
    let is_available = |member: &MemberReport<'_>| {
        let says = |status: &Value| match condition(status, "Available") {
            Some(condition) => condition["status"] == "True",
            None => is_reported(status) && member.health == Health::Healthy,
        };
        member.status.is_some_and(says)
    };
    let missing = names(members.iter().filter(|member| !is_available(member)));
    let (status, reason, message) = match missing {
        None if ready || !members.is_empty() => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.".to_owned(),
        ),
        None => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment is in no cluster.".to_owned(),
        ),
        Some(names) => (
            "False",
            "MinimumReplicasUnavailable",
            format!("Deployment does not have minimum availability in {names}."),
        ),
    };
    Says {
        kind: "Available",
        status,
        reason,
        message,
    }
}

/// How the rollout goes. A cluster that gave up fails it.
fn progress_condition(template: &Value, members: &[MemberReport<'_>], ready: bool) -> Says {
    let is_late = |member: &&MemberReport<'_>| {
        let late = |status: &Value| {
            condition(status, "Progressing").is_some_and(|condition| {
                condition["status"] == "False" && condition["reason"] == "ProgressDeadlineExceeded"
            })
        };
        member.status.is_some_and(late)
    };
    let late = names(members.iter().filter(is_late));
    let missing = names(members.iter().filter(|member| !is_deployed(member)));
    let (status, reason, message) = match (late, missing) {
        (Some(names), _) => (
            "False",
            "ProgressDeadlineExceeded",
            format!("Deployment has timed out progressing in {names}."),
        ),
        (None, None) if ready => (
            "True",
            "NewReplicaSetAvailable",
            "Deployment has successfully progressed in every cluster.".to_owned(),
        ),
        _ if template["spec"]["paused"] == true => {
            ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned())
        }
        (None, None) => (
            "True",
            "ReplicaSetUpdated",
            "Deployment is in no cluster.".to_owned(),
        ),
        (None, Some(names)) => (
            "True",
            "ReplicaSetUpdated",
            format!("Deployment is progressing in {names}."),
        ),
    };
    Says {
        kind: "Progressing",
        status,
        reason,
        message,
    }
}

/// The names of clusters, as many as fit in a message; none if there are none.
fn names<'a>(members: impl Iterator<Item = &'a MemberReport<'a>>) -> Option<String> {
    let mut all: Vec<&str> = members.map(|member| member.cluster).collect();
    all.sort_unstable();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let named = all.join(", ");
    match (named.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named),
        (false, more) => Some(format!("{named} and {more} more")),
    }
}

/// Puts a condition in its place. Its times move only with what it says.
fn put(status: &mut Value, says: Says, now: Timestamp) {
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let place = conditions.iter().position(|old| old["type"] == says.kind);
    let old = place.map(|place| &conditions[place]);
    let is_same = |old: &Value| {
        old["status"] == says.status && old["reason"] == says.reason && old["message"] == *says.message
    };
    if old.is_some_and(is_same) {
        return;
    }
    let since = old
        .filter(|old| old["status"] == says.status)
        .and_then(|old| old["lastTransitionTime"].as_str())
        .map_or_else(|| stamp(now), str::to_owned);
    let new = json!({
        "type": says.kind,
        "status": says.status,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": since,
        "reason": says.reason,
        "message": says.message,
    });
    match place {
        Some(place) => conditions[place] = new,
        None => conditions.push(new),
    }
    set(status, "conditions", Some(Value::Array(conditions)));
}
