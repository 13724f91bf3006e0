//! Workloads that go together, and apart.

use std::collections::BTreeSet;

use lockgate_api::binding::WorkloadAffinityGroups;

use super::*;

/// A workload's groups, and where it is.
type Other<'a> = (WorkloadAffinityGroups, &'a [&'a str]);

/// A case: the workload's own groups, the others, where it is, and where it goes.
type Row<'a> = (
    &'a str,
    &'a WorkloadAffinityGroups,
    &'a [Other<'a>],
    &'a [&'a str],
    &'a str,
);

fn groups(together: &str, apart: &str) -> WorkloadAffinityGroups {
    WorkloadAffinityGroups {
        affinity_group: together.to_owned(),
        anti_affinity_group: apart.to_owned(),
    }
}

/// Where a workload of these groups goes that is on `present`, of one, two and three.
fn goes(own: &WorkloadAffinityGroups, others: &[Other<'_>], present: &[&str]) -> Placed {
    let others: Vec<Neighbour> = others
        .iter()
        .map(|(groups, clusters)| Neighbour {
            groups: groups.clone(),
            clusters: clusters.iter().map(|&name| name.to_owned()).collect(),
            leaving: BTreeSet::new(),
        })
        .collect();
    let neighbours = Neighbours::among(own, &others);
    let present: Vec<Value> = present.iter().map(|name| json!({"name": name})).collect();
    let spec = spec(json!({"placement": {}, "clusters": present}));
    place(&PlaceInput {
        neighbours: Some(&neighbours),
        ..input(&spec, &plain(&["one", "three", "two"]))
    })
}

#[test]
fn together_and_apart() {
    let it = groups("app=it", "");
    let away = groups("", "app=it");
    let table: [Row<'_>; 8] = [
        ("the first goes anywhere", &it, &[], &[], "one:0 three:0 two:0"),
        (
            "nobody is anywhere yet",
            &it,
            &[(it.clone(), &[])],
            &[],
            "one:0 three:0 two:0",
        ),
        (
            "the next where one is",
            &it,
            &[(it.clone(), &["two"])],
            &[],
            "two:0",
        ),
        (
            "or another",
            &it,
            &[(it.clone(), &["two"]), (it.clone(), &["one"])],
            &[],
            "one:0 two:0",
        ),
        (
            "others do not matter",
            &it,
            &[(groups("app=x", ""), &["two"])],
            &[],
            "one:0 three:0 two:0",
        ),
        ("apart", &away, &[(away.clone(), &["two"])], &[], "one:0 three:0"),
        (
            "the two kinds of groups are different",
            &away,
            &[(it.clone(), &["two"])],
            &[],
            "one:0 three:0 two:0",
        ),
        (
            "where it is it stays",
            &away,
            &[(away.clone(), &["two", "one"])],
            &["two"],
            "three:0 two:0",
        ),
    ];
    for (case, own, others, present, expected) in table {
        assert_eq!(told(&goes(own, others, present)), expected, "{case}");
    }
}

#[test]
fn who_is_left_out_is_told_why() {
    let it = groups("app=it", "app=it");
    let placed = goes(&it, &[(it.clone(), &["two"])], &[]);
    assert_eq!(
        told(&placed),
        "0/3 clusters are available: 1 cluster(s) had a workload of the anti-affinity group, 2 cluster(s) did not have \
         a workload of the affinity group."
    );
    assert!(
        why(&placed, "one").contains("goes together with (app=it)"),
        "{placed:?}"
    );
    assert!(
        why(&placed, "two").contains("stays apart from (app=it)"),
        "{placed:?}"
    );
}

#[test]
fn groups_follow_from_labels() {
    let placement: Placement = serde_json::from_value(json!({"workloadAffinity": {
        "affinity": {"groupByLabelKey": "app"}, "antiAffinity": {"groupByLabelKey": "tier"}}}))
    .unwrap();
    let of = |labels: Value| affinity_groups(&placement, &json!({"metadata": {"labels": labels}}));
    assert_eq!(
        of(json!({"app": "a", "tier": "b"})),
        Some(groups("app=a", "tier=b"))
    );
    assert_eq!(of(json!({"tier": "b"})), Some(groups("", "tier=b")));
    assert_eq!(of(json!({"other": "b"})), None);
    assert_eq!(affinity_groups(&Placement::default(), &json!({})), None);
}

#[test]
fn a_group_leaves_what_it_must_leave() {
    let it = groups("app=it", "");
    let there = Neighbour {
        groups: it.clone(),
        clusters: BTreeSet::from(["one".to_owned()]),
        leaving: BTreeSet::new(),
    };
    let neighbours = Neighbours::among(&it, [&there]);
    let placed = |spec: Value, clusters: &[Arc<Cluster>]| {
        let spec = self::spec(spec);
        told(&place(&PlaceInput {
            neighbours: Some(&neighbours),
            ..input(&spec, clusters)
        }))
    };
    let fleet = plain(&["one", "two"]);
    assert_eq!(placed(json!({"placement": {}}), &fleet), "one:0");
    let leaving = json!({"placement": {}, "gracefulEvictionTasks": [{"fromCluster": "one"}]});
    assert_eq!(placed(leaving, &fleet), "two:0", "it must leave one");
    assert_eq!(
        placed(json!({"placement": {}}), &plain(&["two"])),
        "two:0",
        "one is gone"
    );
    let apart = groups("", "app=it");
    let leaves = Neighbour {
        groups: apart.clone(),
        clusters: BTreeSet::from(["one".to_owned()]),
        leaving: BTreeSet::from(["two".to_owned()]),
    };
    let neighbours = Neighbours::among(&apart, [&leaves]);
    let spec = self::spec(json!({"placement": {}}));
    let placed = place(&PlaceInput {
        neighbours: Some(&neighbours),
        ..input(&spec, &plain(&["one", "three", "two"]))
    });
    assert_eq!(
        told(&placed),
        "three:0",
        "what still runs where it is left is there"
    );
}
