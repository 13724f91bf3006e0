use super::*;
use crate::object::condition;
use crate::testing::{at, node, pod, replica_set};

fn unplaced(requests: Value) -> Value {
    let mut pod = pod("web-1", &replica_set("web", 1));
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    pod["spec"]["containers"][0]["resources"] = json!({"requests": requests});
    pod
}

fn nodes(cpu: &str, used: &[(i64, i64)]) -> Vec<NodeInfo> {
    let make = |(i, (cpu_used, pods)): (usize, &(i64, i64))| {
        let mut info = NodeInfo::read(&node(&format!("node-{}", i + 1), cpu));
        info.used = Amounts::from([("cpu".into(), *cpu_used), ("pods".into(), *pods)]);
        info
    };
    used.iter().enumerate().map(make).collect()
}

/// The node that is chosen, or why none is.
fn check(pod: &Value, nodes: &[NodeInfo]) -> String {
    match &decide(pod, nodes, at(0))[..] {
        [Action::Bind { node, .. }] => node.clone(),
        [Action::UpdateStatus(changed)] => {
            let found = condition(&changed["status"], "PodScheduled").expect("a reason");
            assert_eq!(
                (&found["status"], &found["reason"]),
                (&json!("False"), &json!("Unschedulable"))
            );
            assert_eq!(
                decide(changed, nodes, at(99)),
                [],
                "the same reason is written once"
            );
            text(&found["message"]).to_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_emptiest_node_that_fits_is_taken() {
    let pod = unplaced(json!({"cpu": "1500m", "memory": "1Gi"}));
    let table: [(&[(i64, i64)], &str); 5] = [
        (&[(0, 1), (0, 0)], "node-2"),
        (&[(0, 1), (0, 1)], "node-1"),
        (&[(1000, 2), (0, 2)], "node-2"),
        (
            &[(1000, 1), (1000, 1)],
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are \
             available: 2 No preemption victims found for incoming pod.",
        ),
        (
            &[(1000, 3), (0, 3)],
            "0/2 nodes are available: 1 Insufficient cpu, 2 Too many pods. no new claims to deallocate, preemption: \
             0/2 nodes are available: 2 No preemption victims found for incoming pod.",
        ),
    ];
    for (used, wanted) in table {
        assert_eq!(check(&pod, &nodes("2", used)), wanted);
    }
}

#[test]
fn what_never_fits_is_not_helped_by_preemption() {
    let pod = unplaced(json!({"cpu": "3", "example.com/gpu": "1"}));
    assert_eq!(
        check(&pod, &nodes("2", &[(0, 0)])),
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/gpu. no new claims to deallocate, \
         preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(check(&pod, &[]), "no nodes available to schedule pods");
}

#[test]
fn taints_selectors_and_affinity_count() {
    let tainted = |nodes: &mut Vec<NodeInfo>| {
        nodes[0].taints = vec![json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"})];
    };
    let mut nodes = nodes("2", &[(0, 0), (0, 2)]);
    let mut pod = unplaced(json!({}));
    assert_eq!(check(&pod, &nodes), "node-1");
    tainted(&mut nodes);
    assert_eq!(check(&pod, &nodes), "node-2");
    nodes[1].unschedulable = true;
    let message = check(&pod, &nodes);
    assert!(
        message.starts_with("0/2 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 1 node(s) were unschedulable. "),
        "{message}"
    );
    nodes[1].unschedulable = false;
    pod["spec"]["tolerations"] =
        json!([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]);
    assert_eq!(check(&pod, &nodes), "node-1");
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-2"});
    assert_eq!(check(&pod, &nodes), "node-2");
    pod["spec"]["nodeSelector"] = json!({"zone": "moon"});
    assert!(check(&pod, &nodes).contains("2 node(s) didn't match Pod's node affinity/selector"));
}

#[test]
fn affinity_terms_are_alternatives_of_conditions() {
    let mut info = NodeInfo::read(&node("node-1", "2"));
    info.labels.insert("zone".into(), "b".into());
    info.labels.insert("rank".into(), "7".into());
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let table = [
        (
            vec![json!({"matchExpressions": [expression("zone", "In", &["a", "b"])]})],
            true,
        ),
        (
            vec![json!({"matchExpressions": [expression("zone", "NotIn", &["a", "b"])]})],
            false,
        ),
        (
            vec![
                json!({"matchExpressions": [expression("zone", "Exists", &[]), expression("zone", "In", &["a"])]}),
            ],
            false,
        ),
        (
            vec![json!({"matchExpressions": [expression("rank", "Gt", &["6"])]})],
            true,
        ),
        (
            vec![json!({"matchExpressions": [expression("rank", "Lt", &["6"])]})],
            false,
        ),
        (
            vec![json!({"matchExpressions": [expression("moon", "DoesNotExist", &[])]})],
            true,
        ),
        (
            vec![json!({"matchFields": [expression("metadata.name", "In", &["node-1"])]})],
            true,
        ),
        (
            vec![
                json!({}),
                json!({"matchFields": [expression("metadata.name", "In", &["node-2"])]}),
            ],
            false,
        ),
        (
            vec![
                json!({"matchExpressions": [expression("zone", "In", &["a"])]}),
                json!({"matchExpressions": [expression("zone", "In", &["b"])]}),
            ],
            true,
        ),
    ];
    for (terms, wanted) in table {
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        let spec = json!({"affinity": {"nodeAffinity": required}});
        assert_eq!(matches_node(&spec, &info), wanted, "{spec}");
    }
}

#[test]
fn requests_add_up() {
    let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    let sidecar = json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}});
    let table = [
        (json!({"containers": [container("1"), container("500m")]}), 1500),
        (
            json!({"containers": [container("1")], "initContainers": [container("3")]}),
            3000,
        ),
        (
            json!({"containers": [container("1")], "initContainers": [sidecar, container("3")]}),
            3100,
        ),
        (
            json!({"containers": [container("1")], "initContainers": [sidecar, container("200m")]}),
            1100,
        ),
        (
            json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}),
            1250,
        ),
        (
            json!({"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}}),
            2000,
        ),
    ];
    for (spec, wanted) in table {
        assert_eq!(requests(&spec).get("cpu"), Some(&wanted), "{spec}");
    }
}

#[test]
fn some_pods_are_not_for_the_scheduler() {
    let nodes = nodes("2", &[(0, 0)]);
    let placed = pod("web-1", &replica_set("web", 1));
    let mut gated = unplaced(json!({}));
    gated["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    let mut going = unplaced(json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for pod in [placed, gated, going] {
        assert_eq!(decide(&pod, &nodes, at(0)), []);
    }
}
