//! What clients that wait for a template see. Their comparisons are written down here as they make them, and hold for
//! any state of any clusters: they end if every cluster is ready, and only then.

use proptest::prelude::*;

use super::*;

/// How a client sees a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Waiting,
    Done,
    Failed,
}

use Seen::{Done, Failed, Waiting};

fn done(holds: bool) -> Seen {
    if holds { Done } else { Waiting }
}

fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or(0)
}

fn reason(status: &Value, kind: &str) -> String {
    let found = crate::observe::condition(status, kind);
    found.map_or(String::new(), |condition| {
        condition["reason"].as_str().unwrap_or_default().to_owned()
    })
}

/// `kubectl rollout status` of any workload.
fn rollout_status(object: &Value) -> Seen {
    let (spec, status) = (&object["spec"], &object["status"]);
    let n = |field: &str| number(status, field);
    let wanted = number(spec, "replicas");
    if n("observedGeneration") < number(&object["metadata"], "generation") {
        return Waiting;
    }
    match object["kind"].as_str() {
        Some("Deployment") if reason(status, "Progressing") == "ProgressDeadlineExceeded" => Failed,
        Some("Deployment") => done(
            n("updatedReplicas") >= wanted
                && n("replicas") <= n("updatedReplicas")
                && n("availableReplicas") >= n("updatedReplicas"),
        ),
        Some("DaemonSet") => {
            let desired = n("desiredNumberScheduled");
            done(n("updatedNumberScheduled") >= desired && n("numberAvailable") >= desired)
        }
        _ if n("readyReplicas") < wanted => Waiting,
        _ => match spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64() {
            Some(partition) => done(n("updatedReplicas") >= wanted - partition),
            None => done(status["updateRevision"] == status["currentRevision"]),
        },
    }
}

/// What Flux and Helm compute of a Deployment.
fn computed_status(object: &Value) -> Seen {
    let (spec, status) = (&object["spec"], &object["status"]);
    let n = |field: &str| number(status, field);
    let wanted = number(spec, "replicas");
    if n("observedGeneration") != number(&object["metadata"], "generation") {
        return Waiting;
    }
    if reason(status, "Progressing") == "ProgressDeadlineExceeded" {
        return Failed;
    }
    done(
        n("replicas") == wanted
            && n("updatedReplicas") >= wanted
            && n("availableReplicas") >= n("updatedReplicas")
            && n("readyReplicas") >= wanted
            && reason(status, "Progressing") == "NewReplicaSetAvailable"
            && crate::observe::is_true(status, "Available"),
    )
}

/// The live object of one cluster, and whether its Work is as it should be.
#[derive(Clone, Debug)]
struct Member {
    live: Option<Value>,
    current: bool,
    applied: bool,
}

/// A workload in some state, as its own controller could report it.
fn member(kind: &'static str, wanted: i64) -> impl Strategy<Value = Member> {
    let finished = prop_oneof![Just(true), any::<bool>()];
    let counts = (0..=wanted + 1, 0..=wanted, 0..=wanted);
    let flags = (finished, any::<bool>(), 0..8u8);
    (counts, flags).prop_map(move |((old, updated, ready), (finished, late, state))| {
        let (old, updated, ready) = if finished {
            (0, wanted, wanted)
        } else {
            (old, updated, ready.min(old + updated))
        };
        let settled = old == 0 && updated == wanted && ready == wanted;
        let reported = if state == 0 { 0 } else { 2 };
        let mut status = match kind {
            "DaemonSet" => json!({
                "desiredNumberScheduled": wanted, "currentNumberScheduled": wanted, "numberReady": ready,
                "numberMisscheduled": 0, "updatedNumberScheduled": updated, "numberAvailable": ready.min(wanted),
            }),
            _ => json!({
                "replicas": old + updated, "updatedReplicas": updated, "readyReplicas": ready,
                "availableReplicas": ready, "updateRevision": "b",
                "currentRevision": if settled { "b" } else { "a" },
                "conditions": [
                    {"type": "Available", "status": if ready >= wanted { "True" } else { "False" }},
                    {"type": "Progressing", "status": if late && !settled { "False" } else { "True" },
                     "reason": if late && !settled { "ProgressDeadlineExceeded" } else { "Any" }},
                ],
            }),
        };
        status["observedGeneration"] = json!(reported);
        let live = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 2},
            "spec": {"replicas": wanted}, "status": status,
        });
        Member {
            live: (state != 1).then_some(live),
            current: state != 2,
            applied: state != 3,
        }
    })
}

/// Whether a cluster is ready, asked of the cluster itself as a client would ask it.
fn is_ready(member: &Member) -> bool {
    let own = |live: &Value| rollout_status(live) == Done;
    member.current && member.applied && member.live.as_ref().is_some_and(own)
}

fn is_late(member: &Member) -> bool {
    let late = |live: &Value| reason(&live["status"], "Progressing") == "ProgressDeadlineExceeded";
    member.live.as_ref().is_some_and(late)
}

/// The template after its members have spoken.
fn told(mut object: Value, members: &[Member], counts: Counts) -> Value {
    let seen: Vec<_> = members
        .iter()
        .map(|member| {
            member
                .live
                .as_ref()
                .map(crate::observe::observe)
                .unwrap_or_default()
        })
        .collect();
    let reports: Vec<MemberReport<'_>> = members
        .iter()
        .zip(&seen)
        .zip(NAMES)
        .map(|((member, seen), cluster)| MemberReport {
            cluster,
            status: seen.status.as_ref(),
            health: seen.health,
            applied: member.applied,
            has_copy: member.applied || member.live.is_some(),
            current: member.current,
            suspended: false,
        })
        .collect();
    if let Some(status) = aggregate_template_as(&object, &reports, counts, at(0)) {
        object["status"] = status;
        let again = aggregate_template_as(&object, &reports, counts, at(60));
        assert_eq!(again, None, "it settles at once");
    }
    object
}

/// What servers demand of a status.
fn assert_valid(status: &Value) {
    let n = |field: &str| number(status, field);
    for part in [
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "currentReplicas",
    ] {
        assert!(n(part) <= n("replicas"), "{part} of {status}");
    }
    assert!(n("availableReplicas") <= n("readyReplicas"), "{status}");
}

/// Members of a kind, each with its own number of replicas: their sum is what the template asks for, or the template's
/// number is one of them and the others come from overrides and from autoscalers.
fn fleet(kind: &'static str, divided: bool) -> impl Strategy<Value = (i64, Vec<Member>)> {
    let sizes = prop_oneof![
        proptest::collection::vec(1..4i64, 1..4),
        (1..4i64, 1..4usize).prop_map(|(size, clusters)| vec![size; clusters]),
    ];
    sizes.prop_flat_map(move |sizes| {
        let wanted = if divided { sizes.iter().sum() } else { sizes[0] };
        let members: Vec<_> = sizes.iter().map(|size| member(kind, *size)).collect();
        (Just(wanted), members)
    })
}

fn kinds() -> impl Strategy<Value = (&'static str, bool, i64, Vec<Member>)> {
    let kind = proptest::sample::select(vec!["Deployment", "StatefulSet", "DaemonSet"]);
    (kind, any::<bool>()).prop_flat_map(|(kind, divided)| {
        fleet(kind, divided).prop_map(move |(wanted, members)| (kind, divided, wanted, members))
    })
}

proptest! {
    #![proptest_config(crate::properties::cases(2000))]

    #[test]
    fn a_rollout_ends_when_every_cluster_is_ready_and_not_before(
        (kind, divided, wanted, mut members) in kinds(),
        seen_before in any::<bool>(),
        has_partition in any::<bool>(),
    ) {
        let strategy = if has_partition { json!({"rollingUpdate": {"partition": 0}}) } else { json!({}) };
        for live in members.iter_mut().filter_map(|member| member.live.as_mut()) {
            live["spec"]["updateStrategy"] = strategy.clone();
        }
        let spec = json!({"replicas": wanted, "updateStrategy": strategy});
        // A cluster may join long after the template's generation was seen.
        let old = if seen_before { json!({"observedGeneration": 5}) } else { json!({}) };
        let object = told(template("apps/v1", kind, spec, old), &members, Counts::Summed);
        assert_valid(&object["status"]);
        let spoken = members.iter().any(|member| {
            member.live.as_ref().is_some_and(|live| live["status"]["observedGeneration"] != 0)
        });
        let seen = rollout_status(&object);
        if members.iter().all(is_ready) {
            prop_assert_eq!(seen, Done);
            if kind == "Deployment" && divided {
                prop_assert_eq!(computed_status(&object), Done);
            }
        } else if spoken {
            prop_assert_ne!(seen, Done);
            prop_assert_ne!(computed_status(&object), Done);
        }
        if kind == "Deployment" && seen == Failed {
            prop_assert!(members.iter().any(is_late));
        }
    }

    #[test]
    fn counted_by_the_weakest_a_whole_copy_in_every_cluster_ends_for_every_client(
        (wanted, members) in fleet("Deployment", false),
    ) {
        let object = template("apps/v1", "Deployment", json!({"replicas": wanted}), json!({}));
        let object = told(object, &members, Counts::Weakest);
        assert_valid(&object["status"]);
        let ready = members.iter().all(is_ready);
        prop_assert_eq!(rollout_status(&object) == Done, ready);
        prop_assert_eq!(computed_status(&object) == Done, ready);
    }

    #[test]
    fn counted_by_the_weakest_stateful_sets_end_too(
        (wanted, mut members) in fleet("StatefulSet", false),
        has_partition in any::<bool>(),
    ) {
        let strategy = if has_partition { json!({"rollingUpdate": {"partition": 0}}) } else { json!({}) };
        for live in members.iter_mut().filter_map(|member| member.live.as_mut()) {
            live["spec"]["updateStrategy"] = strategy.clone();
        }
        let spec = json!({"replicas": wanted, "updateStrategy": strategy});
        let object = told(template("apps/v1", "StatefulSet", spec, json!({})), &members, Counts::Weakest);
        assert_valid(&object["status"]);
        prop_assert_eq!(rollout_status(&object) == Done, members.iter().all(is_ready));
    }
}

#[test]
fn a_cluster_that_gave_up_fails_the_rollout() {
    let late = json!({
        "generation": 2, "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
        "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
    });
    let statuses = [deployed(1, 1), late];
    let mut members = reports(&statuses);
    members[1].health = Health::Unhealthy;
    let mut object = template("apps/v1", "Deployment", json!({"replicas": 2}), json!({}));
    object["status"] = next(&object, &members);
    assert_eq!(rollout_status(&object), Failed);
    assert_eq!(computed_status(&object), Failed);
}
