//! ReplicaSets: as many Pods of one template as are wanted.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::Action;
use crate::behaviour;
use crate::object::{
    after, annotation, condition, fields, int, is_deleting, is_true, items, key, name, pod_from_template,
    replicas, set_count, status_of, text, time, uid, with_status,
};

/// How many Pods one decision makes or removes at most; the rest follows when these are seen.
const BURST: usize = 500;
/// What a Pod costs to lose; the cheaper go first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What is to be done for a ReplicaSet that controls `pods`.
pub fn decide(set: &Value, pods: &[Value], now: Timestamp) -> Vec<Action> {
    if is_deleting(set) {
        return Vec::new();
    }
    let active: Vec<&Value> = pods.iter().filter(|pod| is_active(pod)).collect();
    let mut actions = Vec::new();
    let wanted = usize::try_from(replicas(set)).unwrap_or(0);
    if active.len() < wanted {
        let template = pod_from_template(set, &set["spec"]["template"]);
        for _ in 0..(wanted - active.len()).min(BURST) {
            let mut pod = template.clone();
            pod["metadata"]["generateName"] = json!(format!("{}-", name(set)));
            actions.push(Action::Create(pod));
        }
    }
    let surplus = if active.len() > wanted {
        dispensable(&active, active.len() - wanted)
    } else {
        Vec::new()
    };
    for pod in surplus.iter().take(BURST) {
        actions.extend(key(pod).map(|key| Action::Delete {
            key,
            uid: uid(pod).to_owned(),
        }));
    }
    actions.extend(hand_down(set, &active));
    let (status, wake) = status(set, &active, now);
    actions.extend(with_status(set, status).map(Action::UpdateStatus));
    actions.extend(wake.map(Action::WakeAt));
    actions
}

/// Passes the workload's behaviour on to the Pods that have another one.
pub(crate) fn hand_down(workload: &Value, pods: &[&Value]) -> Vec<Action> {
    pods.iter()
        .filter_map(|pod| {
            let mut pod = (*pod).clone();
            behaviour::hand_down(workload, &mut pod).then_some(Action::Update(pod))
        })
        .collect()
}

/// Whether a Pod counts: it is neither finished nor going.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_deleting(pod) && !matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Whether a Pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    is_true(&pod["status"], "Ready")
}

/// Since when a ready Pod counts as available.
pub(crate) fn available_from(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    let since =
        time(&condition(&pod["status"], "Ready").filter(|c| c["status"] == "True")?["lastTransitionTime"])?;
    Some(after(since, min_ready_seconds))
}

/// How many of these Pods are available, and when the next one will be.
pub(crate) fn availability(
    pods: &[&Value],
    min_ready_seconds: i64,
    now: Timestamp,
) -> (i64, Option<Timestamp>) {
    let mut available = 0;
    let mut next: Option<Timestamp> = None;
    for from in pods
        .iter()
        .filter_map(|pod| available_from(pod, min_ready_seconds))
    {
        // A clock that went back makes no ready Pod unavailable.
        if min_ready_seconds == 0 || from <= now {
            available += 1;
        } else {
            next = Some(next.map_or(from, |next| next.min(from)));
        }
    }
    (available, next)
}

/// The Pods that are least missed.
fn dispensable<'a>(active: &[&'a Value], count: usize) -> Vec<&'a Value> {
    let mut pods = active.to_vec();
    pods.sort_by_cached_key(|pod| {
        let restarts = items(&pod["status"]["containerStatuses"])
            .iter()
            .map(|c| int(&c["restartCount"]))
            .max();
        (
            !text(&pod["spec"]["nodeName"]).is_empty(),
            pod["status"]["phase"] == "Running",
            is_ready(pod),
            annotation(pod, DELETION_COST)
                .and_then(|cost| cost.parse::<i64>().ok())
                .unwrap_or(0),
            Reverse(restarts.unwrap_or(0)),
            Reverse(text(&pod["metadata"]["creationTimestamp"]).to_owned()),
            Reverse(name(pod).to_owned()),
        )
    });
    pods.truncate(count);
    pods
}

fn status(set: &Value, active: &[&Value], now: Timestamp) -> (Value, Option<Timestamp>) {
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let is_labeled =
        |pod: &Value| fields(labels).all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value));
    let count = |filter: &dyn Fn(&Value) -> bool| {
        i64::try_from(active.iter().filter(|p| filter(p)).count()).unwrap_or(0)
    };
    let (available, wake) = availability(active, int(&set["spec"]["minReadySeconds"]), now);

    let mut status = status_of(set);
    status["replicas"] = json!(active.len());
    set_count(&mut status, "fullyLabeledReplicas", count(&is_labeled));
    set_count(&mut status, "readyReplicas", count(&is_ready));
    set_count(&mut status, "availableReplicas", available);
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    (status, wake)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, pod, ready, replica_set};

    fn deleted(actions: &[Action]) -> Vec<&str> {
        actions
            .iter()
            .filter_map(|action| match action {
                Action::Delete { key, .. } => Some(&*key.name),
                _ => None,
            })
            .collect()
    }

    fn created(actions: &[Action]) -> usize {
        actions
            .iter()
            .filter(|action| matches!(action, Action::Create(_)))
            .count()
    }

    #[test]
    fn missing_pods_are_made_with_an_owner() {
        let set = replica_set("web-1", 3);
        let actions = decide(&set, &[pod("web-1-a", &set)], at(0));
        assert_eq!(created(&actions), 2);
        let Action::Create(made) = &actions[0] else {
            panic!("{actions:?}")
        };
        assert_eq!(made["metadata"]["generateName"], "web-1-");
        assert_eq!(
            made["metadata"]["ownerReferences"][0]["uid"],
            set["metadata"]["uid"]
        );
        assert_eq!(made["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
        assert_eq!(made["spec"], set["spec"]["template"]["spec"]);
    }

    #[test]
    fn the_least_missed_pods_go() {
        let set = replica_set("web-1", 1);
        let mut cheap = ready(pod("a-cheap", &set), 0);
        cheap["metadata"]["annotations"] = json!({DELETION_COST: "-5"});
        let unplaced = {
            let mut pod = pod("b-unplaced", &set);
            pod["spec"]["nodeName"] = json!(null);
            pod
        };
        let table: [(&[Value], &[&str]); 3] = [
            (&[ready(pod("a", &set), 0), pod("b", &set)], &["b"]),
            (
                &[ready(pod("a", &set), 0), cheap, ready(pod("b", &set), 0)],
                &["a-cheap", "b"],
            ),
            (
                &[pod("a", &set), unplaced, ready(pod("c", &set), 0)],
                &["b-unplaced", "a"],
            ),
        ];
        for (pods, wanted) in table {
            assert_eq!(deleted(&decide(&set, pods, at(0))), wanted);
        }
    }

    #[test]
    fn finished_and_going_pods_are_replaced() {
        let set = replica_set("web-1", 2);
        let mut failed = pod("a", &set);
        failed["status"]["phase"] = json!("Failed");
        let mut going = ready(pod("b", &set), 0);
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(created(&decide(&set, &[failed, going], at(0))), 2);
    }

    #[test]
    fn pods_become_available_after_a_while() {
        let mut set = replica_set("web-1", 2);
        set["spec"]["minReadySeconds"] = json!(10);
        let pods = [ready(pod("a", &set), 0), ready(pod("b", &set), 5)];
        for (second, available, wake) in [(9, 0, Some(10)), (10, 1, Some(15)), (15, 2, None)] {
            let actions = decide(&set, &pods, at(second));
            let Action::UpdateStatus(changed) = &actions[0] else {
                panic!("{actions:?}")
            };
            assert_eq!(
                int(&changed["status"]["availableReplicas"]),
                available,
                "after {second} s"
            );
            assert_eq!(changed["status"]["readyReplicas"], 2);
            let woken = actions.iter().find_map(|a| {
                if let Action::WakeAt(at) = a {
                    Some(*at)
                } else {
                    None
                }
            });
            assert_eq!(woken, wake.map(at), "after {second} s");
        }
    }

    #[test]
    fn a_settled_set_writes_nothing() {
        let mut set = replica_set("web-1", 1);
        let pods = [ready(pod("a", &set), 0)];
        let actions = decide(&set, &pods, at(0));
        let [Action::UpdateStatus(changed)] = &actions[..] else {
            panic!("{actions:?}")
        };
        set["status"] = changed["status"].clone();
        assert_eq!(decide(&set, &pods, at(100)), []);
    }

    #[test]
    fn a_workloads_word_reaches_pods_that_run() {
        let mut set = replica_set("web-1", 1);
        set["metadata"]["annotations"] = json!({crate::BEHAVIOUR: "never-ready"});
        let actions = decide(&set, &[ready(pod("a", &set), 0)], at(0));
        let Action::Update(changed) = &actions[0] else {
            panic!("{actions:?}")
        };
        assert_eq!(annotation(changed, behaviour::INHERITED), Some("never-ready"));
    }
}
