//! Divided by the room that clusters have: steady, fresh, overflowing; and what is said where there is too little.

use super::*;

/// Clusters with this room, in pods.
fn roomy(rooms: &[(&str, i64)]) -> Vec<Arc<Cluster>> {
    let names: Vec<&str> = rooms.iter().map(|(name, _)| *name).collect();
    fleet(&names, |name, cluster| {
        let room = rooms.iter().find(|(other, _)| *other == name).unwrap().1;
        let summary = json!({ "allocatable": { "pods": room.to_string(), "cpu": "100" } });
        if room >= 0 {
            cluster.status.rest.insert("resourceSummary".into(), summary);
        }
    })
}

fn aggregated() -> Value {
    json!({ "replicaScheduling": { "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" } })
}

fn dynamic() -> Value {
    json!({ "replicaScheduling": { "replicaSchedulingType": "Divided",
        "weightPreference": { "dynamicWeight": "AvailableReplicas" } } })
}

#[test]
fn steady_and_fresh() {
    let there = |list: &[(&str, i64)]| -> Value {
        list.iter()
            .map(|(name, replicas)| json!({ "name": name, "replicas": replicas }))
            .collect()
    };
    let abc: &[(&str, i64)] = &[("a", 10), ("b", 20), ("c", 0)];
    /// The case, the room, the placement, the replicas, where it is, whether a rebalance was asked for; what comes of it.
    type Row<'a> = (&'a str, &'a [(&'a str, i64)], Value, i64, Value, bool, &'a str);
    let table: &[Row<'_>] = &[
        ("first", abc, dynamic(), 9, there(&[]), false, "a:3 b:6"),
        (
            "first, aggregated",
            abc,
            aggregated(),
            9,
            there(&[]),
            false,
            "b:9",
        ),
        (
            "scaled up",
            abc,
            dynamic(),
            12,
            there(&[("c", 9)]),
            false,
            "a:1 b:2 c:9",
        ),
        (
            "scaled down",
            abc,
            dynamic(),
            6,
            there(&[("b", 3), ("c", 9)]),
            false,
            "b:2 c:4",
        ),
        (
            "a cluster is gone",
            abc,
            dynamic(),
            9,
            there(&[("b", 6), ("gone", 3)]),
            false,
            "a:1 b:8",
        ),
        (
            "fresh",
            abc,
            dynamic(),
            9,
            there(&[("c", 9)]),
            true,
            "a:2 b:5 c:2",
        ),
        (
            "fresh, aggregated",
            abc,
            aggregated(),
            12,
            there(&[("a", 9)]),
            true,
            "a:12",
        ),
        (
            "nothing to do",
            abc,
            dynamic(),
            9,
            there(&[("c", 9)]),
            false,
            "unchanged",
        ),
    ];
    for (case, rooms, placement, replicas, clusters, asked, expected) in table {
        let asked = asked.then_some("2026-01-01T00:00:11Z");
        let spec = spec(
            json!({ "replicas": replicas, "placement": placement, "clusters": clusters,
            "rescheduleTriggeredAt": asked }),
        );
        let first = spec.clusters.is_empty();
        let fleet = roomy(rooms);
        let input = PlaceInput {
            applied_placement: spec.placement.as_ref().filter(|_| !first),
            last_scheduled: Some("2026-01-01T00:00:10Z".parse().unwrap()),
            ..input(&spec, &fleet)
        };
        assert_eq!(told(&place(&input)), *expected, "{case}");
        // What is known of the room beforehand changes nothing.
        let rooms = Rooms::of(&fleet);
        let known = PlaceInput {
            rooms: Some(&rooms),
            ..input
        };
        assert_eq!(told(&place(&known)), *expected, "{case}, rooms known");
    }
}

#[test]
fn a_group_overflows_when_it_is_full() {
    let overflow = json!([{ "affinityName": "cloud", "clusterNames": ["b", "c"] }]);
    let group = json!({ "affinityName": "own", "clusterNames": ["a"], "overflowAffinities": overflow });
    let other = json!({ "affinityName": "other", "clusterNames": ["d"] });
    let scheduling = &dynamic()["replicaScheduling"];
    let place_all = |replicas: i64, there: Value| {
        let spec = spec(json!({ "replicas": replicas, "clusters": there, "placement": {
            "clusterAffinities": [group, other], "replicaScheduling": scheduling } }));
        let placed = place(&input(&spec, &roomy(&[("a", 5), ("b", 4), ("c", 4), ("d", 90)])));
        (told(&placed), placed.affinity_name)
    };
    let own = Some("own".to_owned());
    assert_eq!(place_all(5, json!([])), ("a:5".into(), own.clone()));
    assert_eq!(place_all(7, json!([])), ("a:5 b:1 c:1".into(), own.clone()));
    let spilt = json!([{ "name": "a", "replicas": 5 }, { "name": "b", "replicas": 2 }]);
    assert_eq!(
        place_all(6, spilt.clone()),
        ("a:5 b:1".into(), own.clone()),
        "the overflow shrinks first"
    );
    assert_eq!(place_all(3, spilt), ("a:3".into(), own));
    // All of it is full: the next group.
    assert_eq!(
        place_all(14, json!([])),
        ("d:14".into(), Some("other".to_owned()))
    );
}

#[test]
fn too_little_room_is_told_for_every_cluster() {
    let requests = json!({ "resourceRequest": { "cpu": "40" } });
    let spec = spec(json!({ "replicas": 9, "replicaRequirements": requests, "placement": dynamic() }));
    let mut clusters = roomy(&[("a", 10), ("b", 1), ("c", -1), ("d", 10)]);
    let mut tainted = (*clusters[3]).clone();
    tainted.spec.taints = serde_json::from_value(json!([{ "key": "k", "effect": "NoSchedule" }])).unwrap();
    clusters[3] = Arc::new(tainted);
    let placed = place(&input(&spec, &clusters));
    assert_eq!(
        explain(&placed).unwrap(),
        "Clusters available replicas 3 are not enough to schedule: 9 replicas are to be placed. \
         (a: it has room for 2 replicas, and then runs out of cpu - free resources there, or ask for fewer replicas or smaller ones; \
         b: it has room for 1 replica, and then runs out of pods - free resources there, or ask for fewer replicas or smaller ones; \
         c: it has not said what it has room for - wait until it is ready, and let the control plane list its nodes and pods; \
         d: it has the taint k:NoSchedule, which the placement does not tolerate - remove the taint, or tolerate it in placement.clusterTolerations)"
    );
}

#[test]
fn clusters_that_fail_alike_are_told_together() {
    let names: Vec<String> = (0..30).map(|n| format!("m{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec = spec(json!({ "placement": { "clusterAffinity": { "clusterNames": ["nowhere"] } } }));
    let placed = place(&input(&spec, &plain(&names)));
    let text = explain(&placed).unwrap();
    assert!(
        text.starts_with("0/30 clusters are available: 30 cluster(s) did not match"),
        "{text}"
    );
    assert!(
        text.ends_with("(m00, m01, m02, m03, m04, m05, m06, m07 and 22 more: the placement's cluster affinity does \
                        not include it: the cluster is not one of those that it names - add it to clusterNames; \
                        nowhere: the placement names it, and there is no cluster of that name - join it, or correct the name)"),
        "{text}"
    );
}

#[test]
fn a_need_that_is_no_amount_stops_its_own_binding() {
    let requests = json!({ "resourceRequest": { "cpu": "much" } });
    let spec = spec(json!({ "replicas": 1, "replicaRequirements": requests, "placement": dynamic() }));
    assert_eq!(
        told(&place(&input(&spec, &roomy(&[("a", 1)])))),
        "resourceRequest.cpu of one replica is \"much\", which is no amount: correct the template"
    );
}

#[test]
fn parts_stay_together() {
    let parts = json!([{ "name": "master", "replicas": 1 }, { "name": "worker", "replicas": 3 }]);
    let clusters = roomy(&[("a", 10), ("b", 3), ("c", -1), ("d", 4)]);
    let on = Gates {
        multiple_pod_templates: true,
        ..Gates::default()
    };
    let first = spec(json!({ "components": parts, "placement": {} }));
    let placed = |spec: &BindingSpec, gates| {
        place(&PlaceInput {
            gates,
            ..input(spec, &clusters)
        })
    };
    assert_eq!(told(&placed(&first, Gates::default())), "a:0 b:0 c:0 d:0");
    let decided = placed(&first, on);
    assert_eq!(told(&decided), "a:0 d:0");
    let why: Vec<&str> = decided.rejected.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        why,
        [
            "it runs out of pods before all parts of the workload have room",
            "it has not said what it has room for",
        ]
    );
    // Where it is, it stays; and of several the one with most room is taken.
    let there = spec(json!({ "components": parts, "placement": {}, "clusters": [{ "name": "b" }] }));
    assert_eq!(told(&placed(&there, on)), "a:0 b:0 d:0");
    let one = json!({ "spreadConstraints": [{ "spreadByField": "cluster", "maxGroups": 1 }] });
    let one = spec(json!({ "components": parts, "placement": one }));
    assert_eq!(told(&placed(&one, on)), "a:0");
    let large = json!([{ "name": "master", "replicas": 1 }, { "name": "worker", "replicas": 30 }]);
    let large = spec(json!({ "components": large, "placement": {} }));
    let decided = placed(&large, on);
    assert!(
        told(&decided).starts_with("no cluster has room for all parts"),
        "{}",
        told(&decided)
    );
    assert_eq!(decided.rejected.len(), 4, "and every cluster says why");
}
