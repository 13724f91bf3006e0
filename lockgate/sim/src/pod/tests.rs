//! Pods, played second by second.

use std::time::Duration;

use super::*;
use crate::behaviour::BEHAVIOUR;
use crate::object::{annotation, condition, is_true, set_annotation};
use crate::testing::{at, pod, replica_set};

fn options() -> SimOptions {
    SimOptions {
        delay: Duration::from_secs(2),
        ..SimOptions::default()
    }
}

/// A Pod with one container of this image, as it lies in the store after it was bound at second 0.
fn bound(image: &str, policy: &str) -> Value {
    let mut pod = pod("web-1", &replica_set("web", 1));
    pod["spec"]["containers"][0]["image"] = json!(image);
    pod["spec"]["restartPolicy"] = json!(policy);
    pod
}

fn look(pod: &Value, second: i64) -> Vec<Action> {
    look_at(pod, second, NodeState::Ready, &options())
}

fn look_at(pod: &Value, second: i64, node: NodeState, options: &SimOptions) -> Vec<Action> {
    let seen = Snapshot {
        pod,
        node,
        host_ip: "172.17.0.1",
        pod_ip: "10.244.0.9",
        since: at(0),
    };
    decide(&seen, options, at(second))
}

/// Does what is decided, again and again until the given second. Returns when it last asked to be woken.
fn play(pod: &mut Value, from: i64, to: i64) -> Option<Timestamp> {
    let mut second = from;
    for _ in 0..1000 {
        let mut wake = None;
        for action in look(pod, second) {
            match action {
                Action::UpdateStatus(changed) => *pod = changed,
                Action::WakeAt(time) => wake = Some(time),
                other => panic!("{other:?}"),
            }
        }
        match wake {
            Some(time) if time <= at(to) => second = time.as_second() - at(0).as_second(),
            _ => return wake,
        }
    }
    panic!("the Pod is never done");
}

fn shown(pod: &Value) -> String {
    let status = &pod["status"];
    let container = &status["containerStatuses"][0];
    let state = crate::object::fields(&container["state"]).next();
    let state = state.map_or(String::new(), |(state, detail)| {
        format!("{state} {}", text(&detail["reason"]))
    });
    format!(
        "{} {} ready={} restarts={}",
        text(&status["phase"]),
        state.trim(),
        is_true(status, "Ready"),
        container["restartCount"]
    )
}

#[test]
fn pods_come_to_what_their_image_says() {
    let table = [
        (
            "web:1",
            "Always",
            0,
            "Pending waiting ContainerCreating ready=false restarts=0",
        ),
        ("web:1", "Always", 2, "Running running ready=true restarts=0"),
        ("web:1", "Always", 900, "Running running ready=true restarts=0"),
        (
            "web:never-ready",
            "Always",
            900,
            "Running running ready=false restarts=0",
        ),
        (
            "web:pull-error",
            "Always",
            900,
            "Pending waiting ImagePullBackOff ready=false restarts=0",
        ),
        (
            "web:slow-9s",
            "Always",
            8,
            "Pending waiting ContainerCreating ready=false restarts=0",
        ),
        (
            "web:slow-9s",
            "Always",
            9,
            "Running running ready=true restarts=0",
        ),
        (
            "web:fail",
            "Always",
            2,
            "Running waiting CrashLoopBackOff ready=false restarts=0",
        ),
        // It rests 10, then 20, then 40 seconds.
        (
            "web:fail",
            "Always",
            12,
            "Running waiting CrashLoopBackOff ready=false restarts=1",
        ),
        (
            "web:fail",
            "Always",
            31,
            "Running waiting CrashLoopBackOff ready=false restarts=1",
        ),
        (
            "web:fail",
            "Always",
            32,
            "Running waiting CrashLoopBackOff ready=false restarts=2",
        ),
        ("web:crash", "Always", 2, "Running running ready=true restarts=0"),
        (
            "web:crash",
            "Always",
            12,
            "Running waiting CrashLoopBackOff ready=false restarts=0",
        ),
        ("web:crash", "Always", 22, "Running running ready=true restarts=1"),
        ("job:1", "Never", 2, "Running running ready=true restarts=0"),
        (
            "job:1",
            "Never",
            4,
            "Succeeded terminated Completed ready=false restarts=0",
        ),
        (
            "job:1",
            "OnFailure",
            4,
            "Succeeded terminated Completed ready=false restarts=0",
        ),
        (
            "job:fail",
            "Never",
            2,
            "Failed terminated Error ready=false restarts=0",
        ),
        (
            "job:fail",
            "OnFailure",
            12,
            "Running waiting CrashLoopBackOff ready=false restarts=1",
        ),
    ];
    for (image, policy, second, wanted) in table {
        let mut pod = bound(image, policy);
        play(&mut pod, 0, second);
        assert_eq!(shown(&pod), wanted, "{image} with {policy} after {second} s");
    }
}

#[test]
fn a_running_pod_has_what_clients_look_at_and_writes_nothing_more() {
    let mut pod = bound("web:1", "Always");
    assert_eq!(play(&mut pod, 0, 2), None);
    let status = &pod["status"];
    assert_eq!(
        (text(&status["podIP"]), text(&status["hostIP"])),
        ("10.244.0.9", "172.17.0.1")
    );
    assert_eq!(text(&status["startTime"]), stamp(at(0)));
    assert_eq!(
        text(&status["containerStatuses"][0]["state"]["running"]["startedAt"]),
        stamp(at(2))
    );
    for kind in [
        "PodScheduled",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodReadyToStartContainers",
    ] {
        assert!(is_true(status, kind), "{kind}");
    }
    assert_eq!(look(&pod, 5000), []);
}

#[test]
fn without_a_delay_one_write_suffices() {
    let instant = SimOptions {
        delay: Duration::ZERO,
        ..SimOptions::default()
    };
    for (image, policy, phase) in [("web:1", "Always", "Running"), ("job:1", "Never", "Succeeded")] {
        let actions = look_at(&bound(image, policy), 0, NodeState::Ready, &instant);
        let [Action::UpdateStatus(changed)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(changed["status"]["phase"], phase);
    }
}

#[test]
fn an_image_that_cannot_be_pulled_settles_the_pod() {
    let mut pod = bound("web:pull-error", "Always");
    assert_eq!(play(&mut pod, 0, 2), None);
    // A member forgets since when a settled Pod is in its stage: it begins anew with every look.
    let seen = Snapshot {
        pod: &pod,
        node: NodeState::Ready,
        host_ip: "172.17.0.1",
        pod_ip: "10.244.0.9",
        since: at(500),
    };
    assert_eq!(decide(&seen, &options(), at(500)), []);
}

#[test]
fn an_annotation_changes_a_pod_that_runs() {
    let mut pod = bound("web:1", "Always");
    play(&mut pod, 0, 2);
    for (word, wanted) in [
        (Some("never-ready"), "Running running ready=false restarts=0"),
        (None, "Running running ready=true restarts=0"),
        (
            Some("fail"),
            "Running waiting CrashLoopBackOff ready=false restarts=0",
        ),
        (None, "Running running ready=true restarts=1"),
    ] {
        set_annotation(&mut pod, BEHAVIOUR, word);
        play(&mut pod, 100, 100);
        assert_eq!(shown(&pod), wanted, "{:?}", annotation(&pod, BEHAVIOUR));
    }
}

#[test]
fn init_containers_come_first() {
    let mut pod = bound("web:1", "Always");
    pod["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "setup:1"},
        {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
        {"name": "check", "image": "check:slow-5s"},
    ]);
    play(&mut pod, 0, 4);
    assert_eq!(
        shown(&pod),
        "Pending waiting PodInitializing ready=false restarts=0"
    );
    let message = &condition(&pod["status"], "Initialized").expect("a condition")["message"];
    assert_eq!(*message, "containers with incomplete status: [check]");
    play(&mut pod, 5, 9);
    assert_eq!(shown(&pod), "Running running ready=true restarts=0");
    assert_eq!(
        pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"],
        0
    );
    assert!(pod["status"]["initContainerStatuses"][1]["state"]["running"].is_object());

    pod["status"] = json!({"phase": "Pending"});
    pod["spec"]["initContainers"] = json!([{"name": "setup", "image": "setup:fail"}]);
    pod["spec"]["restartPolicy"] = json!("Never");
    play(&mut pod, 0, 9);
    assert_eq!(pod["status"]["phase"], "Failed");
}

#[test]
fn containers_go_their_own_ways() {
    let mut pod = bound("web:1", "Always");
    pod["spec"]["containers"] =
        json!([{"name": "main", "image": "web:1"}, {"name": "late", "image": "late:slow-8s"}]);
    play(&mut pod, 0, 2);
    assert_eq!(pod["status"]["phase"], "Pending");
    let message = condition(&pod["status"], "Ready").expect("a condition")["message"].clone();
    assert_eq!(message, "containers with unready status: [late]");
    play(&mut pod, 8, 8);
    assert_eq!(
        (text(&pod["status"]["phase"]), is_true(&pod["status"], "Ready")),
        ("Running", true)
    );
}

#[test]
fn pods_that_are_told_to_go_go_after_the_delay() {
    let mut pod = bound("web:1", "Always");
    pod["metadata"]["deletionTimestamp"] = json!(stamp(at(30)));
    // The second it goes, by its grace: the delay is two seconds.
    for (grace, end) in [(30, 2), (1, 1)] {
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        assert_eq!(look(&pod, end - 1), [Action::WakeAt(at(end))], "grace {grace}");
        assert!(
            matches!(&look(&pod, end)[..], [Action::Delete { uid, .. }] if uid == "uid-web-1"),
            "grace {grace}"
        );
    }
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert_eq!(look(&pod, 5), [], "a finalizer holds it, not a container");
}

#[test]
fn a_lost_node_takes_its_pods_along() {
    let mut pod = bound("web:1", "Always");
    play(&mut pod, 0, 2);
    let actions = look_at(&pod, 9, NodeState::NotReady, &options());
    let [Action::UpdateStatus(lost)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert!(!is_true(&lost["status"], "Ready"));
    assert_eq!(look_at(lost, 10, NodeState::NotReady, &options()), []);
    let mut found = lost.clone();
    play(&mut found, 11, 11);
    assert!(is_true(&found["status"], "Ready"));
    assert!(matches!(
        &look_at(&pod, 9, NodeState::Gone, &options())[..],
        [Action::Delete { .. }]
    ));
}
