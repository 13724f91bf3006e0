//! What holds for every fleet and every placement.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn clusters() -> impl Strategy<Value = Vec<Arc<Cluster>>> {
    prop::collection::vec((any::<bool>(), 0..8_u8, any::<bool>()), NAMES.len()).prop_map(|kinds| {
        let names: Vec<&str> = NAMES
            .iter()
            .zip(&kinds)
            .filter(|(_, kind)| kind.0)
            .map(|(name, _)| *name)
            .collect();
        fleet(&names, |name, cluster| {
            let index = NAMES.iter().position(|other| *other == name).unwrap();
            let (_, fault, prod) = kinds[index];
            let env = if prod { "prod" } else { "test" };
            cluster.metadata.labels = [("env".to_owned(), env.to_owned())].into();
            match fault {
                0 => cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into()),
                1 => {
                    let taints = json!([{ "key": "k", "effect": "NoSchedule" }]);
                    cluster.spec.taints = serde_json::from_value(taints).unwrap();
                }
                2 => cluster.status.api_enablements.clear(),
                3 => cluster.spec.region = "r".into(),
                _ => {}
            }
        })
    })
}

fn affinity() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({ "labelSelector": { "matchLabels": { "env": "prod" } } })),
        Just(json!({ "labelSelector": { "matchExpressions": [{ "key": "env", "operator": "Near" }] } })),
        prop::sample::subsequence(NAMES.to_vec(), 0..4).prop_map(|names| json!({ "clusterNames": names })),
        prop::sample::subsequence(NAMES.to_vec(), 0..4).prop_map(|names| json!({ "exclude": names })),
    ]
}

fn scheduling() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["", "Duplicated", "Divided"]);
    let preference = prop::sample::select(vec!["", "Weighted", "Weighted", "Aggregated"]);
    let dynamic = prop::sample::select(vec!["", "", "", "AvailableReplicas"]);
    let rule = (affinity(), -1..5_i64)
        .prop_map(|(target, weight)| json!({ "targetCluster": target, "weight": weight }));
    let weights = prop::option::of((prop::collection::vec(rule, 0..4), dynamic));
    (kind, preference, weights).prop_map(|(kind, preference, weights)| {
        let weights = weights.map(|(list, dynamic)| json!({ "staticWeightList": list, "dynamicWeight": dynamic }));
        json!({ "replicaSchedulingType": kind, "replicaDivisionPreference": preference, "weightPreference": weights })
    })
}

fn placement() -> impl Strategy<Value = Value> {
    let groups = prop::collection::vec(affinity(), 0..3).prop_map(|groups| {
        let named = groups.into_iter().enumerate().map(|(index, mut group)| {
            group["affinityName"] = json!(format!("g{index}"));
            group
        });
        named.collect::<Vec<Value>>()
    });
    let field = prop::sample::select(vec!["", "cluster", "cluster", "zone", "region"]);
    let constraint = (field, prop::option::of(-1..4_i64), prop::option::of(-1..4_i64))
        .prop_map(|(field, min, max)| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max }));
    (
        prop::option::of(affinity()),
        groups,
        prop::collection::vec(constraint, 0..2),
        prop::option::of(scheduling()),
    )
        .prop_map(|(affinity, groups, spread, scheduling)| {
            json!({ "clusterAffinity": affinity, "clusterAffinities": groups, "spreadConstraints": spread,
                "replicaScheduling": scheduling })
        })
}

fn binding() -> impl Strategy<Value = BindingSpec> {
    let target = (prop::sample::subsequence(NAMES.to_vec(), 0..4), 0..4_i64).prop_map(|(names, replicas)| {
        let target = |name| json!({ "name": name, "replicas": replicas });
        names.into_iter().map(target).collect::<Vec<Value>>()
    });
    let requirements = prop::option::of(Just(json!({ "resourceRequest": { "cpu": "1" } })));
    (placement(), -1..12_i64, requirements, target).prop_map(
        |(placement, replicas, requirements, clusters)| {
            spec(
                json!({ "placement": placement, "replicas": replicas, "replicaRequirements": requirements,
            "clusters": clusters }),
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_decided(spec in binding(), clusters in clusters(), observed in "|g0|g1|g9") {
        let placed = place(&PlaceInput { observed_affinity: &observed, ..input(&spec, &clusters) });
        let targets = match &placed.verdict {
            Verdict::Clusters(targets) => targets.clone(),
            _ => Vec::new(),
        };
        // Every cluster is either chosen or left out for a reason, unless placing failed after it was found to fit.
        let left_out = |name: &String| placed.rejected.iter().any(|rejection| rejection.cluster == *name);
        if !matches!(placed.verdict, Verdict::Unschedulable { .. }) {
            let names = clusters.iter().map(|cluster| &cluster.metadata.name);
            let kept: Vec<&String> = names.filter(|name| !left_out(name)).collect();
            let chosen: Vec<&String> = targets.iter().map(|target| &target.name).collect();
            prop_assert_eq!(kept, chosen);
        }
        prop_assert!(placed.rejected.iter().all(|rejection| !rejection.message.is_empty()));
        prop_assert!(placed.rejected.is_sorted_by(|a, b| a.cluster < b.cluster));
        // Nothing goes to a cluster that is going.
        let going = |name: &str| clusters.iter().any(|c| c.metadata.name == name && c.metadata.deleting());
        prop_assert!(targets.iter().all(|target| !going(&target.name)));
        // Divided replicas add up.
        let placement = spec.placement.as_ref().unwrap();
        let workload = divide::is_workload(&spec);
        if let Verdict::Clusters(targets) = &placed.verdict {
            let sum = targets.iter().map(|target| target.replicas).sum::<i64>();
            if workload && divide::is_divided(placement) {
                prop_assert_eq!(sum, spec.replicas.max(0));
            } else {
                let each = if workload { spec.replicas } else { 0 };
                prop_assert!(!targets.is_empty() && targets.iter().all(|target| target.replicas == each));
            }
        }
        prop_assert_eq!(
            placed.affinity_name.is_some(),
            matches!(placed.verdict, Verdict::Clusters(_)) && !placement.cluster_affinities.is_empty()
        );
        // Placing the result again changes nothing.
        if let Verdict::Clusters(targets) = &placed.verdict {
            let mut settled = spec.clone();
            settled.clusters = targets.clone();
            let again = place(&PlaceInput {
                applied_placement: Some(placement),
                observed_affinity: placed.affinity_name.as_deref().unwrap_or_default(),
                ..input(&settled, &clusters)
            });
            match again.verdict {
                Verdict::Unchanged => {}
                verdict => prop_assert_eq!(verdict, placed.verdict),
            }
        }
    }
}
