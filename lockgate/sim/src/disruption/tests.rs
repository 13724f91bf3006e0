//! The arithmetic of budgets, as tables.

use super::*;
use crate::testing::at;

/// Pods `a`, `b`, … of one controller that wants `replicas`; those in `unready` are not ready.
fn pods(count: usize, replicas: i64, unready: &[&str]) -> Vec<Covered> {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let pod = |name: &&str| Covered {
        pod: json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "status": {"conditions": [{"type": "Ready", "status": if unready.contains(name) { "False" } else { "True" }}]},
        }),
        scale: Scale::Of {
            controller: "uid".to_owned(),
            replicas,
        },
    };
    names.iter().take(count).map(pod).collect()
}

fn budget(spec: Value) -> Value {
    json!({"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": {}})
}

fn status_after(budget: &Value, pods: &[Covered], now: Timestamp) -> Value {
    let mut actions = decide(budget, pods, now).into_iter();
    match actions.next() {
        Some(Action::UpdateStatus(budget)) => budget["status"].clone(),
        other => panic!("{other:?}"),
    }
}

fn numbers(status: &Value) -> [i64; 4] {
    [
        "expectedPods",
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
    ]
    .map(|field| int(&status[field]))
}

#[test]
fn how_many_may_go() {
    for (spec, pods, want) in [
        // A number counts the Pods that are there, whatever their controllers want.
        (json!({"minAvailable": 2}), pods(3, 5, &[]), [3, 3, 2, 1]),
        (json!({"minAvailable": 2}), pods(3, 5, &["a"]), [3, 2, 2, 0]),
        (
            json!({"minAvailable": 0}),
            pods(3, 3, &["a", "b", "c"]),
            [3, 0, 0, 0],
        ),
        (json!({"minAvailable": 4}), pods(3, 3, &[]), [3, 3, 4, 0]),
        // A share is one of what is wanted, and rounded up.
        (json!({"minAvailable": "50%"}), pods(3, 5, &[]), [5, 3, 3, 0]),
        (json!({"minAvailable": "50%"}), pods(4, 4, &[]), [4, 4, 2, 2]),
        (json!({"minAvailable": "100%"}), pods(4, 4, &[]), [4, 4, 4, 0]),
        (json!({"minAvailable": "0%"}), pods(4, 4, &["b"]), [4, 3, 0, 3]),
        (json!({"maxUnavailable": 1}), pods(3, 3, &[]), [3, 3, 2, 1]),
        (json!({"maxUnavailable": 1}), pods(3, 3, &["c"]), [3, 2, 2, 0]),
        (json!({"maxUnavailable": 9}), pods(3, 3, &["c"]), [3, 2, 0, 2]),
        (json!({"maxUnavailable": "34%"}), pods(3, 3, &[]), [3, 3, 1, 2]),
        (json!({"maxUnavailable": "0%"}), pods(3, 3, &[]), [3, 3, 3, 0]),
        // More Pods than wanted, as in a rollout.
        (json!({"maxUnavailable": 1}), pods(4, 3, &[]), [3, 4, 2, 2]),
        // Nothing is there, and nothing is said.
        (json!({"minAvailable": 1}), pods(0, 0, &[]), [0, 0, 1, 0]),
        (json!({"maxUnavailable": 1}), pods(0, 0, &[]), [0, 0, 0, 0]),
        (json!({}), pods(3, 3, &[]), [0, 3, 0, 0]),
    ] {
        let status = status_after(&budget(spec.clone()), &pods, at(0));
        assert_eq!(numbers(&status), want, "{spec}");
        assert_eq!(status["observedGeneration"], 3);
        let condition = &status["conditions"][0];
        let allowed = want[3] > 0;
        assert_eq!(condition["type"], "DisruptionAllowed");
        assert_eq!(
            condition["status"],
            if allowed { "True" } else { "False" },
            "{spec}"
        );
        let reason = if allowed {
            "SufficientPods"
        } else {
            "InsufficientPods"
        };
        assert_eq!(condition["reason"], reason);
    }
}

#[test]
fn each_controller_counts_once_and_single_pods_do_not() {
    let mut all = pods(4, 2, &[]);
    all[2].scale = Scale::Of {
        controller: "other".to_owned(),
        replicas: 3,
    };
    all[3].scale = Scale::Unmanaged;
    let status = status_after(&budget(json!({"maxUnavailable": 1})), &all, at(0));
    assert_eq!(numbers(&status), [5, 4, 4, 0]);
    let status = status_after(&budget(json!({"minAvailable": 1})), &all, at(0));
    assert_eq!(numbers(&status), [4, 4, 1, 3]);
}

#[test]
fn what_cannot_be_counted_lets_nobody_go() {
    let mut all = pods(2, 2, &[]);
    all[1].scale = Scale::Unknown("no scale".to_owned());
    let mut before = budget(json!({"maxUnavailable": 1}));
    before["status"] = json!({"disruptionsAllowed": 1, "currentHealthy": 2});
    let status = status_after(&before, &all, at(0));
    assert_eq!(status["disruptionsAllowed"], 0);
    assert_eq!(status["currentHealthy"], 2);
    assert_eq!(status["conditions"][0]["reason"], "SyncFailed");
    assert_eq!(status["conditions"][0]["message"], "no scale");
    // A number of Pods needs nobody to be asked.
    let status = status_after(&budget(json!({"minAvailable": 1})), &all, at(0));
    assert_eq!(numbers(&status), [2, 2, 1, 1]);
}

#[test]
fn evicted_pods_count_as_gone_for_a_while() {
    let mut before = budget(json!({"minAvailable": 1}));
    before["status"]["disruptedPods"] = json!({
        "a": crate::object::stamp(at(0)),
        "gone": crate::object::stamp(at(0)),
    });
    let actions = decide(&before, &pods(3, 3, &[]), at(10));
    let [Action::UpdateStatus(now), Action::WakeAt(again)] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!(numbers(&now["status"]), [3, 2, 1, 1]);
    assert_eq!(
        now["status"]["disruptedPods"],
        json!({"a": crate::object::stamp(at(0))})
    );
    assert_eq!(*again, at(120));
    // It was not deleted after all.
    let status = status_after(now, &pods(3, 3, &[]), at(121));
    assert_eq!(numbers(&status), [3, 3, 1, 2]);
    assert_eq!(status["disruptedPods"], Value::Null);
}

#[test]
fn a_pod_that_ends_is_not_healthy() {
    let mut all = pods(2, 2, &[]);
    all[0].pod["metadata"]["deletionTimestamp"] = json!(crate::object::stamp(at(0)));
    let status = status_after(&budget(json!({"minAvailable": 1})), &all, at(0));
    assert_eq!(numbers(&status), [2, 1, 1, 0]);
}

#[test]
fn nothing_is_written_twice() {
    let all = pods(3, 3, &[]);
    let mut settled = budget(json!({"minAvailable": 2}));
    settled["status"] = status_after(&settled, &all, at(0));
    assert_eq!(decide(&settled, &all, at(60)), []);
}

#[test]
fn selectors() {
    let pod = json!({"metadata": {"labels": {"app": "web"}}});
    for (selector, want) in [
        (json!({"matchLabels": {"app": "web"}}), true),
        (json!({"matchLabels": {"app": "other"}}), false),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            true,
        ),
        (json!({}), true),
        (Value::Null, false),
    ] {
        assert_eq!(
            covers(&budget(json!({"selector": selector})), &pod),
            want,
            "{selector}"
        );
    }
}
