//! Workloads: counts, the generation that all members have seen, and a Deployment's conditions.
//!
//! A rollout is over when a client's own comparison of counts says so. Sums alone would say it too early: two clusters of
//! three that are ready have together what `spec.replicas` asks for, if each is given all of it. So while a cluster is
//! not ready, one updated replica is held back from counts that would look complete.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Counts, MemberReport, is_reported, set, set_count};
use crate::object::generation;
use crate::observe::{Health, condition, count, stamp};

/// Names of clusters that a message lists; of more it says how many.
const NAMED: usize = 10;

/// How the clusters do, taken together.
struct Fleet<'a, 'm> {
    members: &'a [MemberReport<'m>],
    counts: Counts,
    /// Whether every cluster is done; no cluster at all is none that is done.
    ready: bool,
}

impl<'a, 'm> Fleet<'a, 'm> {
    /// None if there is nothing to say: no controller has spoken, in no cluster.
    fn new(
        members: &'a [MemberReport<'m>],
        counts: Counts,
        is_ready: impl Fn(&MemberReport<'m>) -> bool,
    ) -> Option<Self> {
        let spoken = members
            .iter()
            .any(|member| member.status.is_some_and(is_reported));
        (spoken || members.is_empty()).then(|| Self {
            members,
            counts,
            ready: !members.is_empty() && members.iter().all(is_ready),
        })
    }

    /// A count over all clusters. `worst` picks the worse of two.
    fn count(&self, field: &str, worst: fn(i64, i64) -> i64) -> i64 {
        let all = self
            .members
            .iter()
            .map(|member| member.status.map_or(0, |status| count(status, field)));
        match self.counts {
            Counts::Summed => all.fold(0, i64::saturating_add),
            Counts::Weakest => all.reduce(worst).unwrap_or(0),
        }
    }

    /// Raises the generation that was seen, once every cluster has seen it.
    fn observe(&self, template: &Value, status: &mut Value) {
        let seen = !self.members.is_empty() && self.members.iter().all(MemberReport::has_seen);
        let generation = generation(template);
        if seen && generation > count(status, "observedGeneration") {
            set(status, "observedGeneration", Some(json!(generation)));
        }
    }
}

fn wanted(template: &Value) -> i64 {
    template["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Deployments.
pub(super) fn deployment(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    now: Timestamp,
    status: &mut Value,
) {
    let Some(fleet) = Fleet::new(members, counts, is_deployed) else {
        return;
    };
    let replicas = fleet.count("replicas", i64::max);
    let available = fleet.count("availableReplicas", i64::min);
    let mut updated = fleet.count("updatedReplicas", i64::min);
    let wanted = wanted(template);
    let looks_ready = updated >= wanted && replicas <= updated && available >= updated;
    if looks_ready && !fleet.ready {
        updated = updated.min((wanted - 1).max(0));
    }
    for (field, number) in [
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", fleet.count("readyReplicas", i64::min)),
        ("availableReplicas", available),
        (
            "unavailableReplicas",
            fleet.count("unavailableReplicas", i64::max),
        ),
    ] {
        set_count(status, field, number, &[]);
    }
    fleet.observe(template, status);
    put(status, available_condition(members), now);
    put(status, progress_condition(template, members, fleet.ready), now);
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

/// Available if every cluster says so.
fn available_condition(members: &[MemberReport<'_>]) -> Says {
    let is_available = |member: &MemberReport<'_>| {
        let says = |status: &Value| match condition(status, "Available") {
            Some(condition) => condition["status"] == "True",
            None => is_reported(status) && member.health == Health::Healthy,
        };
        member.status.is_some_and(says)
    };
    let missing = names(members.iter().filter(|member| !is_available(member)));
    let (status, reason, message) = match missing {
        None if !members.is_empty() => (
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

/// StatefulSets.
pub(super) fn stateful_set(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    status: &mut Value,
) {
    let Some(fleet) = Fleet::new(members, counts, MemberReport::is_ready) else {
        return;
    };
    let ready = fleet.count("readyReplicas", i64::min);
    let mut updated = fleet.count("updatedReplicas", i64::min);
    let partition = template["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
        .as_i64()
        .unwrap_or(0);
    let to_update = wanted(template) - partition;
    if ready >= wanted(template) && updated >= to_update && !fleet.ready {
        updated = updated.min((to_update - 1).max(0));
    }
    for (field, number) in [
        ("replicas", fleet.count("replicas", i64::max)),
        ("readyReplicas", ready),
        ("currentReplicas", fleet.count("currentReplicas", i64::min)),
        ("updatedReplicas", updated),
        ("availableReplicas", fleet.count("availableReplicas", i64::min)),
    ] {
        set_count(status, field, number, &["replicas", "availableReplicas"]);
    }
    fleet.observe(template, status);
    revisions(members, status);
}

/// The revisions of a StatefulSet: equal if they are in every cluster. Each cluster has its own; that of the first one
/// stands for all.
fn revisions(members: &[MemberReport<'_>], status: &mut Value) {
    let pair = |member: &MemberReport<'_>| {
        let status = member.status?;
        let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
        Some((
            text("currentRevision")?.to_owned(),
            text("updateRevision")?.to_owned(),
        ))
    };
    let pairs: Vec<_> = members.iter().map(|member| (member, pair(member))).collect();
    let Some((_, update)) = pairs.iter().find_map(|(_, pair)| pair.as_ref()) else {
        return;
    };
    let is_settled = |(member, pair): &(&MemberReport<'_>, Option<(String, String)>)| {
        member.has_seen() && pair.as_ref().is_some_and(|(current, update)| current == update)
    };
    let current = if pairs.iter().all(is_settled) {
        Some(update)
    } else {
        let others = pairs.iter().filter_map(|(_, pair)| pair.as_ref());
        others
            .map(|(current, _)| current)
            .find(|current| *current != update)
    };
    set(status, "updateRevision", Some(json!(update)));
    set(status, "currentRevision", current.map(|current| json!(current)));
}

/// ReplicaSets.
pub(super) fn replica_set(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    status: &mut Value,
) {
    let Some(fleet) = Fleet::new(members, counts, MemberReport::is_ready) else {
        return;
    };
    set_count(
        status,
        "replicas",
        fleet.count("replicas", i64::max),
        &["replicas"],
    );
    for field in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        set_count(status, field, fleet.count(field, i64::min), &[]);
    }
    fleet.observe(template, status);
}

/// DaemonSets. How many Pods they want follows from the nodes, so sums are always right.
pub(super) fn daemon_set(template: &Value, members: &[MemberReport<'_>], status: &mut Value) {
    const ALWAYS: [&str; 4] = [
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberMisscheduled",
        "numberReady",
    ];
    let Some(fleet) = Fleet::new(members, Counts::Summed, MemberReport::is_ready) else {
        return;
    };
    let sum = |field: &str| fleet.count(field, i64::max);
    let desired = sum("desiredNumberScheduled");
    let mut updated = sum("updatedNumberScheduled");
    if updated >= desired && sum("numberAvailable") >= desired && !fleet.ready {
        updated = updated.min((desired - 1).max(0));
    }
    for field in ALWAYS.iter().chain(&["numberAvailable", "numberUnavailable"]) {
        set_count(status, field, sum(field), &ALWAYS);
    }
    set_count(status, "updatedNumberScheduled", updated, &ALWAYS);
    fleet.observe(template, status);
}
