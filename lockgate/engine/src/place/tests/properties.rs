//! What holds for every fleet and every placement.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn clusters() -> impl Strategy<Value = Vec<Arc<Cluster>>> {
    let kind = (any::<bool>(), 0..8_u8, any::<bool>(), 0..12_i64, 0..3_u8);
    prop::collection::vec(kind, NAMES.len()).prop_map(|kinds| {
        let names: Vec<&str> = NAMES
            .iter()
            .zip(&kinds)
            .filter(|(_, kind)| kind.0)
            .map(|(name, _)| *name)
            .collect();
        fleet(&names, |name, cluster| {
            let index = NAMES.iter().position(|other| *other == name).unwrap();
            let (_, fault, prod, room, place) = kinds[index];
            let summary = json!({ "allocatable": { "pods": room, "cpu": "6" } });
            cluster.status.rest.insert("resourceSummary".into(), summary);
            cluster.spec.region = format!("r{}", place % 2);
            cluster.spec.zones = (0..=place % 2).map(|zone| format!("z{}", place + zone)).collect();
            let env = if prod { "prod" } else { "test" };
            cluster.metadata.labels = [("env".to_owned(), env.to_owned())].into();
            match fault {
                0 => cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into()),
                1 => {
                    let taints = json!([{ "key": "k", "effect": "NoSchedule" }]);
                    cluster.spec.taints = serde_json::from_value(taints).unwrap();
                }
                2 => cluster.status.api_enablements.clear(),
                3 => cluster.spec.region.clear(),
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
    let field = prop::sample::select(vec!["", "cluster", "cluster", "zone", "region", "provider"]);
    let constraint = (field, prop::option::of(-1..4_i64), prop::option::of(-1..4_i64))
        .prop_map(|(field, min, max)| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max }));
    (
        prop::option::of(affinity()),
        groups,
        prop::collection::vec(constraint, 0..4),
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
    #![proptest_config(crate::properties::cases(1000))]

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
        // Every limit of the spread holds. What is divided by room may be given to fewer clusters than were chosen, and
        // never to more.
        if let Verdict::Clusters(targets) = &placed.verdict
            && !divide::ignores_spread(placement)
        {
            let mut seen = std::collections::BTreeSet::new();
            for constraint in &placement.spread_constraints {
                let field = constraint.spread_by_field.as_str();
                let field = if field.is_empty() { "cluster" } else { field };
                // Of two by one field the first counts; the schema allows one.
                if !seen.insert(field) {
                    continue;
                }
                let chosen = targets.iter().filter_map(|t| clusters.iter().find(|c| c.metadata.name == t.name));
                let groups: std::collections::BTreeSet<String> = chosen
                    .flat_map(|cluster| match field {
                        "cluster" => vec![cluster.metadata.name.clone()],
                        "zone" => cluster.spec.zones.clone(),
                        "region" => vec![cluster.spec.region.clone()],
                        _ => vec![cluster.spec.provider.clone()],
                    })
                    .collect();
                // Few replicas do not go to all clusters that were chosen, and none stay where they were.
                let few = workload && divide::is_divided(placement) && spec.replicas < clusters.len() as i64;
                if !few && !divide::is_dynamic(&spec) {
                    prop_assert!(groups.len() as i64 >= constraint.min_groups.unwrap_or(0));
                }
                let max = constraint.max_groups.filter(|max| *max > 0).unwrap_or(i64::MAX);
                prop_assert!(groups.len() as i64 <= max);
            }
        }
        // The order in which anything is written down does not matter.
        let mut turned = spec.clone();
        turned.clusters.reverse();
        if let Some(placement) = &mut turned.placement {
            let fields: std::collections::BTreeSet<&str> = placement
                .spread_constraints
                .iter()
                .map(|c| if c.spread_by_field.is_empty() { "cluster" } else { &c.spread_by_field })
                .collect();
            if fields.len() == placement.spread_constraints.len() {
                placement.spread_constraints.reverse();
            }
            for affinity in placement.cluster_affinity.iter_mut() {
                affinity.cluster_names.reverse();
                affinity.exclude_clusters.reverse();
            }
        }
        let other = place(&PlaceInput { observed_affinity: &observed, ..input(&turned, &clusters) });
        if let (Verdict::Clusters(_), _) | (_, Verdict::Clusters(_)) = (&placed.verdict, &other.verdict) {
            prop_assert_eq!(&other.verdict, &placed.verdict);
        }
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
                verdict => prop_assert_eq!(verdict, placed.verdict.clone()),
            }
            // What clusters have room for moves nothing that is placed, however it is given out.
            let emptied: Vec<Arc<Cluster>> = clusters
                .iter()
                .map(|cluster| {
                    let mut cluster = (**cluster).clone();
                    cluster.status.rest.clear();
                    Arc::new(cluster)
                })
                .collect();
            let later = place(&PlaceInput {
                applied_placement: Some(placement),
                observed_affinity: placed.affinity_name.as_deref().unwrap_or_default(),
                ..input(&settled, &emptied)
            });
            match later.verdict {
                Verdict::Unchanged => {}
                verdict => prop_assert_eq!(verdict, placed.verdict.clone()),
            }
            // Nor does anything that happens to the fleet and is no trigger: divided replicas stay where they are while
            // their clusters are there.
            if workload && divide::is_divided(placement) && spec.replicas > 0 {
                let others: Vec<Arc<Cluster>> = clusters
                    .iter()
                    .map(|cluster| {
                        let mut cluster = (**cluster).clone();
                        cluster.metadata.labels.clear();
                        cluster.spec.region = "elsewhere".into();
                        cluster.spec.taints = vec![Default::default()];
                        cluster.status.rest.clear();
                        Arc::new(cluster)
                    })
                    .collect();
                let later = place(&PlaceInput {
                    applied_placement: Some(placement),
                    observed_affinity: placed.affinity_name.as_deref().unwrap_or_default(),
                    ..input(&settled, &others)
                });
                prop_assert_eq!(later.verdict, Verdict::Unchanged);
            }
        }
    }
}
