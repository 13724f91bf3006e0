//! The conditions of Works and bindings, and what bindings list.

use std::collections::BTreeSet;

use lockgate_api::work::{LastApplied, Work};

use super::*;

#[test]
fn conditions_of_works() {
    let shown =
        |condition: lockgate_api::Condition| serde_json::to_value(condition).expect("it is plain data");
    let time = "2026-11-15T08:59:21Z";
    for (said, expected) in [
        (
            applied(Ok(()), false, 4, at(0)),
            json!({"type": "Applied", "status": "True", "reason": "AppliedSuccessful", "observedGeneration": 4,
                   "message": "Manifest has been successfully applied", "lastTransitionTime": time}),
        ),
        (
            applied(Err("no such namespace"), false, 4, at(0)),
            json!({"type": "Applied", "status": "False", "reason": "AppliedFailed", "observedGeneration": 4,
                   "message": "Failed to apply all manifests (0/1): no such namespace",
                   "lastTransitionTime": time}),
        ),
        (
            applied(Ok(()), true, 4, at(0)),
            json!({"type": "Applied", "status": "True", "reason": "ReCreateSuccessful", "observedGeneration": 4,
                   "message": "Manifest has been successfully applied", "lastTransitionTime": time}),
        ),
        (
            applied(Err("no"), true, 4, at(0)),
            json!({"type": "Applied", "status": "False", "reason": "ReCreateFailed", "observedGeneration": 4,
                   "message": "Failed to apply all manifests (0/1): no", "lastTransitionTime": time}),
        ),
        (
            dispatching(at(0)),
            json!({"type": "Dispatching", "status": "True", "reason": "Dispatching",
                   "message": "Work is being dispatched to member clusters.", "lastTransitionTime": time}),
        ),
        (
            suspended("", at(0)),
            json!({"type": "Dispatching", "status": "False", "reason": "SuspendDispatching",
                   "message": "Work dispatching is in a suspended state.", "lastTransitionTime": time}),
        ),
        (
            suspended("RolloutPolicy shop/web: checking", at(0)),
            json!({"type": "Dispatching", "status": "False", "reason": "SuspendDispatching",
                   "message": "Work dispatching is in a suspended state. RolloutPolicy shop/web: checking",
                   "lastTransitionTime": time}),
        ),
    ] {
        assert_eq!(shown(said), expected);
    }
}

#[test]
fn conditions_of_placing() {
    for (outcome, status, reason, message) in [
        (
            Scheduled::Success,
            "True",
            "Success",
            "Binding has been scheduled successfully.",
        ),
        (Scheduled::NoClusterFit("none"), "False", "NoClusterFit", "none"),
        (Scheduled::Unschedulable("full"), "False", "Unschedulable", "full"),
        (
            Scheduled::QuotaExceeded("quota"),
            "False",
            "QuotaExceeded",
            "quota",
        ),
        (Scheduled::Error("broken"), "False", "SchedulerError", "broken"),
    ] {
        let said = scheduled(outcome, at(0));
        let parts = (&*said.kind, &*said.status, &*said.reason, &*said.message);
        assert_eq!(parts, ("Scheduled", status, reason, message));
    }
}

/// A Work of this generation whose member was seen unhealthy, with these conditions.
fn work(generation: i64, conditions: Vec<lockgate_api::Condition>) -> Work {
    let mut work = Work::default();
    work.metadata.generation = generation;
    work.status.conditions = conditions;
    work
}

fn seen(mut work: Work) -> Work {
    let object = live("apps/v1", "Deployment", json!({"replicas": 2}), json!({}));
    work.status.manifest_statuses = vec![manifest_status(&object, 0)];
    work
}

#[test]
fn what_was_said_of_an_older_work_does_not_count() {
    let told = |generation| applied(Ok(()), false, generation, at(0));
    let mut silent = told(0);
    silent.observed_generation = None;
    let last = |work_generation| {
        let mut work = work(3, vec![silent.clone()]);
        work.status.last_applied = Some(LastApplied {
            work_generation,
            ..LastApplied::default()
        });
        work
    };
    for (name, work, expected) in [
        ("nothing said", work(3, vec![suspended("", at(0))]), false),
        ("of this one", work(3, vec![told(3)]), true),
        ("of an older one", work(3, vec![told(2)]), false),
        ("without a generation", work(3, vec![silent.clone()]), true),
        ("without one, sent before", last(2), false),
        ("without one, sent now", last(3), true),
        (
            "failed",
            work(3, vec![applied(Err("no"), false, 3, at(0))]),
            false,
        ),
    ] {
        assert_eq!(is_applied(&work), expected, "{name}");
    }
}

fn check_binding(works: &[(&str, Work)], targets: &[&str], items: Value, full: bool) {
    let views: Vec<WorkView<'_>> = works
        .iter()
        .map(|(cluster, work)| WorkView { cluster, work })
        .collect();
    let targets: BTreeSet<&str> = targets.iter().copied().collect();
    let (found, condition) = aggregate_works(&views, &targets, at(0));
    assert_eq!(serde_json::to_value(found).expect("it is plain data"), items);
    let expected = if full {
        (
            "True",
            "FullyAppliedSuccess",
            "All works have been successfully applied",
        )
    } else {
        (
            "False",
            "FullyAppliedFailed",
            "Failed to apply all works, see status.aggregatedStatus for details",
        )
    };
    assert_eq!(condition.kind, "FullyApplied");
    assert_eq!(
        (&*condition.status, &*condition.reason, &*condition.message),
        expected
    );
}

#[test]
fn bindings_say_what_every_cluster_says() {
    let told = |generation| applied(Ok(()), false, generation, at(0));
    let running = || seen(work(1, vec![dispatching(at(0)), told(1)]));
    let held = || work(1, vec![suspended("", at(0))]);
    let status = json!({"generation": 3, "resourceTemplateGeneration": 2});
    let fine = |cluster: &str| json!({"applied": true, "clusterName": cluster, "health": "Unhealthy", "status": status});
    let unknown = json!({"clusterName": "member3", "health": "Unknown"});

    // As recorded: sent to one cluster, suspended in another.
    let works = [("member3", held()), ("member1", running())];
    check_binding(
        &works,
        &["member1", "member3"],
        json!([fine("member1"), unknown]),
        false,
    );
    // As recorded: sent to both.
    let works = [("member1", running()), ("member2", running())];
    let both = json!([fine("member1"), fine("member2")]);
    check_binding(&works, &["member1", "member2"], both.clone(), true);
    // A cluster is missing, is too many, or is another one; there are no clusters at all.
    for targets in [
        &["member1", "member2", "member3"][..],
        &["member1"],
        &["member1", "member3"],
        &[],
    ] {
        check_binding(&works, targets, both.clone(), false);
    }
    check_binding(&[], &[], json!([]), false);
    // What is going says nothing.
    let mut going = running();
    going.metadata.deletion_timestamp = Some("2026-11-15T08:59:21Z".to_owned());
    let works = [("member1", running()), ("member2", going)];
    check_binding(&works, &["member1"], json!([fine("member1")]), true);
    // A failure, and one that was applied before it changed.
    let works = [
        ("member1", work(1, vec![applied(Err("no"), false, 1, at(0))])),
        ("member2", seen(work(2, vec![told(1)]))),
    ];
    let items = json!([
        {"clusterName": "member1", "health": "Unknown",
         "appliedMessage": "Failed to apply all manifests (0/1): no"},
        {"clusterName": "member2", "health": "Unknown", "status": status,
         "appliedMessage": "The newest content is not applied yet"},
    ]);
    check_binding(&works, &["member1", "member2"], items, false);
}
