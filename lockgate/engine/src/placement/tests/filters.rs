//! Predicates, taints and sets.

use lockgate_api::ocm::CLUSTER_SET;

use super::super::sets::choose;
use super::super::{Membership, Verdict};
use super::*;

fn selector(part: &str, value: Value) -> Value {
    json!({"predicates": [{"requiredClusterSelector": {part: value}}]})
}

fn cel(expression: &str) -> Value {
    selector("celSelector", json!({"celExpressions": [expression]}))
}

fn mixed() -> World {
    let claim =
        |name: &str, value: &str| json!({"status": {"clusterClaims": [{"name": name, "value": value}]}});
    let mut gold = json!({"metadata": {"labels": {"tier": "gold"}}});
    gold["status"] = claim("region", "eu")["status"].clone();
    World::of(vec![
        cluster("c1", gold),
        cluster("c2", json!({"metadata": {"labels": {"tier": "silver"}}})),
        cluster("c3", claim("region", "us")),
    ])
}

#[test]
fn predicates_are_ored_and_their_parts_are_anded() {
    let world = mixed();
    let labels =
        |tier: &str| json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": tier}}}});
    let claims = json!({"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]});
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &["c1", "c2", "c3"]),
        (
            json!({"predicates": [{"requiredClusterSelector": {}}]}),
            &["c1", "c2", "c3"],
        ),
        (json!({"predicates": [labels("gold")]}), &["c1"]),
        (
            json!({"predicates": [labels("gold"), labels("silver")]}),
            &["c1", "c2"],
        ),
        (selector("claimSelector", claims.clone()), &["c1"]),
        (
            json!({"predicates": [{"requiredClusterSelector": {
                "labelSelector": {"matchLabels": {"tier": "silver"}}, "claimSelector": claims}}]}),
            &[],
        ),
        (
            selector(
                "labelSelector",
                json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
            ),
            &["c3"],
        ),
        (cel("managedCluster.metadata.labels['tier'] == 'gold'"), &["c1"]),
        (
            cel("managedCluster.status.clusterClaims.exists(c, c.name == 'region' && c.value == 'us')"),
            &["c3"],
        ),
        (cel("managedCluster.metadata.name in ['c1', 'c3']"), &["c1", "c3"]),
        (
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [
                "managedCluster.metadata.name != 'c3'", "managedCluster.spec.hubAcceptsClient"]}}}]}),
            &["c1", "c2"],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(world.selects(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn expressions_see_versions_quantities_and_scores() {
    let mut world = World::of(vec![
        cluster(
            "c1",
            json!({"status": {"version": {"kubernetes": "v1.31.0"}, "allocatable": {"cpu": "8"}}}),
        ),
        cluster(
            "c2",
            json!({"status": {"version": {"kubernetes": "v1.29.0"}, "allocatable": {"cpu": "2"}}}),
        ),
    ]);
    world.said = Said(vec![("c1", "usage", "cpu", 40), ("c2", "usage", "cpu", -3)]);
    let cases = [
        (
            "managedCluster.status.version.kubernetes.matches('^v1[.]3[0-9][.]')",
            "c1",
        ),
        (
            "quantity(managedCluster.status.allocatable['cpu']).isLessThan(quantity('4'))",
            "c2",
        ),
        (
            "managedCluster.scores('usage').filter(s, s.name == 'cpu').all(s, s.value > 0)",
            "c1",
        ),
        (
            "managedCluster.scores(\"usage\").exists(s, s.value < 0) && managedCluster.scores('none').size() == 0",
            "c2",
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(world.selects(cel(expression)), [expected], "{expression}");
    }
}

#[test]
fn what_cannot_be_read_is_told_and_decides_nothing() {
    let world = mixed();
    let prioritizer = |value: Value| json!({"prioritizerPolicy": {"configurations": [value]}});
    let cases = [
        (
            selector("labelSelector", json!({"matchLabels": {"tier": "a b"}})),
            "Predicate:predicates[0].requiredClusterSelector.labelSelector: ",
        ),
        (
            selector(
                "claimSelector",
                json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            ),
            "Predicate:predicates[0].requiredClusterSelector.claimSelector: ",
        ),
        (
            cel("managedCluster.metadata.name ="),
            "Predicate:predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: ",
        ),
        (cel("cluster.metadata.name == 'a'"), "there is no \"cluster\""),
        (cel("managedCluster.metadata.name"), "is neither true nor false"),
        (
            cel("managedCluster.scores(managedCluster.metadata.name).size() > 0"),
            "in quotes",
        ),
        (
            cel(
                "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, \
                 [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))",
            ),
            "costs too much",
        ),
        (
            json!({"prioritizerPolicy": {"mode": "Sometimes"}}),
            "Prioritizer:the mode \"Sometimes\" is neither Additive nor Exact",
        ),
        (
            prioritizer(json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Random"}})),
            "Prioritizer:prioritizerPolicy.configurations[0]: there is no prioritizer \"Random\"",
        ),
        (
            prioritizer(json!({"weight": 2})),
            "configurations[0]: scoreCoordinate is missing",
        ),
        (
            prioritizer(json!({"scoreCoordinate": {"type": "AddOn"}})),
            "configurations[0]: addOn is missing",
        ),
        (
            json!({"tolerations": [{"operator": "Equal"}]}),
            "TaintToleration:If the key is empty, operator must be Exists.",
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
            "TaintToleration:If the operator is Exists, the value should be empty.",
        ),
        (
            json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "3"}}}),
            "DecisionStrategy:clustersPerDecisionGroup: \"3\" is a text",
        ),
        (
            json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [{"groupName": "gg",
                "groupClusterSelector": {"labelSelector": {"matchLabels": {"a": "b c"}}}}]}}}),
            "DecisionStrategy:the selector of the decision group \"gg\"",
        ),
    ];
    for (spec, expected) in cases {
        let kept = world.keeps(spec.clone());
        assert!(
            kept.contains(expected),
            "{spec}\n  wanted {expected}\n  found {kept}"
        );
    }
}

/// A cluster that lacks what an expression reads is not selected, and the placement is read all the same.
#[test]
fn an_expression_that_fails_for_a_cluster_is_about_that_cluster() {
    let world = mixed();
    world
        .with(
            cel("managedCluster.metadata.labels['tier'] == 'gold'"),
            |input, outcome| {
                let Outcome::Decided(decided) = outcome else {
                    panic!("{outcome:?}")
                };
                assert_eq!(decided.verdicts[2].1, Verdict::Predicates);
                let why = input.rules.mismatch(&world.clusters[2], &world.said);
                assert!(why.contains("cannot be told: no such key: tier"), "{why}");
            },
        )
        .unwrap();
}

fn tainted(effect: &str, key: &str) -> World {
    let taint = json!({"key": key, "value": "v", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"});
    World::of(vec![
        cluster("c1", json!({"spec": {"taints": [taint]}})),
        cluster("c2", json!({})),
    ])
}

#[test]
fn taints_are_tolerated_or_keep_clusters_out() {
    const GONE: &str = "cluster.open-cluster-management.io/unreachable";
    let only = |value: Value| json!({"tolerations": [value]});
    // Effect, key, whether it is decided already, tolerations, whether it is selected. The taint is 600 seconds old.
    let cases = [
        ("NoSelect", "k", false, json!({}), false),
        ("NoSelect", "k", true, json!({}), false),
        ("PreferNoSelect", "k", false, json!({}), true),
        ("NoSelectIfNew", "k", false, json!({}), false),
        ("NoSelectIfNew", "k", true, json!({}), true),
        ("NoSelect", "k", false, only(json!({"operator": "Exists"})), true),
        (
            "NoSelect",
            "k",
            false,
            only(json!({"key": "k", "operator": "Exists"})),
            true,
        ),
        (
            "NoSelect",
            "k",
            false,
            only(json!({"key": "k", "value": "v"})),
            true,
        ),
        (
            "NoSelect",
            "k",
            false,
            only(json!({"key": "k", "operator": "Equal", "value": "w"})),
            false,
        ),
        (
            "NoSelect",
            "k",
            false,
            only(json!({"key": "other", "value": "v"})),
            false,
        ),
        (
            "NoSelect",
            "k",
            false,
            only(json!({"key": "k", "value": "v", "effect": "NoSelectIfNew"})),
            false,
        ),
        (
            "NoSelect",
            "k",
            true,
            only(json!({"operator": "Exists", "tolerationSeconds": 601})),
            true,
        ),
        // The end is not in it.
        (
            "NoSelect",
            "k",
            true,
            only(json!({"operator": "Exists", "tolerationSeconds": 600})),
            false,
        ),
        (
            "NoSelect",
            "k",
            true,
            json!({"tolerations": [{"operator": "Exists", "tolerationSeconds": 5}, {"key": "k", "operator": "Exists"}]}),
            true,
        ),
        // A cluster that only stopped answering stays, and is not taken anew.
        ("NoSelect", GONE, false, json!({}), false),
        ("NoSelect", GONE, true, json!({}), true),
        (
            "NoSelect",
            GONE,
            true,
            only(json!({"operator": "Exists", "tolerationSeconds": 600})),
            false,
        ),
        (
            "NoSelect",
            GONE,
            true,
            only(json!({"operator": "Exists", "tolerationSeconds": 700})),
            true,
        ),
        (
            "NoSelect",
            GONE,
            false,
            only(json!({"operator": "Exists", "tolerationSeconds": 700})),
            true,
        ),
    ];
    for (effect, key, decided, spec, expected) in cases {
        let mut world = tainted(effect, key);
        if decided {
            world.decided.push("c1");
        }
        let selected = world.selects(spec.clone()).contains(&"c1".to_owned());
        assert_eq!(selected, expected, "{effect} {key} {decided} {spec}");
    }
}

#[test]
fn a_toleration_that_runs_out_says_when() {
    let spec = json!({"tolerations": [{"operator": "Exists", "tolerationSeconds": 700}]});
    let world = tainted("NoSelect", "k");
    let recheck = world.decided(spec, |decided| decided.recheck);
    assert_eq!(recheck, Some("2026-01-01T00:11:40Z".parse().unwrap()));
    assert_eq!(world.decided(json!({}), |decided| decided.recheck), None);
}

#[test]
fn those_that_leave_or_have_not_joined_or_are_not_accepted_are_not_selected() {
    let world = World::of(vec![
        cluster("c1", json!({"metadata": {"deletionTimestamp": NOW}})),
        cluster("c2", json!({"status": null})),
        cluster("c3", json!({"spec": {"hubAcceptsClient": false}})),
        cluster("c4", json!({})),
    ]);
    let verdicts = world.decided(json!({}), |decided| {
        let verdicts = decided.verdicts.iter().map(|(_, verdict)| *verdict);
        verdicts.collect::<Vec<Verdict>>()
    });
    let expected = [
        Verdict::Leaving,
        Verdict::NotJoined,
        Verdict::NotAccepted,
        Verdict::Selected,
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn sets_are_those_that_are_bound_and_there_and_wanted() {
    type Sets = &'static [&'static str];
    // What is bound, what is wanted, and what comes of it: sets, and those of which nobody can tell who belongs to them.
    let cases: [(Sets, Sets, Result<Sets, &str>, &str); 16] = [
        (&["a", "b"], &[], Ok(&["a", "b"]), ""),
        (&["a", "b"], &["b"], Ok(&["b"]), ""),
        (
            &["a", "gone"],
            &[],
            Ok(&["a"]),
            "there is no ManagedClusterSet gone",
        ),
        (
            &["a", "bad"],
            &[],
            Ok(&["a"]),
            "the selector cannot be read of ManagedClusterSet bad",
        ),
        (&["a", "gone"], &["a", "c"], Ok(&["a"]), ""),
        (
            &["a", "bad"],
            &["a", "bad"],
            Ok(&["a"]),
            "the selector cannot be read of ManagedClusterSet bad",
        ),
        (&[], &[], Err("bindings"), ""),
        (
            &["gone", "bad"],
            &[],
            Err("bindings"),
            "there is no ManagedClusterSet gone, and the selector cannot be read of ManagedClusterSet bad",
        ),
        (&["a"], &["c"], Err("intersection"), ""),
        (
            &["a", "gone"],
            &["gone"],
            Err("intersection"),
            "there is no ManagedClusterSet gone",
        ),
        // A binding that is deleted takes its set out, whether it is there or not.
        (&["a"], &["gone"], Err("intersection"), ""),
        (&["a"], &["a", "gone"], Ok(&["a"]), ""),
        (&["a"], &["a", "bad"], Ok(&["a"]), ""),
        (&["gone"], &["c"], Err("bindings"), ""),
        (
            &["gone"],
            &["gone", "c"],
            Err("bindings"),
            "there is no ManagedClusterSet gone",
        ),
        (
            &["a", "bad"],
            &["bad"],
            Err("intersection"),
            "the selector cannot be read of ManagedClusterSet bad",
        ),
    ];
    let (fine, bad) = (Membership::Labels(None), Membership::Unreadable("why".to_owned()));
    for (bound, wanted, expected, says) in cases {
        let wanted: Vec<String> = wanted.iter().map(|set| (*set).to_owned()).collect();
        let find = |set: &str| match set {
            "gone" => None,
            "bad" => Some(&bad),
            _ => Some(&fine),
        };
        let choice = choose(bound.iter().copied(), &wanted, find, []);
        let (found, unknown) = match &choice {
            Choice::Sets { sets, unknown } => {
                (Ok(sets.iter().map(String::as_str).collect::<Vec<_>>()), unknown)
            }
            Choice::NoBindings { unknown } => (Err("bindings".to_owned()), unknown),
            Choice::NoIntersection { unknown, .. } => (Err("intersection".to_owned()), unknown),
        };
        assert_eq!(unknown.to_string(), says, "{bound:?} {wanted:?}");
        assert_eq!(choice.keeps_decided(), found.is_ok() && !says.is_empty());
        assert_eq!(
            found,
            expected.map(<[&str]>::to_vec).map_err(str::to_owned),
            "{bound:?} {wanted:?}"
        );
    }
}

#[test]
fn a_misspelt_set_takes_no_cluster_that_is_still_bound() {
    let member = |set: &str| cluster("c", json!({"metadata": {"labels": {CLUSTER_SET: set}}}));
    let [a, b] = ["a", "b"].map(|set| Membership::Exclusive(set.to_owned()));
    let bad = Membership::Unreadable("why".to_owned());
    type Sets = &'static [&'static str];
    // What is bound, what is wanted, the set of the cluster that is decided, and whether it stays for what nobody can tell.
    let cases: [(Sets, Sets, &str, bool); 9] = [
        (&["a", "b"], &["aa"], "a", true),
        (&["a", "b"], &["b", "aa"], "a", true),
        (&["b", "gone"], &["gonne"], "gone", true),
        (&["b", "bad"], &["badd"], "bad", true),
        // The binding is gone, and so is the set.
        (&["a", "b"], &["gone"], "gone", false),
        (&["a", "b"], &["a", "gone"], "gone", false),
        // It is in a set that is named.
        (&["a", "b"], &["a", "gone"], "a", false),
        // The set is there, and not bound.
        (&["b"], &["a"], "a", false),
        (&["b"], &["a"], "b", false),
    ];
    for (bound, wanted, decided, stays) in cases {
        let wanted: Vec<String> = wanted.iter().map(|set| (*set).to_owned()).collect();
        let find = |set: &str| match set {
            "a" => Some(&a),
            "b" => Some(&b),
            "bad" => Some(&bad),
            _ => None,
        };
        let decided = [member(decided)];
        let choice = choose(bound.iter().copied(), &wanted, find, &decided);
        let unknown = match &choice {
            Choice::Sets { unknown, .. }
            | Choice::NoBindings { unknown }
            | Choice::NoIntersection { unknown, .. } => unknown,
        };
        assert_eq!(!unknown.is_empty(), stays, "{bound:?} {wanted:?}: {choice:?}");
    }
}

#[test]
fn members_of_sets() {
    let set = |spec: Value| {
        let set = json!({"metadata": {"name": "prod"}, "spec": {"clusterSelector": spec}});
        Membership::of(&serde_json::from_value(set).unwrap())
    };
    let labelled = |key: &str, value: &str| cluster("c", json!({"metadata": {"labels": {key: value}}}));
    let inside = labelled("cluster.open-cluster-management.io/clusterset", "prod");
    let outside = labelled("cluster.open-cluster-management.io/clusterset", "test");
    let exclusive = set(json!({}));
    assert!(exclusive.includes(&inside) && !exclusive.includes(&outside));
    let all = set(json!({"selectorType": "LabelSelector", "labelSelector": {}}));
    assert!(all.includes(&inside) && all.includes(&outside));
    let none = set(json!({"selectorType": "LabelSelector"}));
    assert!(!none.includes(&inside) && !none.includes(&outside));
    let some =
        set(json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"tier": "gold"}}}));
    assert!(some.includes(&labelled("tier", "gold")) && !some.includes(&inside));
    let unreadable = set(json!({"selectorType": "LabelSelector", "labelSelector": {
        "matchExpressions": [{"key": "tier", "operator": "Like", "values": ["gold"]}]}}));
    assert!(!unreadable.includes(&inside) && unreadable.trouble().is_some_and(|why| why.contains("Like")));
    assert!(
        [&exclusive, &all, &none, &some]
            .iter()
            .all(|set| set.trouble().is_none())
    );
}
