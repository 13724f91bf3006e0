//! What a replica is, what cannot be followed, and what sets say.

use lockgate_api::ocm::PlacementBinding;

use super::*;
use crate::governance::replica::{self, root_of};
use crate::governance::revision::Mark;

#[test]
fn metadata_is_copied_as_the_root_says() {
    let mut root = root(json!({}), "enforce");
    for (key, value) in [
        ("team", "blue"),
        ("policy.open-cluster-management.io/standards", "NIST"),
        ("policy.open-cluster-management.io/trigger-update", "1"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ("lockgate.karmada.io/rollout", "{}"),
    ] {
        root.metadata.annotations.insert(key.to_owned(), value.to_owned());
    }
    root.metadata.labels.insert("app".to_owned(), "x".to_owned());
    let mark = Mark {
        revision: 1,
        digest: "d".to_owned(),
        at: Timestamp::from_second(5).unwrap(),
    };
    let keys = |root: &Policy| -> (Vec<String>, Vec<String>) {
        let metadata = replica::metadata(root, "member1", &mark, None);
        assert_eq!(
            (metadata.name.as_str(), metadata.namespace.as_str()),
            ("policies.pods", "member1")
        );
        (
            metadata.labels.into_keys().collect(),
            metadata.annotations.into_keys().collect(),
        )
    };
    let ours = [
        "policy.open-cluster-management.io/cluster-name",
        "policy.open-cluster-management.io/cluster-namespace",
        "policy.open-cluster-management.io/root-policy",
    ];
    let (labels, annotations) = keys(&root);
    assert_eq!(labels, ["app", ours[0], ours[1], ours[2]]);
    assert_eq!(
        annotations,
        [
            "argocd.argoproj.io/compare-options",
            "policy.open-cluster-management.io/rollout-revision",
            "policy.open-cluster-management.io/standards",
            "team",
        ]
    );
    root.spec.copy_policy_metadata = Some(false);
    let (labels, annotations) = keys(&root);
    assert_eq!(labels, ours);
    assert!(!annotations.contains(&"team".to_owned()), "{annotations:?}");
    assert_eq!(root_of("policies.pods.v1"), Some(("policies", "pods.v1")));
}

#[test]
fn dependencies_are_called_as_members_know_them() {
    let mut root = root(json!({}), "enforce");
    let on = |kind: &str, name: &str, namespace: &str| {
        json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": kind, "name": name,
            "namespace": namespace, "compliance": "Compliant"})
    };
    root.spec.dependencies = serde_json::from_value(json!([
        on("Policy", "one", ""),
        on("Policy", "two", "other"),
        on("Policy", "third.three", ""),
        on("PolicySet", "all", ""),
        on("PolicySet", "all", "other"),
        on("PolicySet", "missing", ""),
        on("ConfigurationPolicy", "one", ""),
    ]))
    .unwrap();
    let set = |policies: &[&str]| -> PolicySet {
        serde_json::from_value(json!({"metadata": {"name": "all"}, "spec": {"policies": policies}})).unwrap()
    };
    let (own, other) = (set(&["x", "y.v1"]), set(&["z"]));
    let find = |namespace: &str, name: &str| match (namespace, name) {
        ("policies", "all") => Some(&own),
        ("other", "all") => Some(&other),
        _ => None,
    };
    let spec = replica::spec(&root, "inform", &find);
    let needed: Vec<(&str, &str)> = replica::sets_needed(&root).into_iter().collect();
    assert_eq!(
        needed,
        [("other", "all"), ("policies", "all"), ("policies", "missing")]
    );
    let names: Vec<String> = spec
        .dependencies
        .iter()
        .map(|dependency| format!("{} {}{}", dependency.kind, dependency.namespace, dependency.name))
        .collect();
    assert_eq!(
        names,
        [
            "Policy policies.one",
            "Policy other.two",
            "Policy third.three",
            "Policy policies.x",
            "Policy policies.y.v1",
            "Policy other.z",
            "PolicySet missing",
            "ConfigurationPolicy one",
        ]
    );
}

#[test]
fn what_cannot_be_followed_says_what_and_where() {
    let refused = |change: &dyn Fn(&mut Policy)| {
        let mut root = root(json!({}), "enforce");
        change(&mut root);
        Manner::read(&root).unwrap_err()
    };
    let strategy = |value: Value| {
        move |root: &mut Policy| root.spec.rollout_strategy = serde_json::from_value(value.clone()).unwrap()
    };
    for (value, part) in [
        (json!({"type": "Sideways"}), "spec.rolloutStrategy.type"),
        (
            json!({"type": "Progressive", "progressive": {"progressDeadline": "soon"}}),
            "spec.rolloutStrategy.progressDeadline",
        ),
        (
            json!({"type": "Progressive", "progressive": {"minSuccessTime": "5"}}),
            "spec.rolloutStrategy.minSuccessTime",
        ),
        (
            json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": "some"}}),
            "spec.rolloutStrategy.maxFailures",
        ),
    ] {
        let (reason, message) = refused(&strategy(value));
        assert_eq!(reason, "StrategyInvalid");
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(
        refused(&|root| root.metadata.name = "n".repeat(60)).0,
        "NameTooLong"
    );
    let annotated = |root: &mut Policy| {
        let key = lockgate_api::ocm::policy::WHILE_WAITING.to_owned();
        root.metadata.annotations.insert(key, "nothing".to_owned());
    };
    assert_eq!(refused(&annotated).0, "WhileWaitingUnknown");
}

#[test]
fn a_set_is_as_bad_as_its_worst_policy() {
    let set: PolicySet = serde_json::from_value(json!({
        "metadata": {"name": "all"}, "spec": {"policies": ["a", "b", "off", "gone"]}}))
    .unwrap();
    let policy = |compliant: &str, disabled: bool| -> Policy {
        serde_json::from_value(json!({"spec": {"disabled": disabled}, "status": {"compliant": compliant}}))
            .unwrap()
    };
    let status = |a: &str, b: &str| {
        let known = [
            ("a", policy(a, false)),
            ("b", policy(b, false)),
            ("off", policy("", true)),
        ];
        let find = |name: &str| {
            known
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, policy)| policy)
        };
        let status = tell::set_status(&set, &[] as &[&PlacementBinding], find);
        (status.compliant, status.status_message)
    };
    let rest = "Disabled policies: off; Deleted policies: gone";
    assert_eq!(
        status("Compliant", "NonCompliant"),
        ("NonCompliant".to_owned(), rest.to_owned())
    );
    assert_eq!(status("Compliant", "Compliant").0, "Compliant");
    let (compliant, message) = status("NonCompliant", "");
    assert_eq!(compliant, "");
    assert!(message.contains("awaiting policy status: b"), "{message}");
}

#[test]
fn a_set_says_whom_it_leaves_out() {
    let exclusions = json!([{"policyName": "a", "reason": "is old", "clusterNames": ["c"]}]);
    let set: PolicySet = serde_json::from_value(
        json!({"metadata": {"name": "all"}, "spec": {"policies": ["a"], "exclusions": exclusions}}),
    )
    .unwrap();
    let status = tell::set_status(&set, &[] as &[&PlacementBinding], |_| None);
    assert_eq!(Value::from(status.exclusions), exclusions);
}
