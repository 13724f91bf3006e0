//! Nodes: machines that exist because they say so.
//!
//! A node is written once when a member starts, and again only when its annotation tells it to be lost or found.
//! There are no heartbeats: a settled member writes nothing.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::NodeOptions;
use crate::action::Action;
use crate::behaviour::BEHAVIOUR;
use crate::object::{
    Says, annotation, condition, is_deleting, is_true, items, name, set_condition, stamp, status_of,
    with_status,
};

/// The version that kubelets report.
pub const VERSION: &str = "v1.35.0";
/// The word with which a node is lost.
const NOT_READY: &str = "not-ready";
const TAINT: &str = "node.kubernetes.io/unreachable";

/// The node with this number, which counts from one.
pub fn make(options: &NodeOptions, number: usize, now: Timestamp) -> Value {
    let name = format!("{}{number}", options.prefix);
    let mut labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    });
    for (key, value) in &options.labels {
        labels[key] = json!(value);
    }
    let amounts = json!({"cpu": options.cpu, "memory": options.memory, "pods": options.pods.to_string()});
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": format!("sim://{name}")},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": address(number).to_string()},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "sim://1",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": VERSION,
                "machineID": name,
                "operatingSystem": "linux",
                "osImage": "simulated",
                "systemUUID": "",
            },
        },
    });
    node["status"] = conditions(&node, now);
    node
}

fn address(number: usize) -> Ipv4Addr {
    let number = u32::try_from(number).unwrap_or(u32::MAX) % 0xffff;
    Ipv4Addr::from(u32::from(Ipv4Addr::new(172, 17, 0, 0)) + number)
}

/// The status with the conditions that its annotation asks for.
fn conditions(node: &Value, now: Timestamp) -> Value {
    let lost = annotation(node, BEHAVIOUR) == Some(NOT_READY);
    let mut status = status_of(node);
    let quiet = [
        (
            "MemoryPressure",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
    ];
    let heard = || json!({"lastHeartbeatTime": stamp(now)});
    for (kind, reason, message) in quiet {
        if condition(&status, kind).is_none() {
            set_condition(
                &mut status,
                kind,
                &Says::new(false, reason, message),
                heard(),
                now,
            );
        }
    }
    if condition(&status, "Ready").is_none() || is_true(&status, "Ready") == lost {
        let says = if lost {
            Says::unknown("NodeStatusUnknown", "Kubelet stopped posting node status.")
        } else {
            Says::new(true, "KubeletReady", "kubelet is posting ready status")
        };
        set_condition(&mut status, "Ready", &says, heard(), now);
    }
    status
}

/// What is to be done for a node.
pub fn decide(node: &Value, now: Timestamp) -> Vec<Action> {
    // A node that is no simulated one speaks for itself.
    if is_deleting(node) || node["spec"]["providerID"] != format!("sim://{}", name(node)).as_str() {
        return Vec::new();
    }
    let lost = annotation(node, BEHAVIOUR) == Some(NOT_READY);
    let taints = items(&node["spec"]["taints"]);
    let tainted = taints.iter().any(|taint| taint["key"] == TAINT);
    if lost != tainted {
        let mut kept: Vec<Value> = taints
            .iter()
            .filter(|taint| taint["key"] != TAINT)
            .cloned()
            .collect();
        if lost {
            kept.push(json!({"key": TAINT, "effect": "NoSchedule"}));
        }
        let mut changed = node.clone();
        changed["spec"]["taints"] = json!(kept);
        // The status follows when this is seen.
        return vec![Action::Update(changed)];
    }
    with_status(node, conditions(node, now))
        .map(Action::UpdateStatus)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_node_is_complete_when_it_is_made() {
        let node = make(&NodeOptions::default(), 1, at(0));
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "node-1");
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.35.0");
        assert!(is_true(&node["status"], "Ready"));
        assert_eq!(decide(&node, at(500)), []);
    }

    #[test]
    fn a_node_is_lost_and_found() {
        let mut node = make(&NodeOptions::default(), 1, at(0));
        for (word, ready) in [(Some(NOT_READY), false), (None, true)] {
            crate::object::set_annotation(&mut node, BEHAVIOUR, word);
            let actions = decide(&node, at(9));
            let [Action::Update(tainted)] = &actions[..] else {
                panic!("{actions:?}")
            };
            assert_eq!(items(&tainted["spec"]["taints"]).is_empty(), ready);
            let actions = decide(tainted, at(9));
            let [Action::UpdateStatus(changed)] = &actions[..] else {
                panic!("{actions:?}")
            };
            assert_eq!(is_true(&changed["status"], "Ready"), ready);
            assert_eq!(decide(changed, at(99)), []);
            node = changed.clone();
        }
    }

    #[test]
    fn a_foreign_node_is_left_alone() {
        assert_eq!(decide(&crate::testing::node("foreign", "4"), at(0)), []);
    }
}
