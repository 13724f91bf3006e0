//! What is preferred, how it is grouped, and what is said of it.

use lockgate_api::Condition;
use lockgate_api::ocm::placement::PlacementStatus;
use lockgate_api::ocm::{GROUP_INDEX, GROUP_NAME, PlacementDecision};
use proptest::prelude::*;

use super::super::explain::explain;
use super::super::sets::Unknown;
use super::super::tell;
use super::*;
use crate::properties::cases;

fn weights(mode: &str, configurations: Value) -> Value {
    json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": mode, "configurations": configurations}})
}

fn built_in(name: &str, weight: i32) -> Value {
    json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight})
}

fn scores(world: &World, spec: Value) -> Vec<String> {
    world.decided(spec, |decided| {
        tell::scores(decided)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    })
}

#[test]
fn ties_go_by_name_and_to_those_that_are_decided() {
    let mut world = World::of(fleet(12));
    let two = json!({"numberOfClusters": 2});
    assert_eq!(world.selects(two.clone()), ["c1", "c10"]);
    world.decided = vec!["c7", "c9"];
    assert_eq!(world.selects(two.clone()), ["c7", "c9"]);
    // One more: those that were there stay.
    assert_eq!(world.selects(json!({"numberOfClusters": 3})), ["c1", "c7", "c9"]);
    assert_eq!(
        world.selects(json!({"numberOfClusters": 0})),
        Vec::<String>::new()
    );
    // Without any prioritizer, too.
    let mut exact = weights("Exact", json!([]));
    exact["numberOfClusters"] = json!(2);
    assert_eq!(world.selects(exact), ["c7", "c9"]);
}

#[test]
fn the_usual_prioritizers_are_steady_and_balance() {
    let mut world = World::of(fleet(4));
    world.decided = vec!["c4"];
    world.used = [("c1", 3), ("c2", 1)].into();
    let usual = json!({"numberOfClusters": 1});
    // c1: 2 * trunc(100 * (0.5 - 1)), c2: 2 * trunc(100 * (0.5 - 1/3)), c3 unused, c4 decided and unused.
    assert_eq!(scores(&world, usual), ["c4:200", "c3:100", "c2:32", "c1:-100"]);
    let additive = weights("Additive", json!([built_in("Balance", 3), built_in("Steady", 0)]));
    assert_eq!(scores(&world, additive), ["c4:300", "c3:300", "c2:96", "c1:-300"]);
    // Below zero the one says nothing, and the other prefers what others use.
    let exact = weights("Exact", json!([built_in("Steady", -2)]));
    assert_eq!(scores(&world, exact), ["c4:0", "c1:0", "c2:0", "c3:0"]);
    let exact = weights("Exact", json!([built_in("Balance", -1)]));
    assert_eq!(scores(&world, exact), ["c4:100", "c1:100", "c2:-32", "c3:-100"]);
}

proptest! {
    #![proptest_config(cases(256))]

    /// Whatever prioritizers weigh: who was decided a moment ago is decided again.
    #[test]
    fn deciding_again_decides_the_same(
        weighs in (-10..=10i32, -10..=10i32, -10..=10i32),
        used in proptest::collection::vec(0..4usize, 6),
        decided in proptest::collection::vec(any::<bool>(), 6),
        number in 0..6usize,
    ) {
        const NAMES: [&str; 6] = ["c1", "c2", "c3", "c4", "c5", "c6"];
        let mut world = World::of(fleet(6));
        world.used = NAMES.into_iter().zip(used).collect();
        world.decided = NAMES.into_iter().zip(decided).filter_map(|(name, is)| is.then_some(name)).collect();
        world.said = Said(vec![("c2", "usage", "cpu", 80), ("c3", "usage", "cpu", -60)]);
        let (balance, steady, add_on) = weighs;
        let cpu = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
        let spec = json!({"numberOfClusters": number, "prioritizerPolicy": {"mode": "Exact", "configurations": [
            built_in("Balance", balance), built_in("Steady", steady), {"scoreCoordinate": cpu, "weight": add_on}]}});
        let first = world.selects(spec.clone());
        world.decided = NAMES.into_iter().filter(|name| first.iter().any(|one| one == name)).collect();
        prop_assert_eq!(world.selects(spec), first);
    }
}

/// Others that come later do not move what is decided, in either mode: two placements that are decided at the same moment would
/// make way for each other, and meet again.
#[test]
fn balance_moves_nothing_that_is_decided() {
    let mut world = World::of(fleet(3));
    world.decided = vec!["c2"];
    world.used = [("c2", 7)].into();
    assert_eq!(world.selects(json!({"numberOfClusters": 1})), ["c2"]);
    let exact = weights("Exact", json!([built_in("Balance", 1)]));
    assert_eq!(world.selects(exact), ["c2"]);
}

/// What an add-on said of a cluster runs out with its silence; that is no reason to leave it.
#[test]
fn a_cluster_that_stopped_answering_keeps_its_place_whatever_its_score() {
    let silent = |key: &str| {
        let taint = json!({"key": format!("cluster.open-cluster-management.io/{key}"), "effect": "NoSelect"});
        cluster("c3", json!({"spec": {"taints": [taint]}}))
    };
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
    let mut spec = weights("Exact", json!([{"scoreCoordinate": coordinate}]));
    for key in ["unreachable", "unavailable"] {
        let mut world = World::of(fleet(2).into_iter().chain([silent(key)]).collect());
        world.said = Said(vec![("c1", "usage", "cpu", 90), ("c2", "usage", "cpu", 80)]);
        assert_eq!(world.selects(spec.clone()), ["c1"], "nobody takes it anew");
        world.decided = vec!["c3"];
        assert_eq!(world.selects(spec.clone()), ["c3"]);
        // One that answers has no such right.
        world.decided = vec!["c2"];
        assert_eq!(world.selects(spec.clone()), ["c1"]);
    }
    // A toleration without an end keeps it, too, and says nothing else.
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    let mut world = World::of(fleet(2).into_iter().chain([silent("unreachable")]).collect());
    world.said = Said(vec![("c1", "usage", "cpu", 90)]);
    assert_eq!(world.selects(spec.clone()), ["c1"]);
    world.decided = vec!["c3"];
    assert_eq!(world.selects(spec), ["c3"]);
}

#[test]
fn scores_that_ran_out_are_told() {
    let world = World::of(fleet(5));
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": ENDED, "scoreName": "cpu"}});
    let spec = weights("Exact", json!([{"scoreCoordinate": coordinate}]));
    let (satisfied, ..) = said(&world, spec.clone());
    assert_eq!(
        satisfied,
        "True AllDecisionsScheduled: All cluster decisions scheduled; these AddOnPlacementScores ran out and count nothing: \
         ended of c1, ended of c2, ended of c3 and 2 more"
    );
    let words = world.with(spec, |input, outcome| {
        let explained = explain(input, outcome, &world.clusters, &[]);
        explained
            .into_iter()
            .map(|one| one.why)
            .take(2)
            .collect::<Vec<_>>()
    });
    let end = "its AddOnPlacementScore ended ran out at 2026-01-01T00:10:00Z";
    let limit = "others are preferred: 1 were asked for, and the last of them has the score 0";
    assert_eq!(words.unwrap(), [end.to_owned(), format!("{limit}; {end}")]);
}

#[test]
fn clusters_with_more_to_give_are_preferred() {
    let with = |name: &str, cpu: &str, memory: &str| {
        cluster(
            name,
            json!({"status": {"allocatable": {"cpu": cpu, "memory": memory}}}),
        )
    };
    let world = World::of(vec![
        with("c1", "10", "64Gi"),
        with("c2", "500m", "128Gi"),
        with("c3", "6", "96Gi"),
        cluster("c4", json!({})),
    ]);
    let cpu = weights("Exact", json!([built_in("ResourceAllocatableCPU", 1)]));
    // c3: trunc(((6 - 0.5) / 9.5 - 0.5) * 200)
    assert_eq!(scores(&world, cpu), ["c1:100", "c3:15", "c4:0", "c2:-100"]);
    let memory = weights("Exact", json!([built_in("ResourceAllocatableMemory", 2)]));
    assert_eq!(scores(&world, memory), ["c2:200", "c3:0", "c4:0", "c1:-200"]);
    let same = World::of(vec![with("c1", "2", "1Gi"), with("c2", "2", "1Gi")]);
    let cpu = weights("Exact", json!([built_in("ResourceAllocatableCPU", 1)]));
    assert_eq!(scores(&same, cpu), ["c1:100", "c2:100"]);
}

#[test]
fn add_ons_are_heard() {
    let mut world = World::of(fleet(3));
    world.said = Said(vec![
        ("c2", "usage", "cpu", 80),
        ("c3", "usage", "cpu", -5),
        ("c1", "usage", "memory", 90),
    ]);
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
    let spec = weights("Exact", json!([{"scoreCoordinate": coordinate, "weight": 2}]));
    assert_eq!(scores(&world, spec), ["c2:160", "c1:0", "c3:-10"]);
}

#[test]
fn scores_of_many_clusters_are_cut() {
    let world = World::of(fleet(500));
    let text = world.decided(json!({"numberOfClusters": 1}), |decided| {
        tell::scores(decided).unwrap()
    });
    assert!(text.len() <= 1003 && text.ends_with("..."), "{text}");
}

fn said(world: &World, spec: Value) -> (String, String, PlacementStatus) {
    let status = world
        .with(spec, |_, outcome| {
            tell::status(&placement(json!({})), [], &world.choice, outcome, now())
        })
        .unwrap();
    let text = |kind: &str| {
        let condition = Condition::find(&status.conditions, kind).unwrap();
        format!("{} {}: {}", condition.status, condition.reason, condition.message)
    };
    (text("PlacementSatisfied"), text("PlacementMisconfigured"), status)
}

#[test]
fn placements_say_what_became_of_them() {
    let world = |choice: Choice, count: usize| World {
        choice,
        ..World::of(fleet(count))
    };
    let unknown = |missing: &[&str], unreadable: &[&str]| Unknown {
        missing: missing.iter().map(|set| (*set).to_owned()).collect(),
        unreadable: unreadable.iter().map(|set| (*set).to_owned()).collect(),
    };
    let some = |unknown| Choice::Sets {
        sets: ["prod".to_owned(), "test".to_owned()].into(),
        unknown,
    };
    let sets = || some(Unknown::default());
    let nothing = |missing: &[&str]| Choice::NoBindings {
        unknown: unknown(missing, &[]),
    };
    let unbound = |missing: &[&str]| Choice::NoIntersection {
        unknown: unknown(missing, &[]),
        wanted: vec!["prod".to_owned(), "test".to_owned()],
    };
    let nobody =
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}}}}]});
    let cases = [
        (
            world(nothing(&[]), 0),
            json!({}),
            "False NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace",
        ),
        (
            world(nothing(&["gone"]), 0),
            json!({}),
            "False NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace: there \
             is no ManagedClusterSet gone; the last decisions are kept",
        ),
        (
            world(some(unknown(&["gone"], &["bad"])), 3),
            json!({}),
            "True AllDecisionsScheduled: All cluster decisions scheduled; there is no ManagedClusterSet gone, and the \
             selector cannot be read of ManagedClusterSet bad: clusters that were selected stay until that is mended or \
             the binding is deleted",
        ),
        (
            world(unbound(&[]), 0),
            json!({}),
            "False NoIntersection: None of ManagedClusterSets [prod,test] is bound to placement namespace",
        ),
        (
            world(sets(), 0),
            json!({}),
            "False AllManagedClusterSetsEmpty: All ManagedClusterSets [prod,test] have no member ManagedCluster",
        ),
        (
            world(sets(), 3),
            nobody,
            "False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate",
        ),
        (
            world(sets(), 3),
            json!({}),
            "True AllDecisionsScheduled: All cluster decisions scheduled",
        ),
        (
            world(sets(), 3),
            json!({"numberOfClusters": 3}),
            "True AllDecisionsScheduled: All cluster decisions scheduled",
        ),
        (
            world(sets(), 3),
            json!({"numberOfClusters": 5}),
            "False NotAllDecisionsScheduled: 2 cluster decisions unscheduled",
        ),
    ];
    // The first that is so is told, also of a placement that cannot be read.
    let kept = Outcome::Kept(Kept::Misconfigured(Misconfigured::new("Predicate", "no")));
    for (choice, expected) in [
        (nothing(&[]), "NoManagedClusterSetBindings"),
        (unbound(&[]), "NoIntersection"),
        (sets(), "NotAllDecisionsScheduled"),
    ] {
        let status = tell::status(&placement(json!({})), [], &choice, &kept, now());
        let satisfied = Condition::find(&status.conditions, "PlacementSatisfied").unwrap();
        assert_eq!(satisfied.reason, expected);
        let message =
            ": the placement cannot be read, see PlacementMisconfigured; the last decisions are kept";
        assert!(satisfied.message.ends_with(message), "{satisfied:?}");
    }
    // Who is leaving is no member.
    let mut leaving = world(sets(), 0);
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    leaving.clusters.push(cluster("c1", going));
    let (satisfied, ..) = said(&leaving, json!({}));
    assert!(
        satisfied.starts_with("False AllManagedClusterSetsEmpty"),
        "{satisfied}"
    );
    for (world, spec, expected) in cases {
        let (satisfied, misconfigured, _) = said(&world, spec.clone());
        assert_eq!(satisfied, expected, "{spec}");
        assert_eq!(
            misconfigured,
            "False Succeedconfigured: Placement configurations check pass"
        );
    }
}

#[test]
fn the_status_lists_groups_and_their_decisions() {
    let clusters = (1..=230).map(|number| {
        let tier = if number <= 2 { "canary" } else { "rest" };
        cluster(
            &format!("c{number:03}"),
            json!({"metadata": {"labels": {"tier": tier}}}),
        )
    });
    let world = World::of(clusters.collect());
    let spec = json!({"decisionStrategy": {"groupStrategy": {
        "clustersPerDecisionGroup": 150,
        "decisionGroups": [{"groupName": "canary", "groupClusterSelector": {
            "labelSelector": {"matchLabels": {"tier": "canary"}}}}]}}});
    let (.., status) = said(&world, spec);
    assert_eq!(status.number_of_selected_clusters, 230);
    let groups = serde_json::to_value(&status.decision_groups).unwrap();
    assert_eq!(
        groups,
        json!([
            {"decisionGroupIndex": 0, "decisionGroupName": "canary", "clusterCount": 2, "decisions": ["p-decision-1"]},
            {"decisionGroupIndex": 1, "decisionGroupName": "", "clusterCount": 150,
                "decisions": ["p-decision-2", "p-decision-3"]},
            {"decisionGroupIndex": 2, "decisionGroupName": "", "clusterCount": 78, "decisions": ["p-decision-4"]},
        ])
    );
}

/// Nothing but what is said of the mistake changes.
#[test]
fn a_placement_that_cannot_be_read_keeps_its_status() {
    let world = World::of(fleet(3));
    let (.., before) = said(&world, json!({}));
    let bad =
        json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1"]}}}]});
    let mut read = placement(json!({}));
    read.status = Some(before.clone());
    let after = |decisions: &[PlacementDecision]| {
        let status = world.with(bad.clone(), |_, outcome| {
            tell::status(&read, decisions, &world.choice, outcome, now())
        });
        status.unwrap()
    };
    let decision = |clusters: Value| -> PlacementDecision {
        serde_json::from_value(json!({
            "metadata": {"name": "p-decision-1", "labels": {GROUP_INDEX: "0", GROUP_NAME: ""}},
            "status": {"decisions": clusters},
        }))
        .unwrap()
    };
    let all = json!([{"clusterName": "c1"}, {"clusterName": "c2"}, {"clusterName": "c3"}]);
    let waits = |status: &PlacementStatus| {
        let satisfied = Condition::find(&status.conditions, "PlacementSatisfied").unwrap();
        satisfied.message.contains("whoever follows this placement waits")
    };
    // Whoever takes or changes a decision takes it from all that follow it: nobody can make it again.
    assert!(waits(&after(&[])));
    assert!(waits(&after(&[decision(json!([{"clusterName": "c1"}]))])));
    let after = after(&[decision(all)]);
    assert!(!waits(&after));
    assert_eq!(after.number_of_selected_clusters, 3);
    assert_eq!(after.decision_groups, before.decision_groups);
    let misconfigured = Condition::find(&after.conditions, "PlacementMisconfigured").unwrap();
    assert!(misconfigured.is_true() && misconfigured.message.contains("neither true nor false"));
    let satisfied = Condition::find(&after.conditions, "PlacementSatisfied").unwrap();
    assert!(
        !satisfied.is_true() && satisfied.message.contains("kept"),
        "{satisfied:?}"
    );
}

#[test]
fn every_cluster_has_its_reason() {
    let labels = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    let world = World::of(vec![
        cluster("c1", labels("gold")),
        cluster("c2", labels("gold")),
        cluster("c3", labels("silver")),
        cluster(
            "c4",
            json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSelect"}]}}),
        ),
        cluster("c5", json!({"status": null})),
    ]);
    let outside = cluster("c6", json!({}));
    let all: Vec<Candidate> = world
        .clusters
        .iter()
        .chain([&outside])
        .map(|candidate| Candidate::new(candidate.cluster.clone()))
        .collect();
    let spec = json!({"numberOfClusters": 1,
        "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}]});
    // The fleet is larger than the sets.
    let rules = Rules::read(&placement(spec)).unwrap();
    let input = Input {
        rules: &rules,
        choice: &world.choice,
        candidates: all.iter().take(5).collect(),
        is_decided: &|_| false,
        context: Context {
            used: &|_| 0,
            most_used: 0,
            scores: &world.said,
        },
        now: now(),
    };
    let outcome = decide(&input, |place| {
        rules.matches(input.candidates[place], &world.said)
    });
    let explained = explain(&input, &outcome, &all, &[]);
    let words: Vec<String> = explained
        .iter()
        .map(|one| format!("{} {} {:?} {}", one.cluster, one.selected, one.score(), one.why))
        .collect();
    assert_eq!(
        words,
        [
            "c1 true Some(100) ",
            "c2 false Some(100) others are preferred: 1 were asked for, and the last of them has the score 100",
            "c3 false None its labels do not match tier=gold",
            "c4 false None the taint k=v:NoSelect is not tolerated",
            "c5 false None it has not joined: there is no Cluster of its name",
            "c6 false None it is in none of the sets global",
        ]
    );
    assert_eq!(explained[0].group, Some((0, String::new())));
}
