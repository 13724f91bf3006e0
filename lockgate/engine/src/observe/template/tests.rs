//! Tables for workloads; other kinds are in [`kinds`], and what waiting clients see is in [`clients`].

mod clients;
mod kinds;

use lockgate_api::work::{LastApplied, ManifestStatus};

use super::*;
use crate::observe::applied;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_733_161 + second).expect("within range")
}

const NOW: &str = "2026-11-15T08:59:21Z";
const NAMES: [&str; 4] = ["member1", "member2", "member3", "member4"];

fn template(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "generation": 5}, "spec": spec,
           "status": status})
}

/// Members that hold the template as it is, one for each status; null is none.
fn reports(statuses: &[Value]) -> Vec<MemberReport<'_>> {
    statuses
        .iter()
        .zip(NAMES)
        .map(|(status, cluster)| MemberReport {
            cluster,
            status: (!status.is_null()).then_some(status),
            health: Health::Healthy,
            applied: true,
            has_copy: true,
            current: true,
            suspended: false,
        })
        .collect()
}

/// The status that follows, or null; and that nothing follows from that at a later time.
fn next(template: &Value, members: &[MemberReport<'_>]) -> Value {
    let Some(status) = aggregate_template(template, members, at(0)) else {
        return Value::Null;
    };
    let mut settled = template.clone();
    settled["status"] = status.clone();
    let again = aggregate_template(&settled, members, at(60));
    assert_eq!(again, None, "it settles at once: {status}");
    status
}

/// Name, spec, old status, what the members say, and the new status.
type Case = (&'static str, Value, Value, Vec<Value>, Value);

fn check(api_version: &str, kind: &str, cases: Vec<Case>) {
    for (name, spec, old, statuses, expected) in cases {
        let template = template(api_version, kind, spec, old);
        assert_eq!(next(&template, &reports(&statuses)), expected, "{kind}: {name}");
    }
}

fn deployed(replicas: i64, ready: i64) -> Value {
    json!({"generation": 2, "observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas,
           "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": replicas - ready})
}

fn says(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": NOW,
           "lastTransitionTime": NOW})
}

fn available() -> Value {
    says(
        "Available",
        "True",
        "MinimumReplicasAvailable",
        "Deployment has minimum availability.",
    )
}

fn progressed() -> Value {
    says(
        "Progressing",
        "True",
        "NewReplicaSetAvailable",
        "Deployment has successfully progressed in every cluster.",
    )
}

#[test]
fn deployments() {
    check(
        "apps/v1",
        "Deployment",
        vec![
            (
                "no clusters yet",
                json!({"replicas": 6}),
                json!({}),
                vec![],
                Value::Null,
            ),
            (
                "no controllers",
                json!({"replicas": 6}),
                json!({}),
                vec![
                    json!({"generation": 1, "resourceTemplateGeneration": 2}),
                    json!({"generation": 1}),
                ],
                Value::Null,
            ),
            (
                "silence",
                json!({"replicas": 6}),
                json!({"replicas": 6}),
                vec![Value::Null],
                Value::Null,
            ),
            (
                "divided",
                json!({"replicas": 6}),
                json!({"collisionCount": 1}),
                vec![deployed(4, 4), deployed(2, 2)],
                json!({"collisionCount": 1, "observedGeneration": 5, "replicas": 6, "updatedReplicas": 6,
                       "readyReplicas": 6, "availableReplicas": 6, "conditions": [available(), progressed()]}),
            ),
            (
                "no cluster any more",
                json!({"replicas": 6}),
                json!({"observedGeneration": 4, "replicas": 6, "updatedReplicas": 6}),
                vec![],
                json!({"observedGeneration": 4, "conditions": [
                    says("Available", "False", "MinimumReplicasUnavailable", "Deployment is in no cluster."),
                    says("Progressing", "True", "ReplicaSetUpdated", "Deployment is in no cluster."),
                ]}),
            ),
        ],
    );
}

/// The member's status with one condition.
fn with(mut status: Value, kind: &str, value: &str, reason: &str) -> Value {
    let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
    all.push(json!({"type": kind, "status": value, "reason": reason, "message": ""}));
    status["conditions"] = json!(all);
    status
}

#[test]
fn deployments_that_are_not_ready() {
    let template = |spec| template("apps/v1", "Deployment", spec, json!({}));
    let both = [deployed(2, 2), deployed(2, 1)];
    let mut members = reports(&both);
    members[1].health = Health::Unhealthy;
    let status = next(&template(json!({"replicas": 4})), &members);
    let waiting = says(
        "Available",
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability in member2.",
    );
    let going = says(
        "Progressing",
        "True",
        "ReplicaSetUpdated",
        "Deployment is progressing in member2.",
    );
    assert_eq!(status["conditions"], json!([waiting, going]));
    assert_eq!(status["observedGeneration"], 5);

    let status = next(&template(json!({"replicas": 4, "paused": true})), &members);
    let paused = says(
        "Progressing",
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    );
    assert_eq!(status["conditions"][1], paused);

    // A member's own word on availability counts, whatever its health.
    let word = with(deployed(2, 1), "Available", "True", "MinimumReplicasAvailable");
    members[1].status = Some(&word);
    assert_eq!(
        next(&template(json!({"replicas": 4})), &members)["conditions"][0],
        available()
    );

    let late = with(deployed(2, 1), "Progressing", "False", "ProgressDeadlineExceeded");
    members[1].status = Some(&late);
    let status = next(&template(json!({"replicas": 4})), &members);
    let failed = says(
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
        "Deployment has timed out progressing in member2.",
    );
    assert_eq!(status["conditions"][1], failed);
}

#[test]
fn times_move_only_with_what_is_said() {
    let both = [deployed(2, 2), deployed(2, 2)];
    let mut members = reports(&both);
    let mut object = template("apps/v1", "Deployment", json!({"replicas": 4}), json!({}));
    object["status"] = next(&object, &members);
    members[1].health = Health::Unhealthy;
    let status = aggregate_template(&object, &members, at(60)).expect("a cluster fell ill");
    let later = "2026-11-15T09:00:21Z";
    let conditions = &status["conditions"];
    assert_eq!(conditions[0]["lastTransitionTime"], later, "available turned");
    assert_eq!(conditions[1]["lastTransitionTime"], NOW, "progressing did not");
    assert_eq!(conditions[1]["lastUpdateTime"], later, "but says something else");
}

#[test]
fn a_suspended_cluster_is_not_waited_for() {
    let statuses = [deployed(2, 2), deployed(2, 2), Value::Null];
    let mut members = reports(&statuses);
    for held in &mut members[1..] {
        (held.applied, held.current, held.suspended) = (false, false, true);
    }
    let object = template("apps/v1", "Deployment", json!({"replicas": 2}), json!({}));
    let status = |members: &[MemberReport<'_>], counts| {
        aggregate_template_as(&object, members, counts, at(0)).expect("there is something to say")
    };
    let told = status(&members, Counts::Weakest);
    assert_eq!(told["observedGeneration"], 5);
    assert_eq!(told["updatedReplicas"], 2);
    assert_eq!(told["conditions"][0]["status"], "True", "available");
    assert_eq!(told["conditions"][1]["reason"], "NewReplicaSetAvailable");
    assert_eq!(
        status(&members, Counts::Summed)["replicas"],
        4,
        "what runs on it is counted"
    );
    // Nothing was released: nobody says that it is done.
    members[0] = MemberReport {
        applied: false,
        current: false,
        suspended: true,
        ..members[0]
    };
    let told = status(&members, Counts::Weakest);
    assert_eq!(told["observedGeneration"], Value::Null);
    assert_eq!(told["conditions"][1]["reason"], "ReplicaSetUpdated");
}

#[test]
fn whole_copies_are_counted_by_one_cluster() {
    let (all, some) = (Health::Healthy, Health::Unhealthy);
    let counts = |replicas: i64, updated: i64, ready: i64| {
        json!({"replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready,
               "unavailableReplicas": replicas - ready})
    };
    for (name, wanted, members, expected) in [
        (
            "as the template says",
            2,
            [(deployed(2, 2), all), (deployed(2, 2), all)],
            counts(2, 2, 2),
        ),
        (
            "scaled in one member",
            2,
            [(deployed(10, 10), all), (deployed(2, 2), all)],
            counts(2, 2, 2),
        ),
        (
            "raised and lowered by overrides",
            3,
            [(deployed(5, 5), all), (deployed(1, 1), all)],
            counts(3, 3, 3),
        ),
        (
            "the weaker one",
            2,
            [(deployed(10, 10), all), (deployed(2, 1), some)],
            counts(2, 2, 1),
        ),
        (
            "not the smaller one",
            2,
            [(deployed(10, 9), some), (deployed(2, 2), all)],
            counts(10, 10, 9),
        ),
        (
            "nothing was said",
            2,
            [(deployed(2, 2), all), (Value::Null, some)],
            counts(2, 1, 2),
        ),
    ] {
        let statuses = members.clone().map(|(status, _)| status);
        let mut reports = reports(&statuses);
        for (report, (_, health)) in reports.iter_mut().zip(&members) {
            report.health = *health;
        }
        let object = template("apps/v1", "Deployment", json!({"replicas": wanted}), json!({}));
        let told = aggregate_template_as(&object, &reports, Counts::Weakest, at(0)).expect("a status");
        for (field, number) in expected.as_object().expect("counts") {
            assert_eq!(
                count(&told, field),
                number.as_i64().expect("a number"),
                "{name}: {field}"
            );
        }
    }
}

#[test]
fn a_cluster_without_a_work_holds_up_nobody() {
    let status = deployed(2, 2);
    let mut members = reports(std::slice::from_ref(&status));
    members.push(MemberReport::silent("member2"));
    let object = template("apps/v1", "Deployment", json!({"replicas": 2}), json!({}));
    for counts in [Counts::Summed, Counts::Weakest] {
        let told = aggregate_template_as(&object, &members, counts, at(0)).expect("a status");
        assert_eq!(told["readyReplicas"], 2, "what runs is shown");
        assert_eq!(told["observedGeneration"], Value::Null, "and is not all");
        assert_eq!(
            told["conditions"][1]["message"],
            "Deployment is progressing in member2."
        );
    }
    let nobody = [MemberReport::silent("member1"), MemberReport::silent("member2")];
    assert_eq!(aggregate_template(&object, &nobody, at(0)), None);
}

#[test]
fn what_is_nowhere_has_no_replicas() {
    let old = json!({"observedGeneration": 5, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
                     "availableReplicas": 2, "conditions": [available(), progressed()]});
    let object = template("apps/v1", "Deployment", json!({"replicas": 2}), old);
    let refused = [MemberReport::silent("member1"), MemberReport::silent("member2")];
    for counts in [Counts::Summed, Counts::Weakest] {
        let told = aggregate_template_as(&object, &refused, counts, at(0)).expect("a status");
        assert_eq!(count(&told, "readyReplicas") + count(&told, "updatedReplicas"), 0);
        assert_eq!(told["conditions"][0]["status"], "False");
        assert_eq!(
            told["conditions"][1]["message"],
            "Deployment is progressing in member1, member2."
        );
    }
    // Who took it has it, whether anybody there says so or not.
    let mut taken = refused;
    taken[1].has_copy = true;
    assert_eq!(aggregate_template(&object, &taken, at(0)), None);
    // What is there runs on while newer content is on its way, or was refused; gone is what the member has not.
    let work = |applied: &str, of: i64, has: bool| -> Work {
        let last = has.then(|| json!({"workGeneration": 1, "version": "gen:1", "uid": "x"}));
        let applied = json!({"type": "Applied", "status": applied, "observedGeneration": of});
        let status = json!({"conditions": [applied], "lastApplied": last});
        serde_json::from_value(json!({"metadata": {"generation": 2}, "status": status})).expect("a Work")
    };
    for (applied, of, has, stays) in [
        ("True", 1, true, true),
        ("False", 2, true, true),
        ("False", 2, false, false),
    ] {
        let work = work(applied, of, has);
        let told = aggregate_template(&object, &[MemberReport::of("member1", &work, false)], at(0));
        assert_eq!(told.is_none(), stays, "{applied} {of} {has}");
    }
    for (kind, status) in [
        (
            "Service",
            json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
        ),
        ("Pod", json!({"phase": "Running"})),
    ] {
        let object = template("v1", kind, json!({"type": "LoadBalancer"}), status);
        assert_eq!(aggregate_template(&object, &refused, at(0)), None, "{kind}");
    }
}

#[test]
fn nothing_is_all_there_in_no_cluster() {
    let object = |replicas: i64| template("apps/v1", "Deployment", json!({"replicas": replicas}), json!({}));
    assert_eq!(
        next(&object(0), &[]),
        json!({"observedGeneration": 5, "conditions": [available(), progressed()]})
    );
    assert_eq!(next(&object(1), &[]), Value::Null);
    let service = template("v1", "Service", json!({"replicas": 0}), json!({}));
    assert_eq!(next(&service, &[]), Value::Null);
}

#[test]
fn messages_name_no_more_clusters_than_fit() {
    let names: Vec<String> = (0..25).map(|index| format!("c{index:02}")).collect();
    let spoken = deployed(1, 0);
    let members: Vec<MemberReport<'_>> = names
        .iter()
        .map(|cluster| MemberReport {
            cluster,
            status: Some(&spoken),
            health: Health::Unhealthy,
            applied: true,
            has_copy: true,
            current: true,
            suspended: false,
        })
        .collect();
    let object = template("apps/v1", "Deployment", json!({"replicas": 25}), json!({}));
    let status = next(&object, &members);
    let message = status["conditions"][1]["message"].as_str().expect("a text");
    let named = "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 15 more";
    assert_eq!(message, format!("Deployment is progressing in {named}."));
}

#[test]
fn the_generation_is_raised_when_every_member_has_seen_it() {
    let statuses = [deployed(1, 1), deployed(1, 1)];
    let old = json!({"generation": 3, "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1});
    type Change<'a> = fn(&mut MemberReport<'a>, &'a Value);
    let cases: [(&str, Change<'_>, i64); 5] = [
        ("all have", |_, _| {}, 5),
        ("one is held", |member, _| member.current = false, 4),
        ("one was not told", |member, _| member.applied = false, 4),
        ("one says nothing", |member, _| member.status = None, 4),
        ("one has not looked", |member, old| member.status = Some(old), 4),
    ];
    for (kind, spec) in [
        ("Deployment", json!({"replicas": 2})),
        ("StatefulSet", json!({"replicas": 2})),
        ("ReplicaSet", json!({"replicas": 2})),
        ("DaemonSet", json!({})),
    ] {
        for (name, change, expected) in cases {
            let mut members = reports(&statuses);
            change(&mut members[1], &old);
            let object = template("apps/v1", kind, spec.clone(), json!({"observedGeneration": 4}));
            let status = aggregate_template(&object, &members, at(0));
            let status = status.unwrap_or_else(|| object["status"].clone());
            assert_eq!(status["observedGeneration"], expected, "{kind}: {name}");
        }
    }
}

#[test]
fn a_status_from_before_the_last_write_is_not_current() {
    let work = |version: &str, generation: Value| {
        let mut work = Work::default();
        work.metadata.generation = 2;
        work.status.conditions = vec![applied(Ok(()), false, 2, at(0))];
        work.status.last_applied = Some(LastApplied {
            work_generation: 2,
            uid: String::new(),
            version: version.to_owned(),
            replicas: None,
        });
        work.status.manifest_statuses = vec![ManifestStatus {
            status: Some(json!({"generation": generation})),
            health: "Healthy".to_owned(),
            ..ManifestStatus::default()
        }];
        work
    };
    for (name, work, held, current) in [
        ("as written", work("gen:4", json!(4)), true, true),
        ("newer", work("gen:4", json!(5)), true, true),
        ("from before", work("gen:4", json!(3)), true, false),
        ("other content", work("gen:4", json!(4)), false, false),
        (
            "a kind without generations",
            work("rv:77", Value::Null),
            true,
            true,
        ),
    ] {
        let report = MemberReport::of("member1", &work, held);
        assert_eq!((report.current, report.applied), (current, true), "{name}");
        assert_eq!(report.health, Health::Healthy);
    }
}

#[test]
fn stateful_sets() {
    let set = |replicas: i64, ready: i64, current: &str, update: &str| {
        json!({"generation": 2, "observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas,
               "currentReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
               "currentRevision": current, "updateRevision": update})
    };
    let sum = |current: Option<&str>| {
        let mut status = json!({"observedGeneration": 5, "replicas": 3, "updatedReplicas": 3, "currentReplicas": 3,
                                "readyReplicas": 3, "availableReplicas": 3, "updateRevision": "b"});
        set_revision(&mut status, current);
        status
    };
    let spec = json!({"replicas": 3});
    check(
        "apps/v1",
        "StatefulSet",
        vec![
            (
                "no controllers",
                spec.clone(),
                json!({"replicas": 0, "availableReplicas": 0}),
                vec![json!({"generation": 1, "replicas": 0, "availableReplicas": 0})],
                Value::Null,
            ),
            (
                "done",
                spec.clone(),
                json!({}),
                vec![set(2, 2, "b", "b"), set(1, 1, "c", "c")],
                sum(Some("b")),
            ),
            (
                "one is at its old revision",
                spec.clone(),
                json!({}),
                vec![set(2, 2, "b", "b"), set(1, 1, "a", "c")],
                sum(Some("a")),
            ),
            (
                "the other's old revision is the first one's new",
                spec,
                json!({}),
                vec![set(2, 2, "b", "b"), set(1, 1, "b", "c")],
                sum(None),
            ),
        ],
    );
}

fn set_revision(status: &mut Value, current: Option<&str>) {
    super::set(status, "currentRevision", current.map(|current| json!(current)));
}

#[test]
fn replica_sets_and_daemon_sets() {
    let set = json!({"generation": 1, "observedGeneration": 1, "replicas": 2, "fullyLabeledReplicas": 2,
                     "readyReplicas": 1, "availableReplicas": 1});
    let daemons = |desired: i64, available: i64| {
        json!({"generation": 1, "observedGeneration": 1, "desiredNumberScheduled": desired,
               "currentNumberScheduled": desired, "numberMisscheduled": 0, "numberReady": available,
               "updatedNumberScheduled": desired, "numberAvailable": available,
               "numberUnavailable": desired - available})
    };
    check(
        "apps/v1",
        "ReplicaSet",
        vec![(
            "sums",
            json!({"replicas": 4}),
            json!({"replicas": 0}),
            vec![set.clone(), set],
            json!({"observedGeneration": 5, "replicas": 4, "fullyLabeledReplicas": 4, "readyReplicas": 2,
                   "availableReplicas": 2}),
        )],
    );
    check(
        "apps/v1",
        "DaemonSet",
        vec![(
            "sums",
            json!({}),
            json!({}),
            vec![daemons(3, 3), daemons(2, 1)],
            json!({"observedGeneration": 5, "desiredNumberScheduled": 5, "currentNumberScheduled": 5,
                   "numberMisscheduled": 0, "numberReady": 4, "updatedNumberScheduled": 5, "numberAvailable": 4,
                   "numberUnavailable": 1}),
        )],
    );
}
