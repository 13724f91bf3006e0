//! Groups of clusters are tried forward from the one in use.

use super::*;

/// Groups one (a), two (b) and three (c); the clusters named here are tainted.
fn place_in_groups(tainted: &[&str], observed: &str, asked: Option<&str>) -> Placed {
    let group = |name: &str, cluster: &str| json!({ "affinityName": name, "clusterNames": [cluster] });
    let groups = [group("one", "a"), group("two", "b"), group("three", "c")];
    let spec = spec(
        json!({ "replicas": 1, "placement": { "clusterAffinities": groups },
        "rescheduleTriggeredAt": asked }),
    );
    let clusters = fleet(&["a", "b", "c"], |name, cluster| {
        if tainted.contains(&name) {
            let taints = json!([{ "key": "k", "effect": "NoSchedule" }]);
            cluster.spec.taints = serde_json::from_value(taints).unwrap();
        }
    });
    place(&PlaceInput {
        observed_affinity: observed,
        last_scheduled: Some("2026-01-01T00:00:10Z".parse().unwrap()),
        ..input(&spec, &clusters)
    })
}

#[test]
fn forward_only() {
    let later = Some("2026-01-01T00:00:11Z");
    /// The case, the tainted clusters, the group in use, a rebalance; what comes of it, and the group then.
    type Row = (
        &'static str,
        &'static [&'static str],
        &'static str,
        Option<&'static str>,
        &'static str,
        Option<&'static str>,
    );
    let table: &[Row] = &[
        ("the first", &[], "", None, "a:1", Some("one")),
        ("the next that fits", &["a", "b"], "", None, "c:1", Some("three")),
        ("the one in use", &[], "two", None, "b:1", Some("two")),
        (
            "forward from the one in use",
            &["b"],
            "two",
            None,
            "c:1",
            Some("three"),
        ),
        ("back by a rebalance", &[], "two", later, "a:1", Some("one")),
        (
            "a rebalance finds the first that fits",
            &["a"],
            "three",
            later,
            "b:1",
            Some("two"),
        ),
        ("a group that is gone", &[], "none", None, "a:1", Some("one")),
        (
            "never back without one",
            &["c"],
            "three",
            None,
            "0/3 clusters are available: 1 cluster(s) had untolerated taint {k:NoSchedule}, \
             2 cluster(s) did not match the placement cluster affinity constraint.",
            None,
        ),
    ];
    for (case, tainted, observed, asked, expected, group) in table {
        let placed = place_in_groups(tainted, observed, *asked);
        assert_eq!(told(&placed), *expected, "{case}");
        assert_eq!(placed.affinity_name.as_deref(), *group, "{case}");
    }
}

#[test]
fn the_reason_that_says_most_is_kept() {
    let placed = place_in_groups(&["a"], "", None);
    assert_eq!(
        why(&placed, "a"),
        "Taint: it has the taint k:NoSchedule, which the placement does not tolerate"
    );
    assert_eq!(why(&placed, "b"), "", "it was chosen");
    let later = "ClusterAffinity: it is in the group \"three\", and one before that fits";
    assert_eq!(why(&placed, "c"), later);
    let nowhere = place_in_groups(&["a", "b", "c"], "", None);
    assert!(
        nowhere
            .rejected
            .iter()
            .all(|rejection| rejection.reason == RejectionReason::Taint)
    );
    // The condition speaks of the first group.
    assert!(
        told(&nowhere).contains("2 cluster(s) did not match"),
        "{}",
        told(&nowhere)
    );
}

/// What is said of a cluster, and what would help.
fn advice<'a>(placed: &'a Placed, cluster: &str) -> (&'a str, &'static str) {
    let rejection = placed.rejected.iter().find(|one| one.cluster == cluster).unwrap();
    (&rejection.message, rejection.help)
}

#[test]
fn clusters_of_groups_that_are_not_gone_back_to() {
    // It does not matter whether the group in use fits.
    for tainted in [&["b", "c"][..], &["b"]] {
        let placed = place_in_groups(tainted, "two", None);
        let (message, help) = advice(&placed, "a");
        assert_eq!(
            message,
            "it is in the group \"one\", which comes before the one in use"
        );
        assert_eq!(help, "ask for a rebalance with a WorkloadRebalancer");
    }
    let placed = place_in_groups(&["a", "c"], "three", None);
    let (message, help) = advice(&placed, "a");
    assert_eq!(
        message,
        "it is in the group \"one\", which comes before the one in use, and it has the taint k:NoSchedule, \
         which the placement does not tolerate"
    );
    assert_eq!(
        help,
        "mend that, and ask for a rebalance with a WorkloadRebalancer"
    );
}

#[test]
fn clusters_of_no_group_are_told_all_groups() {
    let none = json!({ "affinityName": "one", "clusterNames": ["x"] });
    let also = json!({ "affinityName": "two", "clusterNames": ["y"] });
    let without = json!({ "affinityName": "three", "exclude": ["a"], "clusterNames": ["a"] });
    let clusters = plain(&["a", "b"]);
    let placement = json!({ "clusterAffinities": [none, also, without] });
    let nowhere = spec(json!({ "replicas": 1, "placement": placement }));
    let placed = place(&input(&nowhere, &clusters));
    let (message, help) = advice(&placed, "a");
    assert_eq!(
        message,
        "no group of the placement includes it (\"one\", \"two\": the cluster is not one of those that it names, \
         and \"three\": it excludes the cluster by name)"
    );
    assert_eq!(help, "add it to clusterNames");
    let (message, _) = advice(&placed, "b");
    assert_eq!(
        message,
        "no group of the placement includes it (\"one\", \"two\", \"three\": the cluster is not one of those that it names)"
    );
    // Whom the groups name, and nobody joined.
    for absent in ["x", "y"] {
        let (message, help) = advice(&placed, absent);
        assert_eq!(
            message,
            "the placement names it, and there is no cluster of that name"
        );
        assert_eq!(help, "join it, or correct the name");
    }
    let text = explain(&placed).unwrap();
    assert!(
        text.contains("(x, y: the placement names it, and there is no cluster of that name - join it, or correct the name; "),
        "{text}"
    );
}

#[test]
fn a_cluster_that_is_not_there_keeps_nobody_from_the_others() {
    let clusters = plain(&["a", "b"]);
    let placement = json!({ "clusterAffinity": { "clusterNames": ["a", "c"] } });
    let partly = spec(json!({ "replicas": 1, "placement": placement }));
    let placed = place(&input(&partly, &clusters));
    assert_eq!(super::told(&placed), "a:1");
    let told: Vec<_> = placed
        .rejected
        .iter()
        .map(|one| (&*one.cluster, one.reason))
        .collect();
    assert_eq!(
        told,
        [
            ("b", RejectionReason::ClusterAffinity),
            ("c", RejectionReason::Absent)
        ]
    );
}

#[test]
fn a_group_includes_what_it_overflows_to() {
    let overflow = json!([{ "affinityName": "more", "clusterNames": ["a", "b"] }]);
    let group = json!({ "affinityName": "one", "clusterNames": ["c"], "overflowAffinities": overflow });
    let limit = json!([{ "spreadByField": "cluster", "maxGroups": 2 }]);
    let clusters = plain(&["a", "b", "c", "d"]);
    let all = spec(json!({ "replicas": 1, "placement": { "clusterAffinities": [group] } }));
    assert_eq!(told(&place(&input(&all, &clusters))), "a:1 b:1 c:1");
    // The group itself comes first, also before what has the template already.
    let some = spec(
        json!({ "replicas": 1, "clusters": [{ "name": "a" }, { "name": "b" }],
        "placement": { "clusterAffinities": [group], "spreadConstraints": limit } }),
    );
    assert_eq!(told(&place(&input(&some, &clusters))), "a:1 c:1");
}
