//! Workloads without Pods, played second by second.

use serde_json::json;

use super::*;
use crate::behaviour::BEHAVIOUR;
use crate::object::{condition, is_true, set_annotation};
use crate::testing::{at, daemon_set, deployment, job, replica_set, stateful_set};

const DELAY: Duration = Duration::from_secs(2);

/// Looks at a workload from a second on until it is settled or the time is up. Returns how often it was written.
fn play(workload: &mut Value, from: i64, to: i64) -> usize {
    play_with(workload, from, to, DELAY)
}

fn play_with(workload: &mut Value, from: i64, to: i64, delay: Duration) -> usize {
    let mut writes = 0;
    let mut second = from;
    for _ in 0..100 {
        let seen = Snapshot {
            workload,
            nodes: 3,
            since: at(from),
            delay,
        };
        let mut wake = None;
        for action in decide(&seen, at(second)) {
            match action {
                Action::UpdateStatus(changed) => {
                    *workload = changed;
                    writes += 1;
                    // The write itself is seen, too.
                    wake = wake.or(Some(at(second)));
                }
                Action::WakeAt(time) => wake = Some(wake.map_or(time, |wake: Timestamp| wake.min(time))),
                other => panic!("{other:?}"),
            }
        }
        match wake {
            Some(time) if time <= at(to) => second = time.as_second() - at(0).as_second(),
            _ => return writes,
        }
    }
    panic!("it never settles: {workload:#}");
}

fn counts<const N: usize>(workload: &Value, fields: [&str; N]) -> [i64; N] {
    fields.map(|field| int(&workload["status"][field]))
}

fn rollout(workload: &Value) -> [i64; 4] {
    counts(
        workload,
        [
            "replicas",
            "updatedReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ],
    )
}

fn change(workload: &mut Value, image: &str) {
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    let generation = int(&workload["metadata"]["generation"]) + 1;
    workload["metadata"]["generation"] = json!(generation);
}

fn reason(workload: &Value) -> &str {
    condition(&workload["status"], "Progressing").map_or("", |c| text(&c["reason"]))
}

#[test]
fn a_deployment_comes_up_rolls_and_scales() {
    let mut web = deployment("web", 4);
    assert_eq!(play(&mut web, 0, 1), 1);
    assert_eq!((rollout(&web), reason(&web)), ([4, 4, 0, 4], "ReplicaSetUpdated"));
    assert!(!is_true(&web["status"], "Available"));
    assert_eq!(play(&mut web, 0, 9), 1);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([4, 4, 4, 0], "NewReplicaSetAvailable")
    );
    assert_eq!(
        play(&mut web, 1000, 2000),
        0,
        "a settled Deployment writes nothing"
    );

    change(&mut web, "web:2");
    play(&mut web, 2000, 2001);
    assert_eq!((rollout(&web), reason(&web)), ([5, 2, 3, 2], "ReplicaSetUpdated"));
    play(&mut web, 2000, 2002);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([4, 4, 4, 0], "NewReplicaSetAvailable")
    );
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );

    web["spec"]["replicas"] = json!(6);
    play(&mut web, 3000, 3001);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([6, 6, 4, 2], "NewReplicaSetAvailable")
    );
    play(&mut web, 3000, 3002);
    assert_eq!(rollout(&web), [6, 6, 6, 0]);
}

#[test]
fn without_a_delay_one_write_suffices() {
    let writes = |mut workload: Value| play_with(&mut workload, 0, 9999, Duration::ZERO);
    assert_eq!(writes(deployment("web", 3)), 1);
    assert_eq!(writes(stateful_set("db", 3)), 1);
    assert_eq!(writes(daemon_set("agent")), 1);
    assert_eq!(writes(replica_set("web", 3)), 1);
    assert_eq!(writes(job("work", 3, 1)), 1);
}

#[test]
fn a_bad_deployment_is_stuck_and_times_out() {
    let mut fresh = deployment("web", 4);
    change(&mut fresh, "web:pull-error");
    play(&mut fresh, 0, 10);
    assert_eq!(
        (rollout(&fresh), reason(&fresh)),
        ([4, 4, 0, 4], "ReplicaSetUpdated")
    );
    play(&mut fresh, 0, 700);
    assert_eq!(reason(&fresh), "ProgressDeadlineExceeded");

    let mut web = deployment("web", 4);
    play(&mut web, 0, 9);
    change(&mut web, "web:fail");
    play(&mut web, 100, 110);
    assert_eq!((rollout(&web), reason(&web)), ([5, 2, 3, 2], "ReplicaSetUpdated"));
    assert!(
        is_true(&web["status"], "Available"),
        "the old Pods are still there"
    );
    play(&mut web, 100, 800);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([5, 2, 3, 2], "ProgressDeadlineExceeded")
    );
    assert_eq!(play(&mut web, 900, 9999), 0);
    change(&mut web, "web:3");
    play(&mut web, 10_000, 10_010);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([4, 4, 4, 0], "NewReplicaSetAvailable")
    );
}

#[test]
fn an_annotation_breaks_and_mends_what_runs() {
    let mut web = deployment("web", 2);
    play(&mut web, 0, 9);
    set_annotation(&mut web, BEHAVIOUR, Some("fail"));
    play(&mut web, 100, 110);
    assert_eq!(
        (rollout(&web), is_true(&web["status"], "Available")),
        ([2, 2, 0, 2], false)
    );
    set_annotation(&mut web, BEHAVIOUR, None);
    play(&mut web, 200, 210);
    assert_eq!(
        (rollout(&web), is_true(&web["status"], "Available")),
        ([2, 2, 2, 0], true)
    );
}

#[test]
fn slow_is_slow() {
    let mut web = deployment("web", 1);
    change(&mut web, "web:slow-60s");
    play(&mut web, 0, 59);
    assert_eq!(rollout(&web), [1, 1, 0, 1]);
    play(&mut web, 0, 60);
    assert_eq!(rollout(&web), [1, 1, 1, 0]);
}

#[test]
fn a_paused_deployment_keeps_its_template() {
    let mut web = deployment("web", 2);
    play(&mut web, 0, 9);
    web["spec"]["paused"] = json!(true);
    change(&mut web, "web:fail");
    play(&mut web, 100, 110);
    assert_eq!(
        (rollout(&web), reason(&web)),
        ([2, 0, 2, 0], "NewReplicaSetAvailable")
    );
    web["spec"]["paused"] = json!(false);
    change(&mut web, "web:2");
    play(&mut web, 200, 210);
    assert_eq!(rollout(&web), [2, 2, 2, 0]);
}

#[test]
fn a_deployment_that_is_paused_from_the_start_waits() {
    let mut web = deployment("web", 2);
    web["spec"]["paused"] = json!(true);
    play(&mut web, 0, 99);
    assert_eq!((rollout(&web), reason(&web)), ([0, 0, 0, 0], ""));
    web["spec"]["paused"] = json!(false);
    play(&mut web, 100, 199);
    assert_eq!(rollout(&web), [2, 2, 2, 0]);
}

#[test]
fn a_stateful_set_moves_one_by_one() {
    const FIELDS: [&str; 4] = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"];
    let mut db = stateful_set("db", 3);
    play(&mut db, 0, 1);
    assert_eq!(counts(&db, FIELDS), [1, 0, 1, 1]);
    play(&mut db, 0, 2);
    assert_eq!(counts(&db, FIELDS), [3, 3, 3, 3]);
    let before = db["status"]["currentRevision"].clone();
    change(&mut db, "db:fail");
    play(&mut db, 100, 200);
    assert_eq!(counts(&db, FIELDS), [3, 2, 2, 1]);
    assert_eq!(db["status"]["currentRevision"], before);
    assert_ne!(db["status"]["updateRevision"], before);
    change(&mut db, "db:2");
    play(&mut db, 300, 310);
    assert_eq!(counts(&db, FIELDS), [3, 3, 3, 3]);
    assert_eq!(db["status"]["currentRevision"], db["status"]["updateRevision"]);
    let mut fresh = stateful_set("db", 3);
    change(&mut fresh, "db:fail");
    play(&mut fresh, 0, 100);
    assert_eq!(counts(&fresh, FIELDS), [1, 0, 1, 1]);
}

#[test]
fn daemons_replica_sets_and_jobs_come_to_their_end() {
    let mut agent = daemon_set("agent");
    play(&mut agent, 0, 9);
    assert_eq!(
        counts(
            &agent,
            ["desiredNumberScheduled", "numberReady", "updatedNumberScheduled"]
        ),
        [3, 3, 3]
    );
    change(&mut agent, "agent:fail");
    play(&mut agent, 100, 200);
    assert_eq!(
        counts(
            &agent,
            ["numberReady", "numberUnavailable", "updatedNumberScheduled"]
        ),
        [2, 1, 1]
    );

    let mut set = replica_set("web", 3);
    play(&mut set, 0, 9);
    assert_eq!(counts(&set, ["replicas", "readyReplicas"]), [3, 3]);

    for (image, kind, counted) in [("work:1", "Complete", [3, 0]), ("work:fail", "Failed", [0, 2])] {
        let mut work = job("work", 3, 2);
        change(&mut work, image);
        play(&mut work, 0, 1);
        assert_eq!(counts(&work, ["active"]), [2]);
        play(&mut work, 0, 9);
        assert!(is_true(&work["status"], kind), "{image}");
        assert_eq!(counts(&work, ["succeeded", "failed"]), counted);
    }
}
