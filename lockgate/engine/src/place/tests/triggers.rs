//! When a binding is placed anew.

use super::*;

fn placement(value: Value) -> Placement {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_places_anew() {
    let duplicated = json!({});
    let divided = json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" } });
    let on_two = json!([{ "name": "a", "replicas": 1 }, { "name": "b", "replicas": 2 }]);
    let settled = json!({ "replicas": 3, "clusters": on_two, "placement": divided });
    let with = |changes: Value| {
        let mut spec = settled.clone();
        spec.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        spec
    };
    let asked = |time: &str| with(json!({ "rescheduleTriggeredAt": time }));
    let tolerant = json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" },
        "clusterTolerations": [{ "operator": "Exists" }] });
    let grouping = json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" },
        "workloadAffinity": { "affinity": { "groupByLabelKey": "g" } } });
    let gone = json!([{ "name": "a", "replicas": 1 }, { "name": "nowhere", "replicas": 2 }]);
    let going = json!([{ "name": "a", "replicas": 1 }, { "name": "going", "replicas": 2 }]);
    let table = [
        ("nothing", settled.clone(), Some(&divided), None),
        (
            "first placement",
            settled.clone(),
            None,
            Some(Trigger::PlacementChanged),
        ),
        (
            "another placement",
            settled.clone(),
            Some(&tolerant),
            Some(Trigger::PlacementChanged),
        ),
        (
            "workload affinity is not compared",
            settled.clone(),
            Some(&grouping),
            None,
        ),
        (
            "scaled",
            with(json!({ "replicas": 4 })),
            Some(&divided),
            Some(Trigger::ReplicasChanged),
        ),
        (
            "rebalance",
            asked("2026-01-01T00:00:11Z"),
            Some(&divided),
            Some(Trigger::RebalanceAsked),
        ),
        (
            "rebalance in the same second",
            asked("2026-01-01T00:00:10.9Z"),
            Some(&divided),
            None,
        ),
        (
            "rebalance before",
            asked("2026-01-01T00:00:09Z"),
            Some(&divided),
            None,
        ),
        (
            "a rebalance that cannot be read",
            asked("soon"),
            Some(&divided),
            None,
        ),
        (
            "duplicated",
            with(json!({ "placement": duplicated })),
            Some(&duplicated),
            Some(Trigger::FollowsFleet),
        ),
        (
            "without replicas",
            with(json!({ "replicas": 0, "clusters": [{ "name": "a" }] })),
            Some(&divided),
            Some(Trigger::FollowsFleet),
        ),
        (
            "scaled to nothing, and settled",
            with(json!({ "replicas": 0, "replicaRequirements": {}, "clusters": [{ "name": "a" }] })),
            Some(&divided),
            None,
        ),
        (
            "a cluster is going",
            with(json!({ "clusters": going })),
            Some(&divided),
            Some(Trigger::ClusterGone),
        ),
        (
            "a cluster is gone",
            with(json!({ "clusters": gone })),
            Some(&divided),
            Some(Trigger::ClusterGone),
        ),
        (
            "a cluster is to be left",
            with(json!({ "gracefulEvictionTasks": [{ "fromCluster": "b" }] })),
            Some(&divided),
            Some(Trigger::ClusterGone),
        ),
        (
            "suspended",
            with(json!({ "replicas": 4, "suspension": { "scheduling": true } })),
            Some(&divided),
            None,
        ),
        (
            "not suspended",
            with(json!({ "replicas": 4, "suspension": { "scheduling": false } })),
            Some(&divided),
            Some(Trigger::ReplicasChanged),
        ),
        (
            "no placement",
            json!({ "replicas": 3, "clusters": on_two }),
            None,
            None,
        ),
    ];
    let clusters = fleet(&["a", "b", "c", "going"], |name, cluster| {
        if name == "going" {
            cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
        }
    });
    for (case, text, applied, expected) in table {
        let applied = applied.map(|applied| placement(applied.clone()));
        let spec = spec(text);
        let input = PlaceInput {
            applied_placement: applied.as_ref(),
            last_scheduled: Some("2026-01-01T00:00:10Z".parse::<Timestamp>().unwrap()),
            ..input(&spec, &clusters)
        };
        assert_eq!(trigger(&input), expected, "{case}");
        let placed = place(&input);
        assert_eq!(placed.verdict == Verdict::Unchanged, expected.is_none(), "{case}");
    }
}

#[test]
fn a_rebalance_before_the_first_placement_is_no_trigger_of_its_own() {
    let divided = json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" } });
    let spec = spec(
        json!({ "replicas": 1, "clusters": [{ "name": "a", "replicas": 1 }], "placement": divided,
        "rescheduleTriggeredAt": "2026-01-01T00:00:11Z" }),
    );
    let applied = placement(divided);
    let clusters = plain(&["a"]);
    let input = PlaceInput {
        applied_placement: Some(&applied),
        ..input(&spec, &clusters)
    };
    assert_eq!(trigger(&input), None);
    // A preview says all the same where it would go.
    assert_eq!(told(&preview(&input)), "a:1");
}

#[test]
fn of_the_groups_only_the_one_in_use_counts() {
    let group = |name: &str, cluster: &str| json!({ "affinityName": name, "clusterNames": [cluster] });
    let divided = json!({ "replicaSchedulingType": "Divided" });
    let groups = |groups: &[Value]| json!({ "clusterAffinities": groups, "replicaScheduling": divided });
    let (one, two, other) = (group("one", "a"), group("two", "b"), group("one", "c"));
    let table = [
        (
            "a further group",
            vec![one.clone()],
            vec![one.clone(), two.clone()],
            "one",
            false,
        ),
        (
            "the group in use differs",
            vec![other],
            vec![one.clone(), two.clone()],
            "one",
            true,
        ),
        (
            "the group in use is new",
            vec![two.clone()],
            vec![one.clone(), two.clone()],
            "one",
            true,
        ),
        (
            "the group in use is gone",
            vec![one.clone(), two.clone()],
            vec![two.clone()],
            "one",
            true,
        ),
        (
            "no group is in use",
            vec![one.clone()],
            vec![one.clone(), two.clone()],
            "",
            true,
        ),
        ("groups are gone", vec![one.clone()], vec![], "one", true),
        (
            "the same",
            vec![one.clone(), two.clone()],
            vec![one, two],
            "",
            false,
        ),
    ];
    let clusters = plain(&["a", "b", "c"]);
    for (case, applied, now, observed, changed) in table {
        let spec = spec(
            json!({ "replicas": 1, "clusters": [{ "name": "a", "replicas": 1 }],
            "placement": groups(&now) }),
        );
        let applied = placement(groups(&applied));
        let input = PlaceInput {
            applied_placement: Some(&applied),
            observed_affinity: observed,
            ..input(&spec, &clusters)
        };
        let expected = changed.then_some(Trigger::PlacementChanged);
        assert_eq!(trigger(&input), expected, "{case}");
    }
}
