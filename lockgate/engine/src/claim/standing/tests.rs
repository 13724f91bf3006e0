use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn policy(namespace: &str, spec: serde_json::Value) -> PropagationPolicy {
    let metadata = json!({"name": "p", "namespace": namespace, "uid": "u"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

#[test]
fn templates_are_counted_and_the_first_that_wait_are_named() {
    let mut counts = Counts::default();
    for number in 0..30 {
        let standing = if number % 10 == 0 {
            Standing::UpToDate
        } else {
            Standing::Held(HoldReason::Lazy)
        };
        counts.add(&format!("t{number:02}"), standing, number < 2);
    }
    let mut status = PropagationStatus::default();
    counts.tell(4, NOW, &mut status);
    assert_eq!(status.observed_generation, Some(4));
    let told = [status.claimed, status.up_to_date, status.pending, status.failing];
    assert_eq!(told, [30, 3, 27, 2].map(Some));
    assert_eq!(status.pending_templates.len(), 20);
    assert_eq!(status.pending_templates[0], "t01");
    let activated = Condition::find(&status.conditions, "Activated").unwrap();
    assert_eq!(
        (activated.status.as_str(), activated.reason.as_str()),
        ("False", "Lazy")
    );
    assert!(
        activated.message.starts_with("27 of 30 templates wait"),
        "{}",
        activated.message
    );

    // A second look at the same says the same.
    let before = status.clone();
    let mut counts = Counts::default();
    counts.add(&"t", Standing::UpToDate, false);
    counts.tell(4, NOW, &mut status);
    assert_ne!(before, status);
    assert!(
        Condition::find(&status.conditions, "Activated")
            .unwrap()
            .is_true()
    );
    assert!(status.pending_templates.is_empty());
}

#[test]
fn what_is_only_on_its_way_is_not_said_to_wait() {
    let mut counts = Counts::default();
    counts.add(&"t", Standing::NotYet, false);
    let mut status = PropagationStatus::default();
    counts.tell(1, NOW, &mut status);
    let activated = Condition::find(&status.conditions, "Activated").unwrap();
    assert_eq!(activated.reason, "Activating");
    assert_eq!(status.pending, Some(1));
}

#[test]
fn a_preemption_that_takes_nothing_says_why() {
    let on = Gates {
        preemption: true,
        ..Gates::default()
    };
    let fixed = Gates {
        static_policy: true,
        ..on
    };
    let widget = json!({"apiVersion": "example.org/v1", "kind": "Widget", "name": "w"});
    let mut placed = widget.clone();
    placed["namespace"] = "shop".into();
    // Namespace, preemption, selector, gates, whether the kind is namespaced, the reason.
    let table = [
        ("shop", "Never", &widget, Gates::default(), Some(true), None),
        (
            "shop",
            "Always",
            &widget,
            Gates::default(),
            Some(true),
            Some("GateOff"),
        ),
        ("shop", "Always", &widget, on, Some(true), None),
        ("shop", "Always", &widget, fixed, Some(true), Some("StaticPolicy")),
        ("", "Always", &widget, on, Some(true), Some("NoNamespace")),
        ("", "Always", &widget, on, Some(false), None),
        ("", "Always", &widget, on, None, None),
        ("", "Always", &placed, on, Some(true), None),
    ];
    let mut status = PropagationStatus::default();
    for (namespace, preemption_of, selector, gates, namespaced, expected) in table {
        let policy = policy(
            namespace,
            json!({"resourceSelectors": [selector], "preemption": preemption_of}),
        );
        preemption(&policy, gates, |_| namespaced, NOW, &mut status);
        let told = Condition::find(&status.conditions, "Preemption");
        assert_eq!(
            told.map(|c| c.reason.as_str()),
            expected,
            "{namespace} {preemption_of} {gates:?}"
        );
    }
}

#[test]
fn a_part_whose_gate_is_off_is_named() {
    let off = Gates::default();
    let on = Gates {
        failover: true,
        stateful_failover: true,
        workload_affinity: true,
        ..off
    };
    let no_dependencies = Gates {
        propagate_deps: false,
        ..off
    };
    let affine = json!({"placement": {"workloadAffinity": {"affinity": {"groupByLabelKey": "team"}}}});
    let keeps = json!({"failover": {"application": {"statePreservation": {"rules": []}}}});
    let moves = json!({"failover": {"cluster": {"purgeMode": "Directly"}}});
    let needs = json!({"propagateDeps": true});
    let only_failover = Gates {
        failover: true,
        ..off
    };
    let table = [
        (
            &affine,
            off,
            Some("placement.workloadAffinity (WorkloadAffinity)"),
        ),
        (&affine, on, None),
        (
            &keeps,
            off,
            Some("failover (Failover), failover's statePreservation (StatefulFailoverInjection)"),
        ),
        (
            &keeps,
            only_failover,
            Some("failover's statePreservation (StatefulFailoverInjection)"),
        ),
        (&keeps, on, None),
        (&moves, off, Some("failover (Failover)")),
        (&moves, only_failover, None),
        (&needs, off, None),
        (&needs, no_dependencies, Some("propagateDeps (PropagateDeps)")),
        (&json!({}), off, None),
    ];
    let mut status = PropagationStatus::default();
    for (spec, gates, expected) in table {
        effective(&policy("shop", spec.clone()), gates, NOW, &mut status);
        let told = Condition::find(&status.conditions, "Effective");
        let expected = expected.map(|parts| format!("without effect while the feature gate is off: {parts}"));
        assert_eq!(told.map(|c| c.message.clone()), expected, "{spec} {gates:?}");
    }
}

#[test]
fn an_orphan_says_what_it_waits_for() {
    let other = policy("shop", json!({}));
    let freeze = |changed| Act::Freeze { changed };
    let reason = |told: Option<Condition>| told.map(|condition| (condition.reason, condition.message));
    assert_eq!(orphaned(&Act::Wait, None, Gates::default(), NOW), None);
    let (why, message) = reason(orphaned(&freeze(false), None, Gates::default(), NOW)).unwrap();
    assert_eq!(why, "NoPolicy");
    assert!(!message.contains("changed since"), "{message}");
    let (_, message) = reason(orphaned(&freeze(true), None, Gates::default(), NOW)).unwrap();
    assert!(message.contains("changed since"), "{message}");
    let fixed = Gates {
        static_policy: true,
        ..Gates::default()
    };
    let (why, message) = reason(orphaned(&freeze(false), Some(&other), fixed, NOW)).unwrap();
    assert_eq!(why, "StaticPolicy");
    let (why, _) = reason(orphaned(&freeze(false), Some(&other), Gates::default(), NOW)).unwrap();
    assert_eq!(why, "GateChanged");
    assert!(message.contains("policy shop/p takes it"), "{message}");
}

#[test]
fn an_edit_that_only_waits_is_one_of_a_lazy_policy_that_keeps_its_relationships() {
    use crate::claim::only_waits;
    let lazy = json!({
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        "activationPreference": "Lazy",
        "priority": 3,
    });
    let edited = |field: &str, value: serde_json::Value| {
        let mut spec = lazy.clone();
        spec[field] = value;
        policy("shop", spec)
    };
    let old = policy("shop", lazy.clone());
    for (field, value, expected) in [
        (
            "placement",
            json!({"clusterAffinity": {"clusterNames": ["a"]}}),
            true,
        ),
        ("conflictResolution", json!("Overwrite"), true),
        ("propagateDeps", json!(true), true),
        ("priority", json!(4), false),
        ("preemption", json!("Always"), false),
        ("activationPreference", json!(""), false),
        ("suspension", json!({"dispatching": true}), false),
        ("resourceSelectors", json!([]), false),
    ] {
        let new = edited(field, value);
        assert_eq!(only_waits(&old, &new), expected, "{field}");
        assert_eq!(only_waits(&new, &old), expected, "{field}, back");
    }
    let mut again = old.clone();
    again.metadata.uid = "v".into();
    assert!(!only_waits(&old, &again), "made again");
}

#[test]
fn kinds_of_which_nothing_goes_are_named_once_each() {
    let policy = policy(
        "shop",
        json!({"resourceSelectors": [
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            {"apiVersion": "apps/v1", "kind": "Deploymint", "name": "a"},
            {"apiVersion": "apps/v1", "kind": "Deploymint", "name": "b"},
            {"apiVersion": "example.org/v1", "kind": "Widget"},
            {"apiVersion": "v1", "kind": "Namespace", "name": "a"},
        ]}),
    );
    let mut status = PropagationStatus::default();
    let told = |selector: &ResourceSelector| match selector.kind.as_str() {
        "Deploymint" => Some(Unserved::NotServed),
        "Widget" => Some(Unserved::NotShown("conversion failed".into())),
        "Namespace" => Some(Unserved::NotNamespaced),
        _ => None,
    };
    kinds_served(&policy, told, NOW, &mut status);
    let condition = Condition::find(&status.conditions, "KindsServed").unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "NotServed")
    );
    assert_eq!(
        condition.message,
        "nothing is propagated of apps/v1 Deploymint (the hub does not serve it), example.org/v1 Widget (the hub does not \
         show its objects: conversion failed), v1 Namespace (its objects are in no namespace: use a \
         ClusterPropagationPolicy)"
    );
    kinds_served(&policy, |_| None, NOW, &mut status);
    assert_eq!(Condition::find(&status.conditions, "KindsServed"), None);
}
