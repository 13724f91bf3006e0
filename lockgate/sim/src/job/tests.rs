use super::*;
use crate::testing::{at, job, pod};

fn in_phase(job: &Value, name: &str, phase: &str) -> Value {
    let mut pod = pod(name, job);
    pod["status"]["phase"] = json!(phase);
    if phase == "Failed" {
        pod["status"]["containerStatuses"] = json!([{"state": {"terminated": {"finishedAt": stamp(at(0))}}}]);
    }
    pod
}

fn options() -> SimOptions {
    SimOptions {
        backoff: Duration::from_secs(10),
        ..SimOptions::default()
    }
}

/// What is done, in short, and the status afterwards.
fn check(job: &Value, pods: &[Value], second: i64) -> (Vec<String>, Value) {
    let mut status = job["status"].clone();
    let mut done = Vec::new();
    for action in decide(job, pods, &options(), at(second)) {
        match action {
            Action::Create(_) => done.push("create".to_owned()),
            Action::Delete { key, .. } => done.push(format!("delete {}", key.name)),
            Action::WakeAt(time) => done.push(format!("wake {}", time.as_second() - at(0).as_second())),
            Action::UpdateStatus(job) => status = job["status"].clone(),
            other => panic!("{other:?}"),
        }
    }
    (done, status)
}

#[test]
fn pods_run_until_enough_have_succeeded() {
    let job = job("work", 3, 2);
    let (running, done, failed) = ("Running", "Succeeded", "Failed");
    // The phases of the Pods, the second, what is done: the first rest after a failure is ten seconds.
    let table: [(&[&str], i64, &[&str]); 6] = [
        (&[], 0, &["create", "create"]),
        (&[running, running], 0, &[]),
        (&[running, done], 0, &["create"]),
        (&[running, done, done], 0, &[]),
        (&[running, failed], 9, &["wake 10"]),
        (&[running, failed], 10, &["create"]),
    ];
    for (phases, second, wanted) in table {
        let pods: Vec<Value> = phases
            .iter()
            .enumerate()
            .map(|(i, phase)| in_phase(&job, &format!("work-{i}"), phase))
            .collect();
        assert_eq!(
            check(&job, &pods, second).0,
            wanted,
            "{phases:?} after {second} s"
        );
    }
}

#[test]
fn a_job_ends_well_or_badly() {
    let job = job("work", 2, 2);
    let mut limited = job.clone();
    limited["spec"]["activeDeadlineSeconds"] = json!(60);
    limited["status"]["startTime"] = json!(stamp(at(0)));
    let table = [
        (
            &job,
            vec!["Succeeded", "Succeeded"],
            5,
            "Complete",
            "CompletionsReached",
        ),
        (
            &job,
            vec!["Failed", "Failed", "Running"],
            5,
            "Failed",
            "BackoffLimitExceeded",
        ),
        (
            &limited,
            vec!["Running", "Running"],
            60,
            "Failed",
            "DeadlineExceeded",
        ),
    ];
    for (job, phases, second, kind, reason) in table {
        let pods: Vec<Value> = phases
            .iter()
            .enumerate()
            .map(|(i, phase)| in_phase(job, &format!("work-{i}"), phase))
            .collect();
        let (done, status) = check(job, &pods, second);
        assert_eq!(
            condition(&status, kind).map(|c| &c["reason"]),
            Some(&json!(reason)),
            "{phases:?}"
        );
        assert_eq!(
            done.len(),
            phases.iter().filter(|phase| **phase == "Running").count(),
            "what runs is removed"
        );
        assert_eq!(int(&status["active"]), 0);
        let mut ended = job.clone();
        ended["status"] = status;
        assert_eq!(decide(&ended, &[], &options(), at(999)), [], "an end is an end");
    }
}

#[test]
fn restarts_in_place_count_as_failures() {
    let mut job = job("work", 1, 1);
    job["spec"]["backoffLimit"] = json!(2);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    for (restarts, failed) in [(1, false), (2, true)] {
        let mut pod = in_phase(&job, "work-a", "Running");
        pod["status"]["containerStatuses"] = json!([{"restartCount": restarts}]);
        assert_eq!(
            is_true(&check(&job, &[pod], 0).1, "Failed"),
            failed,
            "{restarts} restarts"
        );
    }
}

#[test]
fn what_was_counted_stays_counted() {
    let mut job = job("work", 2, 1);
    job["status"] = json!({"succeeded": 1, "startTime": stamp(at(0))});
    let (_, status) = check(&job, &[in_phase(&job, "work-b", "Running")], 0);
    assert_eq!(status["succeeded"], 1);
}

#[test]
fn indexes_are_run_once_each() {
    let mut job = job("work", 5, 2);
    job["spec"]["completionMode"] = json!("Indexed");
    let indexed = |index: i64, phase: &str| {
        let mut pod = in_phase(&job, &format!("work-{index}"), phase);
        pod["metadata"]["annotations"] = json!({INDEX: index.to_string()});
        pod
    };
    let pods = [
        indexed(0, "Succeeded"),
        indexed(1, "Succeeded"),
        indexed(2, "Succeeded"),
        indexed(4, "Running"),
    ];
    let actions = decide(&job, &pods, &options(), at(0));
    let [Action::Create(made), Action::UpdateStatus(changed)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(
        (annotation(made, INDEX), text(&made["spec"]["hostname"])),
        (Some("3"), "work-3")
    );
    assert_eq!(changed["status"]["completedIndexes"], "0-2");
}

#[test]
fn index_ranges_read_back() {
    for text in ["0", "0,1", "0-2", "0-2,5", "1,3-5,7,8"] {
        assert_eq!(ranges(&read_ranges(text)), text);
    }
    assert!(read_ranges("").is_empty());
    assert!(read_ranges("x,9-1").is_empty());
}

#[test]
fn a_suspended_job_lets_its_pods_go_and_comes_back() {
    let mut job = job("work", 1, 1);
    job["spec"]["suspend"] = json!(true);
    let (done, status) = check(&job, &[in_phase(&job, "work-a", "Running")], 0);
    assert_eq!(done, ["delete work-a"]);
    assert!(is_true(&status, "Suspended"));
    job["status"] = status;
    assert_eq!(decide(&job, &[], &options(), at(5)), []);
    job["spec"]["suspend"] = json!(false);
    let (done, status) = check(&job, &[], 6);
    assert_eq!(done, ["create"]);
    assert!(!is_true(&status, "Suspended"));
}

#[test]
fn a_finished_job_lives_as_long_as_it_says() {
    let mut job = job("work", 1, 1);
    job["spec"]["ttlSecondsAfterFinished"] = json!(30);
    job["status"] = check(&job, &[in_phase(&job, "work-a", "Succeeded")], 0).1;
    assert_eq!(check(&job, &[], 29).0, ["wake 30"]);
    assert_eq!(check(&job, &[], 30).0, ["delete work"]);
}
