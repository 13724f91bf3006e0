//! Workloads: counts, and the generation that all members have seen.
//!
//! A rollout is over when a client's own comparison of counts says so. Sums alone would say it too early: two clusters of
//! three that are ready have together what `spec.replicas` asks for, if each is given all of it. So while a cluster is
//! not ready, one updated replica is held back from counts that would look complete.

use serde_json::{Value, json};

use super::{Counts, MemberReport, is_reported, released, set, set_count, sum};
use crate::object::generation;
use crate::observe::count;
use crate::observe::kind::Kind;

/// How the clusters do, taken together.
pub(super) struct Fleet<'a, 'm> {
    all: &'a [MemberReport<'m>],
    /// Those that clients wait for.
    pub(super) released: Vec<MemberReport<'m>>,
    counted: Counted<'m>,
    /// Whether every cluster is done; no cluster at all is none that is done, unless there is nothing to do.
    pub(super) ready: bool,
}

/// Where counts come from. Those of several clusters are added up or not mixed at all: the replicas of one and the updated
/// replicas of another say nothing.
#[derive(Clone, Copy)]
enum Counted<'m> {
    /// The sum over all clusters.
    Sum,
    /// What one cluster says; nothing, if it has said nothing.
    One(Option<&'m Value>),
    /// Everything is there, whatever number of replicas each cluster has of its own.
    Whole(i64),
}

impl<'m> Counted<'m> {
    /// The cluster that stands for all where each has the whole. One that has said nothing has nothing to count.
    fn weakest(
        released: &[MemberReport<'m>],
        ready: bool,
        wanted: i64,
        is_ready: impl Fn(&MemberReport<'m>) -> bool,
    ) -> Self {
        let one =
            |member: &MemberReport<'_>, field: &str| member.status.map_or(0, |status| count(status, field));
        if ready {
            // An override, or an autoscaler in the member, may have given each another number than the template's.
            let as_asked = released.iter().find(|member| one(member, "replicas") == wanted);
            return as_asked.map_or(Self::Whole(wanted), |member| Self::One(member.status));
        }
        let spoken = released
            .iter()
            .filter(|member| member.status.is_some_and(is_reported));
        let weakest = spoken.min_by_key(|member| {
            let counts = ["updatedReplicas", "availableReplicas", "readyReplicas"];
            (is_ready(member), counts.map(|field| one(member, field)))
        });
        Self::One(weakest.and_then(|member| member.status))
    }
}

impl<'a, 'm> Fleet<'a, 'm> {
    /// None if there is nothing to say: no controller has spoken, in no cluster that has it.
    pub(super) fn new(
        template: &Value,
        members: &'a [MemberReport<'m>],
        counts: Counts,
        is_ready: impl Fn(&MemberReport<'m>) -> bool,
    ) -> Option<Self> {
        let spoken = members
            .iter()
            .any(|member| member.status.is_some_and(is_reported));
        let released = released(members);
        let ready = match released.is_empty() {
            true => wanted(template) == 0,
            false => released.iter().all(&is_ready),
        };
        (spoken || is_nowhere(members)).then(|| Self {
            all: members,
            counted: match counts {
                Counts::Summed => Counted::Sum,
                Counts::Weakest => Counted::weakest(&released, ready, wanted(template), is_ready),
            },
            ready,
            released,
        })
    }

    /// A count over the clusters. What runs on a suspended cluster counts in a sum, and is not compared with what was
    /// released.
    pub(super) fn count(&self, field: &str) -> i64 {
        match self.counted {
            Counted::Sum => sum(self.all, field),
            Counted::One(status) => status.map_or(0, |status| count(status, field)),
            Counted::Whole(_) if field == "unavailableReplicas" => 0,
            Counted::Whole(wanted) => wanted,
        }
    }

    /// Raises the generation that was seen, once every cluster has seen it that it was released to.
    pub(super) fn observe(&self, template: &Value, status: &mut Value) {
        let seen = match self.released.is_empty() {
            true => self.ready,
            false => self.released.iter().all(MemberReport::has_seen),
        };
        let generation = generation(template);
        if seen && generation > count(status, "observedGeneration") {
            set(status, "observedGeneration", Some(json!(generation)));
        }
    }
}

/// Whether a kind's status counts replicas.
pub(super) fn counts_replicas(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet | Kind::DaemonSet
    )
}

/// Whether no cluster has it: none has a copy, of whatever content, or there is none.
pub(super) fn is_nowhere(members: &[MemberReport<'_>]) -> bool {
    members
        .iter()
        .all(|member| member.status.is_none() && !member.has_copy)
}

/// Whether a template is all there in no cluster: it asks for no replicas.
pub(super) fn asks_for_nothing(kind: Kind, template: &Value) -> bool {
    counts_replicas(kind) && wanted(template) == 0
}

/// The replicas that the template asks for.
pub(super) fn wanted(template: &Value) -> i64 {
    template["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// StatefulSets.
pub(super) fn stateful_set(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    status: &mut Value,
) {
    let Some(fleet) = Fleet::new(template, members, counts, MemberReport::is_ready) else {
        return;
    };
    let ready = fleet.count("readyReplicas");
    let mut updated = fleet.count("updatedReplicas");
    let partition = template["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
        .as_i64()
        .unwrap_or(0);
    let to_update = wanted(template) - partition;
    if ready >= wanted(template) && updated >= to_update && !fleet.ready {
        updated = updated.min((to_update - 1).max(0));
    }
    for (field, number) in [
        ("replicas", fleet.count("replicas")),
        ("readyReplicas", ready),
        ("currentReplicas", fleet.count("currentReplicas")),
        ("updatedReplicas", updated),
        ("availableReplicas", fleet.count("availableReplicas")),
    ] {
        set_count(status, field, number, &["replicas", "availableReplicas"]);
    }
    fleet.observe(template, status);
    revisions(&fleet.released, status);
    let looks_ready = ready >= wanted(template) && status["currentRevision"] == status["updateRevision"];
    if looks_ready && !fleet.ready {
        // Without a partition clients compare nothing but revisions and the replicas that are ready.
        let held_back = (wanted(template) - 1).max(0);
        for field in ["readyReplicas", "availableReplicas"] {
            set_count(
                status,
                field,
                fleet.count(field).min(held_back),
                &["availableReplicas"],
            );
        }
    }
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
    let Some(fleet) = Fleet::new(template, members, counts, MemberReport::is_ready) else {
        return;
    };
    set_count(status, "replicas", fleet.count("replicas"), &["replicas"]);
    for field in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        set_count(status, field, fleet.count(field), &[]);
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
    let Some(fleet) = Fleet::new(template, members, Counts::Summed, MemberReport::is_ready) else {
        return;
    };
    let sum = |field: &str| fleet.count(field);
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
