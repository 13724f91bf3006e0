//! When clusters are left, and when they have been.

use proptest::prelude::*;

use lockgate_api::binding::TargetCluster;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn cluster(name: &str, taints: Value) -> Arc<Cluster> {
    let cluster = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
    Arc::new(serde_json::from_value(cluster).unwrap())
}

fn spec(value: Value) -> BindingSpec {
    serde_json::from_value(value).unwrap()
}

/// What is decided at second 100 for a workload on a and b, of which a has these taints.
fn taints(taints: Value, tolerations: Value, failover: Value) -> Leave {
    let spec = spec(json!({"clusters": [{"name": "a", "replicas": 2}, {"name": "b"}], "failover": failover}));
    let clusters = [cluster("a", taints), cluster("b", json!([]))];
    let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
    leaving(&FailoverInput {
        spec: &spec,
        tolerations: &tolerations,
        clusters: &clusters,
        health: &BTreeMap::new(),
        unhealthy_since: &BTreeMap::new(),
        status: &|_| None,
        carried: None,
        stateful: false,
        held: &|_| false,
        now: at(100),
    })
}

#[test]
fn taints_and_tolerations() {
    let taint = |effect: &str, since: Option<i64>| {
        let since = since.map(|seconds| at(seconds).to_string());
        json!([{"key": "k", "effect": effect, "timeAdded": since}])
    };
    let for_ever = json!({"key": "k", "operator": "Exists"});
    let for_seconds = |seconds: i64| json!({"key": "k", "operator": "Exists", "tolerationSeconds": seconds});
    let other = json!({"key": "other", "operator": "Exists"});
    /// Whether a is left now, and when to look again.
    type Outcome = (bool, Option<i64>);
    let table: [(&str, Value, Value, Outcome); 11] = [
        ("no taint", json!([]), json!([]), (false, None)),
        (
            "nothing is left for NoSchedule",
            taint("NoSchedule", Some(0)),
            json!([]),
            (false, None),
        ),
        (
            "not tolerated",
            taint("NoExecute", Some(0)),
            json!([]),
            (true, None),
        ),
        (
            "not tolerated, since nobody knows when",
            taint("NoExecute", None),
            json!([]),
            (true, None),
        ),
        (
            "another is tolerated",
            taint("NoExecute", Some(0)),
            json!([other]),
            (true, None),
        ),
        (
            "tolerated for ever",
            taint("NoExecute", Some(0)),
            json!([for_ever]),
            (false, None),
        ),
        (
            "tolerated for a while",
            taint("NoExecute", Some(50)),
            json!([for_seconds(60)]),
            (false, Some(110)),
        ),
        (
            "tolerated for long enough",
            taint("NoExecute", Some(40)),
            json!([for_seconds(60)]),
            (true, None),
        ),
        (
            "the shortest counts",
            taint("NoExecute", Some(50)),
            json!([for_ever, for_seconds(60), for_seconds(70)]),
            (false, Some(110)),
        ),
        (
            "less than nothing is nothing",
            taint("NoExecute", Some(100)),
            json!([for_seconds(-5)]),
            (true, None),
        ),
        (
            "tolerated, since nobody knows when",
            taint("NoExecute", None),
            json!([for_seconds(1)]),
            (false, None),
        ),
    ];
    for (case, has, tolerations, (left, next)) in table {
        let leave = taints(has, tolerations, json!(null));
        let names: Vec<&str> = leave
            .tasks
            .iter()
            .map(|task| task.from_cluster.as_str())
            .collect();
        assert_eq!(names, if left { vec!["a"] } else { vec![] }, "{case}");
        assert_eq!(leave.next, next.map(at), "{case}");
    }
}

#[test]
fn a_task_says_what_and_why() {
    let taint = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
    let leave = taints(taint.clone(), json!([]), json!(null));
    let expected = json!({
        "fromCluster": "a", "purgeMode": "Gracefully", "replicas": 2, "reason": "TaintUntolerated",
        "producer": "TaintManager", "creationTimestamp": at(100).to_string(), "clustersBeforeFailover": ["a", "b"],
        "message": "the cluster has the taint k=v:NoExecute, which the placement does not tolerate",
    });
    assert_eq!(serde_json::to_value(&leave.tasks[0]).unwrap(), expected);
    let leave = taints(taint, json!([]), json!({"cluster": {"purgeMode": "Directly"}}));
    assert!(is_direct(&leave.tasks[0]));
}

fn application(failover: Value, health: &str, since: Option<i64>, held: bool, deps: bool) -> Leave {
    let spec = spec(json!({"clusters": [{"name": "a"}], "propagateDeps": deps,
        "failover": {"application": failover}, "resource": {"namespace": "n"}}));
    let health: BTreeMap<String, String> = [("a".to_owned(), health.to_owned())].into();
    let since = since.map(|seconds| ("a".to_owned(), at(seconds)));
    leaving(&FailoverInput {
        spec: &spec,
        tolerations: &[],
        clusters: &[cluster("a", json!([]))],
        health: &health,
        unhealthy_since: &since.into_iter().collect(),
        status: &|_| None,
        carried: None,
        stateful: false,
        held: &|_| held,
        now: at(100),
    })
}

#[test]
fn applications() {
    let for_seconds = |seconds: i64| json!({"decisionConditions": {"tolerationSeconds": seconds}});
    // The application, its health, since when, held; left, next look, stored since when, paused.
    let table = [
        (
            for_seconds(60),
            "Healthy",
            Some(0),
            false,
            (false, None, None, false),
        ),
        (
            for_seconds(60),
            "Unhealthy",
            None,
            false,
            (false, Some(160), Some(100), false),
        ),
        (
            for_seconds(60),
            "Unhealthy",
            Some(50),
            false,
            (false, Some(110), Some(50), false),
        ),
        (
            for_seconds(60),
            "Unhealthy",
            Some(40),
            false,
            (true, None, Some(40), false),
        ),
        (
            for_seconds(60),
            "Unknown",
            Some(0),
            false,
            (false, None, Some(0), false),
        ),
        (
            for_seconds(60),
            "Unknown",
            None,
            false,
            (false, None, None, false),
        ),
        (
            for_seconds(0),
            "Unhealthy",
            None,
            false,
            (true, None, Some(100), false),
        ),
        (
            json!({"decisionConditions": {}}),
            "Unhealthy",
            Some(0),
            false,
            (false, Some(300), Some(0), false),
        ),
        (
            for_seconds(60),
            "Unhealthy",
            Some(0),
            true,
            (false, None, Some(0), true),
        ),
        (
            json!(null),
            "Unhealthy",
            Some(0),
            false,
            (false, None, None, false),
        ),
    ];
    for (app, health, since, held, (left, next, stored, paused)) in table {
        let leave = application(app.clone(), health, since, held, true);
        assert_eq!(!leave.tasks.is_empty(), left, "{app} {health} {since:?}");
        assert_eq!(leave.next, next.map(at), "{app} {health} {since:?}");
        assert_eq!(
            leave.unhealthy_since.get("a").copied(),
            stored.map(at),
            "{app} {health} {since:?}"
        );
        assert_eq!(!leave.paused.is_empty(), paused, "{app} {health} {since:?}");
    }
    assert!(
        application(for_seconds(0), "Unhealthy", Some(0), false, false)
            .tasks
            .is_empty()
    );
}

#[test]
fn purge_modes() {
    let with = |mode: &str, grace: Value| {
        let app = json!({"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": mode, "gracePeriodSeconds": grace});
        let task = application(app, "Unhealthy", Some(0), false, true)
            .tasks
            .remove(0);
        (
            task.purge_mode.clone(),
            task.rest.get("suppressDeletion").cloned(),
            task.rest.get("gracePeriodSeconds").cloned(),
        )
    };
    assert_eq!(
        with("Gracefully", json!(30)),
        ("Gracefully".into(), None, Some(json!(30)))
    );
    assert_eq!(with("Graciously", json!(null)), ("Gracefully".into(), None, None));
    assert_eq!(with("Directly", json!(null)), ("Directly".into(), None, None));
    assert_eq!(with("Immediately", json!(null)), ("Directly".into(), None, None));
    assert_eq!(
        with("Never", json!(null)),
        ("Gracefully".into(), Some(json!(true)), None)
    );
}

/// Whether a task from a, made at second 0, is over at this second, and when to look again.
fn over(
    task: Value,
    targets: &[&str],
    well: &[&str],
    held: &[&str],
    left: bool,
    now: i64,
) -> (bool, Option<i64>) {
    let mut whole = json!({"fromCluster": "a", "creationTimestamp": at(0).to_string()});
    whole
        .as_object_mut()
        .unwrap()
        .extend(task.as_object().unwrap().clone());
    let targets: Vec<Value> = targets.iter().map(|name| json!({"name": name})).collect();
    let spec = spec(json!({"clusters": targets, "gracefulEvictionTasks": [whole]}));
    let finished = finish(
        &spec,
        &|name| well.contains(&name),
        &|name| held.contains(&name),
        &|_| left,
        at(now),
    );
    let next = finished.next.map(|next| next.as_second() - at(0).as_second());
    (finished.going_on.is_empty(), next)
}

#[test]
fn tasks_end() {
    let graceful = json!({"purgeMode": "Gracefully"});
    let direct = json!({"purgeMode": "Directly"});
    let short = json!({"gracePeriodSeconds": 30});
    let kept = json!({"suppressDeletion": true});
    let let_go = json!({"suppressDeletion": false});
    let bc: &[&str] = &["b", "c"];
    // The task, where the binding goes, where it is well, where it is held, whether a is empty, the second; over, next look.
    type Row<'a> = (
        &'a Value,
        &'a [&'a str],
        &'a [&'a str],
        &'a [&'a str],
        bool,
        i64,
        (bool, Option<i64>),
    );
    let table: &[Row<'_>] = &[
        (&graceful, bc, &[], &[], false, 1, (false, Some(600))),
        (&graceful, bc, &["b"], &[], false, 1, (false, Some(600))),
        (&graceful, bc, bc, &[], false, 1, (true, None)),
        (&graceful, bc, &[], &[], false, 600, (true, None)),
        (&short, bc, &[], &[], false, 29, (false, Some(30))),
        (&short, bc, &[], &[], false, 30, (true, None)),
        // Held: neither health nor time ends it, wherever it is held.
        (&graceful, bc, bc, &["c"], false, 9000, (false, None)),
        (&graceful, bc, bc, &["a"], false, 9000, (false, None)),
        (&graceful, &[], &[], &[], false, 9000, (false, None)),
        (&kept, bc, bc, &[], false, 9000, (false, None)),
        (&let_go, bc, &[], &[], false, 1, (true, None)),
        (&direct, bc, bc, &[], false, 9000, (false, None)),
        (&direct, bc, &[], &[], true, 1, (true, None)),
        (&direct, bc, bc, &["c"], true, 9000, (false, None)),
        (&direct, bc, bc, &["a"], true, 9000, (false, None)),
        // Written by hand, and the binding is still there.
        (
            &graceful,
            &["a", "b"],
            &["a", "b"],
            &[],
            false,
            9000,
            (false, None),
        ),
    ];
    for (task, targets, well, held, left, now, expected) in table {
        let found = over((*task).clone(), targets, well, held, *left, *now);
        assert_eq!(
            found, *expected,
            "{task} to {targets:?}, well {well:?}, held {held:?}, at {now}"
        );
    }
}

#[test]
fn a_task_without_a_time_gets_one() {
    let spec = spec(json!({"clusters": [{"name": "b"}], "gracefulEvictionTasks": [{"fromCluster": "a"}]}));
    let finished = finish(&spec, &|_| false, &|_| false, &|_| false, at(7));
    assert_eq!(
        finished.going_on[0].rest["creationTimestamp"],
        json!(at(7).to_string())
    );
    assert_eq!(finished.next, Some(at(607)));
}

proptest! {
    #![proptest_config(crate::properties::cases(256))]

    /// Nothing that is suspended is ever left, whatever its taints are, and nothing before its time.
    #[test]
    fn what_is_held_stays(since in 0..200_i64, tolerated in prop::option::of(0..200_i64), held: bool, now in 0..400_i64) {
        let taint = json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(since).to_string()}]);
        let tolerations: Vec<Toleration> = tolerated
            .map(|seconds| Toleration { operator: "Exists".into(), toleration_seconds: Some(seconds), ..Toleration::default() })
            .into_iter()
            .collect();
        let spec = spec(json!({"clusters": [{"name": "a"}]}));
        let leave = leaving(&FailoverInput {
            spec: &spec,
            tolerations: &tolerations,
            clusters: &[cluster("a", taint)],
            health: &BTreeMap::new(),
            unhealthy_since: &BTreeMap::new(),
            status: &|_| None,
            carried: None,
            stateful: false,
            held: &|_| held,
            now: at(now),
        });
        let due = tolerated.is_none_or(|seconds| since + seconds <= now);
        prop_assert_eq!(!leave.tasks.is_empty(), due && !held);
        prop_assert_eq!(!leave.paused.is_empty(), due && held);
        prop_assert_eq!(leave.next.is_some(), !due);
    }
}

/// What is decided for a workload on a, which has a taint and this status there, whose policy takes along `rules`.
fn with_state(rules: Value, status: Option<Value>) -> Leave {
    let failover = json!({"cluster": {"purgeMode": "Directly", "statePreservation": {"rules": rules}}});
    let spec = spec(json!({"clusters": [{"name": "a"}], "failover": failover}));
    leaving(&FailoverInput {
        spec: &spec,
        tolerations: &[],
        clusters: &[cluster("a", json!([{"key": "k", "effect": "NoExecute"}]))],
        health: &BTreeMap::new(),
        unhealthy_since: &BTreeMap::new(),
        status: &|_| status.clone(),
        carried: None,
        stateful: true,
        held: &|_| false,
        now: at(100),
    })
}

#[test]
fn state_is_taken_along_or_nothing_moves() {
    let rule = |label: &str, path: &str| json!({"aliasLabelName": label, "jsonPath": path});
    let status = json!({"jobStatus": {"jobId": "7a"}, "ready": 2, "long": "x".repeat(64), "list": [1]});
    let leave = with_state(
        json!([rule("job", "{.jobStatus.jobId}"), rule("ready", ".ready")]),
        Some(status.clone()),
    );
    let task = &leave.tasks[0];
    assert_eq!(
        task.rest["preservedLabelState"],
        json!({"job": "7a", "ready": "2"})
    );
    let targets = |names: &[&str]| -> Vec<TargetCluster> {
        let target = |name: &&str| TargetCluster {
            name: (*name).to_owned(),
            ..TargetCluster::default()
        };
        names.iter().map(target).collect()
    };
    let carried = |before: &[&str], after: &[&str]| {
        Carried::by(&leave.tasks, &targets(before), &targets(after))
            .map(|carried| (carried.cluster, carried.labels["job"].clone()))
    };
    assert_eq!(carried(&["a"], &["b"]), Some(("b".to_owned(), "7a".to_owned())));
    assert_eq!(carried(&["a", "c"], &["b", "c"]), None, "it ran in two places");
    assert_eq!(carried(&["a"], &["b", "c"]), None, "it comes to two places");
    for (path, status, missing) in [
        (".jobId", Some(&status), "has nothing at .jobId"),
        (".list", Some(&status), "no single value"),
        (".long", Some(&status), "cannot be the label job"),
        ("{.a", Some(&status), "invalid JSONPath"),
        (".ready", None, "has not come"),
    ] {
        let leave = with_state(json!([rule("job", path)]), status.cloned());
        assert!(leave.tasks.is_empty(), "{path}");
        let (cluster, why) = &leave.stateless[0];
        assert!(cluster == "a" && why.contains(missing), "{path}: {why}");
    }
}

#[test]
fn each_cause_is_tried_by_itself_after_all() {
    let task = |from: &str, reason: &str| EvictionTask {
        from_cluster: from.to_owned(),
        rest: json!({"reason": reason}).as_object().unwrap().clone(),
        ..EvictionTask::default()
    };
    let tried = |tasks: &[(&str, &str)]| -> Vec<String> {
        let tasks = tasks.iter().map(|(from, reason)| task(from, reason)).collect();
        let names = |tasks: Vec<EvictionTask>| {
            let names: Vec<String> = tasks.into_iter().map(|task| task.from_cluster).collect();
            names.join(" ")
        };
        by_cause(tasks).into_iter().map(names).collect()
    };
    let (fails, taint) = ("ApplicationFailure", "TaintUntolerated");
    assert_eq!(
        tried(&[("a", fails), ("b", taint), ("c", fails), ("d", taint)]),
        ["b d", "a c"]
    );
    assert_eq!(tried(&[("a", fails)]), ["a"]);
    assert!(is_failing(&task("a", fails)) && !is_failing(&task("a", taint)));
}

#[test]
fn a_taint_counts_where_the_application_failed_before() {
    let spec = spec(
        json!({"clusters": [{"name": "a"}, {"name": "b"}], "propagateDeps": true,
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": 60}}, "cluster": {"purgeMode": "Directly"}}}),
    );
    let taint = json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(70).to_string()}]);
    let clusters = [cluster("a", taint), cluster("b", json!([]))];
    let tolerations = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 50}]);
    let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
    let decided = |now: i64| {
        leaving(&FailoverInput {
            spec: &spec,
            tolerations: &tolerations,
            clusters: &clusters,
            health: &[("a".to_owned(), "Unhealthy".to_owned())].into(),
            unhealthy_since: &[("a".to_owned(), at(0))].into(),
            status: &|_| None,
            carried: None,
            stateful: false,
            held: &|_| false,
            now: at(now),
        })
    };
    for (now, is_direct_now, next) in [(100, false, Some(120)), (120, true, None)] {
        let leave = decided(now);
        assert_eq!(leave.tasks.len(), 1, "{now}");
        assert_eq!(is_direct(&leave.tasks[0]), is_direct_now, "{now}");
        assert_eq!(is_failing(&leave.tasks[0]), !is_direct_now, "{now}");
        assert_eq!(leave.next, next.map(at), "{now}");
    }
}
