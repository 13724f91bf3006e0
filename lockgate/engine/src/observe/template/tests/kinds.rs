//! Tables for the kinds that are no workloads.

use super::*;

#[test]
fn jobs() {
    let job = |start: &str, end: Option<&str>, conditions: &[&str]| {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|kind| json!({"type": kind, "status": "True"}))
            .collect();
        let mut status = json!({"succeeded": 1, "startTime": start, "conditions": conditions});
        if let Some(end) = end {
            status["completionTime"] = json!(end);
        }
        status
    };
    let says = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastProbeTime": NOW,
               "lastTransitionTime": NOW})
    };
    let (one, two, three) = (
        "2026-11-15T08:00:01Z",
        "2026-11-15T08:00:02Z",
        "2026-11-15T08:00:03Z",
    );
    let failed = "Job executed failed in member clusters member2";
    let finished = json!({"conditions": [{"type": "Failed", "status": "True"}], "failed": 1});
    check(
        "batch/v1",
        "Job",
        vec![
            ("silence", json!({}), json!({}), vec![Value::Null], Value::Null),
            (
                "one has not started",
                json!({}),
                json!({}),
                vec![
                    json!({"active": 2, "startTime": two}),
                    json!({"active": 1, "failed": 2}),
                ],
                json!({"active": 3, "failed": 2}),
            ),
            (
                "all have started",
                json!({}),
                json!({}),
                vec![
                    json!({"active": 2, "startTime": two}),
                    json!({"active": 1, "startTime": one}),
                ],
                json!({"active": 3, "startTime": one}),
            ),
            (
                "one completed",
                json!({}),
                json!({"startTime": one}),
                vec![
                    job(one, Some(two), &["Complete"]),
                    json!({"active": 1, "startTime": one}),
                ],
                json!({"active": 1, "succeeded": 1, "startTime": one}),
            ),
            (
                "one completed, one says nothing",
                json!({}),
                json!({}),
                vec![job(one, Some(two), &["Complete"]), Value::Null],
                json!({"succeeded": 1}),
            ),
            (
                "all are about to complete",
                json!({}),
                json!({}),
                vec![
                    job(one, None, &["SuccessCriteriaMet"]),
                    job(one, Some(two), &["SuccessCriteriaMet", "Complete"]),
                ],
                json!({"succeeded": 2, "startTime": one,
                       "conditions": [says("SuccessCriteriaMet", "Completed", "Job completed")]}),
            ),
            (
                "all completed",
                json!({}),
                json!({"active": 1}),
                vec![
                    job(two, Some(three), &["Complete"]),
                    job(one, Some(two), &["Complete"]),
                ],
                json!({"succeeded": 2, "startTime": one, "completionTime": three, "conditions": [
                    says("SuccessCriteriaMet", "Completed", "Job completed"),
                    says("Complete", "Completed", "Job completed"),
                ]}),
            ),
            (
                "one failed while another runs",
                json!({}),
                json!({}),
                vec![
                    json!({"active": 1}),
                    json!({"failed": 1, "startTime": two,
                     "conditions": [{"type": "Failed", "status": "True"}]}),
                ],
                json!({"failed": 1, "startTime": two, "conditions": [
                    says("FailureTarget", "JobFailed", failed),
                    says("Failed", "JobFailed", failed),
                ]}),
            ),
            (
                "finished is finished",
                json!({}),
                finished,
                vec![job(one, Some(two), &["Complete"])],
                Value::Null,
            ),
            (
                "counts do not fall",
                json!({}),
                json!({"succeeded": 3, "startTime": one}),
                vec![json!({"active": 1, "succeeded": 1, "startTime": two})],
                json!({"active": 1, "succeeded": 3, "startTime": one}),
            ),
        ],
    );
    check(
        "batch/v1",
        "CronJob",
        vec![(
            "latest times, all that is active",
            json!({}),
            json!({}),
            vec![
                json!({"lastScheduleTime": two, "active": [{"name": "a"}]}),
                json!({"lastScheduleTime": "2026-11-15T10:00:01+02:00", "lastSuccessfulTime": one,
                       "active": [{"name": "b"}]}),
                json!({"lastScheduleTime": "soon"}),
            ],
            json!({"lastScheduleTime": two, "lastSuccessfulTime": one, "active": [{"name": "a"}, {"name": "b"}]}),
        )],
    );
}

#[test]
fn addresses() {
    let address = |fields: Value| json!({"loadBalancer": {"ingress": [fields]}});
    let members = || {
        vec![
            address(json!({"ip": "10.0.0.1", "ipMode": "VIP"})),
            address(json!({"hostname": "lb.example.io"})),
            address(json!({"hostname": "lb.example.io"})),
        ]
    };
    let union = json!({"loadBalancer": {"ingress": [
        {"ip": "10.0.0.1", "ipMode": "VIP", "hostname": "member1"},
        {"hostname": "lb.example.io"},
    ]}});
    let balancer = json!({"type": "LoadBalancer"});
    check(
        "v1",
        "Service",
        vec![
            (
                "union",
                balancer.clone(),
                json!({"loadBalancer": {}}),
                members(),
                union.clone(),
            ),
            (
                "as it is",
                balancer.clone(),
                union.clone(),
                members(),
                Value::Null,
            ),
            (
                "no addresses",
                balancer,
                json!({"loadBalancer": {}}),
                vec![json!({"loadBalancer": {}})],
                Value::Null,
            ),
            (
                "another type",
                json!({"type": "ClusterIP"}),
                json!({"loadBalancer": {}}),
                members(),
                Value::Null,
            ),
        ],
    );
    check(
        "networking.k8s.io/v1",
        "Ingress",
        vec![
            (
                "union",
                json!({}),
                json!({"loadBalancer": {}}),
                members(),
                union.clone(),
            ),
            ("gone", json!({}), union, vec![], json!({"loadBalancer": {}})),
        ],
    );
}

#[test]
fn phases() {
    let phase = |phase: &str| match phase {
        "" => Value::Null,
        phase => json!({"phase": phase}),
    };
    for (kind, phases, expected) in [
        ("Pod", &["Running", "Failed", "Pending"][..], "Failed"),
        ("Pod", &["Running", "", "Succeeded"], "Pending"),
        ("Pod", &["Running", "Succeeded"], "Running"),
        ("Pod", &["Succeeded", "Succeeded"], "Succeeded"),
        ("PersistentVolume", &["Bound", "Failed", ""], "Failed"),
        ("PersistentVolume", &["Bound", ""], "Pending"),
        ("PersistentVolume", &["Bound", "Available"], "Available"),
        ("PersistentVolume", &["Bound", "Released"], "Bound"),
        ("PersistentVolumeClaim", &["Bound", "Bound"], "Bound"),
        ("PersistentVolumeClaim", &["Lost", "Pending"], "Lost"),
        ("PersistentVolumeClaim", &["Pending", "Bound"], "Pending"),
        ("PersistentVolumeClaim", &["Bound", ""], "Pending"),
    ] {
        let statuses: Vec<Value> = phases.iter().map(|name| phase(name)).collect();
        let object = template("v1", kind, json!({}), json!({"qosClass": "Burstable"}));
        let expected = json!({"qosClass": "Burstable", "phase": expected});
        assert_eq!(next(&object, &reports(&statuses)), expected, "{kind}: {phases:?}");
    }
    let container = |name: &str| json!({"name": name, "ready": true});
    let running = |name: &str| json!({"phase": "Running", "containerStatuses": [container(name)]});
    let object = template("v1", "Pod", json!({}), json!({"phase": "Pending"}));
    let status = next(&object, &reports(&[running("a"), running("b")]));
    assert_eq!(
        status,
        json!({"phase": "Running", "containerStatuses": [container("a"), container("b")]})
    );
    assert_eq!(
        next(&object, &[]),
        Value::Null,
        "a Pod without clusters stays as it is"
    );
}

#[test]
fn budgets_autoscalers_and_the_rest() {
    let budget = |pod: &str| {
        json!({"currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 3, "disruptionsAllowed": 1,
               "disruptedPods": {pod: NOW}})
    };
    check(
        "policy/v1",
        "PodDisruptionBudget",
        vec![
            (
                "sums",
                json!({}),
                json!({}),
                vec![budget("a"), budget("a")],
                json!({"currentHealthy": 4, "desiredHealthy": 2, "expectedPods": 6, "disruptionsAllowed": 2,
                       "disruptedPods": {"member1/a": NOW, "member2/a": NOW}}),
            ),
            (
                "no controllers",
                json!({}),
                json!({}),
                vec![
                    json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "disruptionsAllowed": 0}),
                ],
                Value::Null,
            ),
        ],
    );
    check(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        vec![(
            "sums",
            json!({}),
            json!({"currentMetrics": null}),
            vec![
                json!({"desiredReplicas": 3}),
                json!({"currentReplicas": 1, "desiredReplicas": 2}),
            ],
            json!({"currentMetrics": null, "currentReplicas": 1, "desiredReplicas": 5}),
        )],
    );
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("example.io/v1", "Deployment"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ] {
        let cases = vec![(
            "no rule",
            json!({}),
            json!({}),
            vec![json!({"ready": true})],
            Value::Null,
        )];
        check(api_version, kind, cases);
    }
}
