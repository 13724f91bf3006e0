use serde_json::json;

use super::*;

fn suspension(text: Value) -> Option<Suspension> {
    serde_json::from_value(text).unwrap()
}

#[test]
fn the_suspension_of_an_activated_policy() {
    // The binding's before, the policy's, the binding's after.
    let table = [
        (json!(null), json!(null), json!(null)),
        (json!({ "dispatching": true }), json!(null), json!(null)),
        (
            json!({ "dispatching": true, "scheduling": true }),
            json!(null),
            json!({ "scheduling": true }),
        ),
        (
            json!({ "scheduling": true }),
            json!({ "dispatching": true }),
            json!({ "dispatching": true, "scheduling": true }),
        ),
        (json!({ "dispatching": true }), json!({}), json!({})),
        (
            json!(null),
            json!({ "dispatching": false }),
            json!({ "dispatching": false }),
        ),
        // The other spelling is accepted on policies, and bindings carry the released one.
        (
            json!(null),
            json!({ "suspendDispatching": true }),
            json!({ "dispatching": true }),
        ),
        (
            json!({ "dispatchingOnClusters": { "clusterNames": ["m1"] } }),
            json!({ "suspendDispatchingOnClusters": { "clusterNames": ["m2"] } }),
            json!({ "dispatchingOnClusters": { "clusterNames": ["m2"] } }),
        ),
        // Scheduling is the binding's own.
        (json!(null), json!({ "scheduling": true }), json!({})),
    ];
    for (before, policy, after) in table {
        let got = suspension_of(
            suspension(policy.clone()).as_ref(),
            suspension(before.clone()).as_ref(),
        );
        assert_eq!(got, suspension(after), "{before} {policy}");
    }
}

#[test]
fn the_suspension_while_a_policy_waits() {
    let on = |names: &[&str]| json!({ "dispatchingOnClusters": { "clusterNames": names } });
    let table = [
        (json!(null), json!(null), json!(null)),
        (json!(null), json!({}), json!(null)),
        (json!(null), json!({ "dispatching": false }), json!(null)),
        (
            json!(null),
            json!({ "dispatching": true }),
            json!({ "dispatching": true }),
        ),
        (
            json!(null),
            json!({ "suspendDispatching": true }),
            json!({ "dispatching": true }),
        ),
        (
            json!({ "dispatching": true }),
            json!(null),
            json!({ "dispatching": true }),
        ),
        (
            json!({ "dispatching": true }),
            json!({ "dispatching": false }),
            json!({ "dispatching": true }),
        ),
        (
            json!({ "dispatching": true }),
            on(&["m1"]),
            json!({ "dispatching": true }),
        ),
        (json!(null), on(&[]), json!(null)),
        (json!(null), on(&["m1", "m1"]), on(&["m1"])),
        (on(&["m1"]), on(&["m2"]), on(&["m1", "m2"])),
        (on(&["m1", "m2"]), on(&["m2"]), on(&["m1", "m2"])),
        (
            on(&["m1"]),
            json!({ "dispatching": true }),
            json!({ "dispatching": true, "dispatchingOnClusters": { "clusterNames": ["m1"] } }),
        ),
        (
            json!({ "scheduling": true }),
            json!({ "dispatching": true }),
            json!({ "dispatching": true, "scheduling": true }),
        ),
    ];
    for (before, policy, after) in table {
        let policy_suspension = suspension(policy.clone());
        let held = held_suspension(policy_suspension.as_ref(), suspension(before.clone()).as_ref());
        assert_eq!(held, suspension(after), "{before} {policy}");
        assert_eq!(
            held_suspension(policy_suspension.as_ref(), held.as_ref()),
            held,
            "a second time"
        );
    }
}

fn template() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "namespace": "shop", "name": "web", "uid": "uid-1", "resourceVersion": "42" },
        "spec": { "replicas": 3, "template": { "spec": { "containers": [
            { "name": "web", "resources": { "requests": { "cpu": "100m" } } },
        ] } } },
    })
}

fn policy(spec: Value) -> PropagationPolicy {
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).unwrap()
}

/// A binding in which every field says something.
fn full() -> BindingSpec {
    serde_json::from_value(json!({
        "resource": {
            "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "uid": "uid-0", "resourceVersion": "1",
        },
        "propagateDeps": true,
        "replicaRequirements": { "resourceRequest": { "cpu": "1" } },
        "replicas": 9,
        "clusters": [{ "name": "m1", "replicas": 9 }],
        "placement": { "clusterAffinity": { "clusterNames": ["m1"] } },
        "schedulerName": "other",
        "failover": { "cluster": {} },
        "conflictResolution": "Overwrite",
        "preserveResourcesOnDeletion": true,
        "gracefulEvictionTasks": [{ "fromCluster": "m0", "reason": "x" }],
        "requiredBy": [{ "name": "main", "clusters": [{ "name": "m5" }] }],
        "rescheduleTriggeredAt": "2026-01-01T00:00:00Z",
        "suspension": { "dispatching": true, "scheduling": true },
    }))
    .unwrap()
}

#[test]
fn an_activation_overwrites_what_is_the_policys_and_keeps_the_rest() {
    let policy = policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["m2"] } } }));
    let spec = activated_spec(&policy, &template(), Some(&full()));
    let kept = full();
    assert_eq!(spec.clusters, kept.clusters);
    assert_eq!(spec.graceful_eviction_tasks, kept.graceful_eviction_tasks);
    assert_eq!(spec.required_by, kept.required_by);
    assert_eq!(spec.reschedule_triggered_at, kept.reschedule_triggered_at);
    assert_eq!(spec.suspension, suspension(json!({ "scheduling": true })));

    assert_eq!(spec.resource.uid, "uid-1");
    assert_eq!(spec.resource.resource_version, "42");
    assert_eq!(spec.replicas, 3);
    assert_ne!(spec.replica_requirements, kept.replica_requirements);
    assert_eq!(spec.placement.as_ref(), Some(&policy.spec.placement));
    assert!(!spec.propagate_deps);
    assert_eq!(spec.scheduler_name, "");
    assert_eq!(spec.failover, None);
    assert_eq!(spec.conflict_resolution, "Abort");
    assert_eq!(spec.preserve_resources_on_deletion, None);
}

#[test]
fn a_first_activation_says_what_template_and_policy_say() {
    let policy = policy(json!({
        "placement": {}, "propagateDeps": true, "schedulerName": "default-scheduler",
        "failover": { "application": {} }, "conflictResolution": "Overwrite",
        "preserveResourcesOnDeletion": true, "suspension": { "dispatching": true },
    }));
    let spec = serde_json::to_value(activated_spec(&policy, &template(), None)).unwrap();
    let expected = json!({
        "resource": {
            "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "uid": "uid-1", "resourceVersion": "42",
        },
        "propagateDeps": true, "replicas": 3,
        "replicaRequirements": spec["replicaRequirements"],
        "placement": {}, "schedulerName": "default-scheduler", "failover": { "application": {} },
        "conflictResolution": "Overwrite", "preserveResourcesOnDeletion": true,
        "suspension": { "dispatching": true },
    });
    assert_eq!(spec, expected);
    assert_eq!(spec["replicaRequirements"]["resourceRequest"]["cpu"], "100m");

    let imports = json!({ "placement": {}, "resourceSelectors": [
        { "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport" },
    ] });
    let import = self::policy(imports);
    assert!(activated_spec(&import, &template(), None).propagate_deps);

    let config_map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
    let spec = activated_spec(&policy, &config_map, Some(&full()));
    assert_eq!((spec.replicas, spec.replica_requirements), (0, None));
}

#[test]
fn what_differs_from_what_was_activated() {
    let base = json!({ "placement": { "clusterAffinity": { "clusterNames": ["m1"] } } });
    let binding = |spec: &Value| Binding {
        spec: activated_spec(&policy(spec.clone()), &template(), None),
        ..Binding::default()
    };
    let table = [
        (json!({}), false, false),
        (json!({ "conflictResolution": "Abort" }), false, false),
        (
            json!({ "priority": 5, "preemption": "Always", "activationPreference": "Lazy" }),
            false,
            false,
        ),
        (
            json!({ "dependentOverrides": ["x"], "resourceSelectors": [] }),
            false,
            false,
        ),
        (json!({ "placement": {} }), true, true),
        (json!({ "conflictResolution": "Overwrite" }), true, true),
        (json!({ "propagateDeps": true }), true, true),
        (json!({ "schedulerName": "other" }), true, true),
        (json!({ "failover": {} }), true, true),
        (json!({ "preserveResourcesOnDeletion": false }), true, true),
        // What is suspended differs, and does not wait.
        (json!({ "suspension": { "dispatching": true } }), true, false),
        (
            json!({ "suspension": { "dispatching": true }, "placement": {} }),
            true,
            true,
        ),
    ];
    for (change, differs, waits) in table {
        let mut changed = base.clone();
        for (key, value) in change.as_object().unwrap() {
            changed[key] = value.clone();
        }
        assert_eq!(
            propagation_differs(&policy(changed.clone()), &binding(&base)),
            differs,
            "{change}"
        );
        assert_eq!(
            would_wait(&policy(changed.clone()), &binding(&base)),
            waits,
            "{change}"
        );
        assert!(
            !propagation_differs(&policy(changed.clone()), &binding(&changed)),
            "{change}: activated"
        );
        // What placing and others wrote makes no difference.
        let mut placed = binding(&changed);
        placed.spec.clusters = full().clusters;
        placed.spec.required_by = full().required_by;
        assert!(
            !propagation_differs(&policy(changed), &placed),
            "{change}: placed"
        );
    }
}
