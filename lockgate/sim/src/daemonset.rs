//! DaemonSets: a Pod on every node that takes it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::Action;
use crate::hash::template_hash;
use crate::object::{
    annotation, int, is_deleting, items, key, name, pod_from_template, set_count, share, status_of, text,
    uid, with_status,
};
use crate::replicaset::{availability, hand_down, is_ready};
use crate::scheduler::{NodeInfo, matches_node, tolerates};

const REVISION_LABEL: &str = "controller-revision-hash";
/// Taints that a daemon does not mind, with their effects.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The spec of a daemon's Pods, with the tolerations that every daemon has.
fn pod_spec(set: &Value) -> Value {
    let mut spec = set["spec"]["template"]["spec"].clone();
    let mut tolerations = items(&spec["tolerations"]).to_vec();
    for (taint, effect) in TOLERATED {
        let toleration = json!({"key": taint, "operator": "Exists", "effect": effect});
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    spec["tolerations"] = json!(tolerations);
    spec
}

/// Whether a node should have a Pod of the set, and whether one that is there may stay.
fn verdict(spec: &Value, node: &NodeInfo) -> (bool, bool) {
    let tolerations = items(&spec["tolerations"]);
    let is_untolerated = |effect: &str| {
        let mut taints = node.taints.iter().filter(|taint| taint["effect"] == effect);
        taints.any(|taint| !tolerates(tolerations, text(&taint["key"]), text(&taint["value"]), effect))
    };
    let stays = matches_node(spec, node) && !is_untolerated("NoExecute");
    (stays && !is_untolerated("NoSchedule"), stays)
}

/// How many of these nodes should have a Pod of the set.
pub(crate) fn wanted_nodes<'a>(set: &Value, nodes: impl IntoIterator<Item = &'a NodeInfo>) -> i64 {
    let spec = pod_spec(set);
    i64::try_from(nodes.into_iter().filter(|node| verdict(&spec, node).0).count()).unwrap_or(0)
}

/// The node that a Pod of a daemon is for: where it is, or where it is to go.
fn node_of(pod: &Value) -> &str {
    let placed = text(&pod["spec"]["nodeName"]);
    if !placed.is_empty() {
        return placed;
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    text(&required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
}

fn with_node(mut spec: Value, node: &str) -> Value {
    let by_name = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let affinity = &mut spec["affinity"]["nodeAffinity"];
    match affinity[required]["nodeSelectorTerms"]
        .as_array_mut()
        .filter(|terms| !terms.is_empty())
    {
        Some(terms) => {
            for term in terms {
                term["matchFields"] = by_name.clone();
            }
        }
        None => affinity[required]["nodeSelectorTerms"] = json!([{"matchFields": by_name}]),
    }
    spec
}

/// What is to be done for a DaemonSet that controls `pods`.
pub fn decide<'a>(
    set: &Value,
    nodes: impl IntoIterator<Item = &'a NodeInfo>,
    pods: &[Value],
    now: Timestamp,
) -> Vec<Action> {
    if is_deleting(set) {
        return Vec::new();
    }
    let spec = pod_spec(set);
    let revision = template_hash(&set["spec"]["template"], 0);
    let (mut wanted, mut tolerated): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for node in nodes {
        match verdict(&spec, node) {
            (true, _) => wanted.push(&node.name),
            (false, true) => tolerated.push(&node.name),
            (false, false) => {}
        }
    }
    let mut by_node: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(node_of(pod)).or_default().push(pod);
    }
    let mut actions = Vec::new();
    let delete = |pod: &Value| {
        key(pod).map(|key| Action::Delete {
            key,
            uid: uid(pod).to_owned(),
        })
    };
    let mut kept: Vec<&Value> = Vec::new();
    let mut misscheduled = 0;
    for (node, found) in &by_node {
        let is_wanted = wanted.contains(node);
        // One Pod for each node; the first by name stays, a finished one is replaced.
        let mut stays = false;
        for pod in found.iter().filter(|pod| !is_deleting(pod)) {
            misscheduled += i64::from(!is_wanted);
            if !stays && !crate::pod::is_finished(pod) && (is_wanted || tolerated.contains(node)) {
                stays = true;
                kept.extend(is_wanted.then_some(*pod));
            } else {
                actions.extend(delete(pod));
            }
        }
    }
    let is_current = |pod: &Value| pod["metadata"]["labels"][REVISION_LABEL] == revision.as_str();
    for node in &wanted {
        if by_node.get(node).is_some_and(|found| !found.is_empty()) {
            continue;
        }
        let mut pod = pod_from_template(set, &set["spec"]["template"]);
        pod["metadata"]["generateName"] = json!(format!("{}-", name(set)));
        pod["metadata"]["labels"][REVISION_LABEL] = json!(revision);
        let generation = annotation(set, "deprecated.daemonset.template.generation").unwrap_or("1");
        pod["metadata"]["labels"]["pod-template-generation"] = json!(generation);
        pod["spec"] = with_node(spec.clone(), node);
        actions.push(Action::Create(pod));
    }
    actions.extend(
        replaced(set, &wanted, &kept, is_current)
            .into_iter()
            .filter_map(delete),
    );
    actions.extend(hand_down(set, &kept));

    let (available, wake) = availability(&kept, int(&set["spec"]["minReadySeconds"]), now);
    let count = |filter: &dyn Fn(&Value) -> bool| {
        i64::try_from(kept.iter().filter(|p| filter(p)).count()).unwrap_or(0)
    };
    let desired = i64::try_from(wanted.len()).unwrap_or(0);
    let mut status = status_of(set);
    status["desiredNumberScheduled"] = json!(desired);
    status["currentNumberScheduled"] = json!(kept.len());
    status["numberMisscheduled"] = json!(misscheduled);
    status["numberReady"] = json!(count(&is_ready));
    set_count(&mut status, "updatedNumberScheduled", count(&is_current));
    set_count(&mut status, "numberAvailable", available);
    set_count(&mut status, "numberUnavailable", (desired - available).max(0));
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    actions.extend(with_status(set, status).map(Action::UpdateStatus));
    actions.extend(wake.map(Action::WakeAt));
    actions
}

/// The Pods of an old template that make room for new ones: broken ones, and as many others as may be missing.
fn replaced<'a>(
    set: &Value,
    wanted: &[&str],
    kept: &[&'a Value],
    is_current: impl Fn(&Value) -> bool,
) -> Vec<&'a Value> {
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Vec::new();
    }
    let total = i64::try_from(wanted.len()).unwrap_or(0);
    let limit = share(
        &set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"],
        total,
        true,
    )
    .max(1);
    let ready = i64::try_from(kept.iter().filter(|pod| is_ready(pod)).count()).unwrap_or(0);
    let mut room = limit - (total - ready);
    let (healthy, broken): (Vec<&Value>, Vec<&Value>) = kept
        .iter()
        .filter(|pod| !is_current(pod))
        .partition(|pod| is_ready(pod));
    let mut gone = broken;
    for pod in healthy {
        if room > 0 {
            gone.push(pod);
            room -= 1;
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, daemon_set, node, pod, ready};

    fn nodes(names: &[&str]) -> Vec<NodeInfo> {
        names
            .iter()
            .map(|name| NodeInfo::read(&node(name, "4")))
            .collect()
    }

    fn on(mut pod: Value, node: &str, set: &Value) -> Value {
        pod["spec"]["nodeName"] = json!(node);
        pod["metadata"]["labels"][REVISION_LABEL] = json!(template_hash(&set["spec"]["template"], 0));
        pod
    }

    fn short(actions: &[Action]) -> Vec<String> {
        let show = |action: &Action| match action {
            Action::Create(pod) => format!("create on {}", node_of(pod)),
            Action::Delete { key, .. } => format!("delete {}", key.name),
            Action::UpdateStatus(set) => format!(
                "status {}/{} ready, {} updated",
                set["status"]["numberReady"],
                set["status"]["desiredNumberScheduled"],
                int(&set["status"]["updatedNumberScheduled"])
            ),
            other => format!("{other:?}"),
        };
        actions.iter().map(show).collect()
    }

    #[test]
    fn every_node_that_takes_it_gets_one() {
        let set = daemon_set("agent");
        let mut nodes = nodes(&["a", "b", "c"]);
        nodes[1].taints = vec![json!({"key": "gpu", "value": "yes", "effect": "NoExecute"})];
        nodes[2].unschedulable = true;
        let pods = [
            ready(on(pod("agent-x", &set), "a", &set), 0),
            ready(on(pod("agent-y", &set), "b", &set), 0),
        ];
        assert_eq!(
            short(&decide(&set, &nodes, &pods, at(0))),
            ["delete agent-y", "create on c", "status 1/2 ready, 1 updated"]
        );
    }

    #[test]
    fn a_pod_on_a_node_that_takes_no_new_ones_stays() {
        let set = daemon_set("agent");
        let mut nodes = nodes(&["a"]);
        let pods = [ready(on(pod("agent-x", &set), "a", &set), 0)];
        nodes[0].taints = vec![json!({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"})];
        let actions = decide(&set, &nodes, &pods, at(0));
        let [Action::UpdateStatus(changed)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(changed["status"]["numberMisscheduled"], 1);
        nodes[0].taints = vec![json!({"key": "out", "effect": "NoExecute"})];
        assert_eq!(short(&decide(&set, &nodes, &pods, at(0)))[0], "delete agent-x");
    }

    #[test]
    fn a_new_template_replaces_one_after_the_other() {
        let old = daemon_set("agent");
        let nodes = nodes(&["a", "b", "c"]);
        let mut set = old.clone();
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        let running = |name: &str, of: &Value| ready(on(pod(&format!("agent-{name}"), of), name, of), 0);
        let broken = |name: &str, of: &Value| on(pod(&format!("agent-{name}"), of), name, of);
        let table = [
            (
                vec![running("a", &old), running("b", &old), running("c", &old)],
                vec!["delete agent-a"],
            ),
            (
                vec![broken("a", &set), running("b", &old), running("c", &old)],
                vec![],
            ),
            (
                vec![running("a", &set), running("b", &old), broken("c", &old)],
                vec!["delete agent-c"],
            ),
            (
                vec![running("a", &set), running("b", &set), running("c", &old)],
                vec!["delete agent-c"],
            ),
        ];
        for (pods, wanted) in table {
            let mut actions = decide(&set, &nodes, &pods, at(0));
            actions.pop();
            assert_eq!(short(&actions), wanted);
        }
    }

    #[test]
    fn a_settled_set_writes_nothing() {
        let mut set = daemon_set("agent");
        let nodes = nodes(&["a"]);
        let pods = [ready(on(pod("agent-x", &set), "a", &set), 0)];
        let actions = decide(&set, &nodes, &pods, at(0));
        let [Action::UpdateStatus(changed)] = &actions[..] else {
            panic!("{actions:?}")
        };
        set["status"] = changed["status"].clone();
        assert_eq!(decide(&set, &nodes, &pods, at(9)), []);
    }
}
