//! Which clusters are chosen where the placement spreads.

mod overflow;

use proptest::prelude::*;

use super::*;

/// Clusters as `name provider region zone,zone room`.
fn world(lines: &[&str]) -> Vec<Arc<Cluster>> {
    let mut lines: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    lines.sort();
    let names: Vec<&str> = lines.iter().map(|parts| parts[0]).collect();
    fleet(&names, |name, cluster| {
        let parts = lines.iter().find(|parts| parts[0] == name).unwrap();
        cluster.spec.provider = parts[1].into();
        cluster.spec.region = parts[2].into();
        cluster.spec.zones = parts[3].split(',').map(str::to_owned).collect();
        let summary = json!({ "allocatable": { "pods": parts[4] } });
        cluster.status.rest.insert("resourceSummary".into(), summary);
    })
}

fn constraint(field: &str, min: i64, max: i64) -> Value {
    json!({ "spreadByField": field, "minGroups": min, "maxGroups": max })
}

fn dynamic() -> Value {
    json!({ "replicaSchedulingType": "Divided", "weightPreference": { "dynamicWeight": "AvailableReplicas" } })
}

/// Places replicas on a world, with these constraints, a strategy, and the clusters where it is.
fn chosen(lines: &[&str], replicas: i64, constraints: &[Value], strategy: &Value, there: &[&str]) -> String {
    let there: Vec<Value> = there
        .iter()
        .map(|name| json!({ "name": name, "replicas": 1 }))
        .collect();
    let spec = spec(json!({ "replicas": replicas, "clusters": there,
        "placement": { "spreadConstraints": constraints, "replicaScheduling": strategy } }));
    let placed = place(&input(&spec, &world(lines)));
    match &placed.verdict {
        Verdict::Clusters(targets) if *strategy == Value::Null => {
            let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            names.join(" ")
        }
        _ => told(&placed),
    }
}

const WORLD: [&str; 7] = [
    "a aws eu eu-1 10",
    "b aws eu eu-1 20",
    "c gcp eu eu-2 30",
    "d aws us us-1 40",
    "e gcp us us-2 50",
    "f gcp ap ap-1 60",
    "g gcp ap ap-1,ap-2 70",
];

#[test]
fn groups() {
    let all = |fields: &[(&str, i64, i64)]| -> Vec<Value> {
        fields
            .iter()
            .map(|(field, min, max)| constraint(field, *min, *max))
            .collect()
    };
    let table: &[(&str, Vec<Value>, &[&str], &str)] = &[
        (
            "one region: the largest",
            all(&[("region", 1, 1), ("cluster", 1, 9)]),
            &[],
            "a b c",
        ),
        (
            "one region, one cluster of it",
            all(&[("region", 1, 1), ("cluster", 1, 1)]),
            &[],
            "a",
        ),
        (
            "one region: where it is",
            all(&[("region", 1, 1), ("cluster", 1, 9)]),
            &["d"],
            "d e",
        ),
        (
            "two regions",
            all(&[("region", 2, 2), ("cluster", 2, 2)]),
            &[],
            "a f",
        ),
        (
            "all regions, one cluster each",
            all(&[("region", 3, 3), ("cluster", 3, 3)]),
            &[],
            "a d f",
        ),
        (
            "no maximum",
            all(&[("region", 3, 0), ("cluster", 1, 0)]),
            &[],
            "a b c d e f g",
        ),
        (
            "a provider",
            all(&[("provider", 1, 1), ("cluster", 1, 9)]),
            &[],
            "c e f g",
        ),
        (
            "both providers",
            all(&[("provider", 2, 2), ("cluster", 2, 2)]),
            &[],
            "a c",
        ),
        (
            "zones",
            all(&[("zone", 3, 3), ("cluster", 3, 3)]),
            &["a", "c", "d"],
            "a c d",
        ),
        // A cluster in two zones counts in both, and is not taken where only one of them is.
        (
            "two zones at once",
            all(&[("zone", 2, 2), ("cluster", 1, 1)]),
            &["g"],
            "g",
        ),
        (
            "a zone of two",
            all(&[("zone", 1, 1), ("cluster", 1, 9)]),
            &["g"],
            "f",
        ),
        (
            "providers and regions",
            all(&[("provider", 1, 1), ("region", 2, 2), ("cluster", 2, 2)]),
            &[],
            "c f",
        ),
        (
            "regions and zones",
            all(&[("region", 1, 1), ("zone", 2, 2), ("cluster", 2, 3)]),
            &[],
            "a b c",
        ),
        (
            "too few regions",
            all(&[("region", 4, 4), ("cluster", 1, 9)]),
            &[],
            "the number of feasible region is less than spreadConstraint.MinGroups: 4 wanted, 3 fit (ap, eu, us)",
        ),
        (
            "more clusters than the regions have",
            all(&[("region", 1, 1), ("cluster", 4, 9)]),
            &[],
            "no regions with enough clusters: region: 1 to 1, cluster: 4 to 9; relax one of the spread constraints",
        ),
        (
            "more regions than clusters",
            all(&[("region", 3, 3), ("cluster", 1, 2)]),
            &[],
            "the spread constraints cannot be met together (region: 3 to 3, cluster: 1 to 2): relax one of them",
        ),
        (
            "more clusters than there are",
            all(&[("cluster", 8, 9)]),
            &[],
            "the number of feasible clusters is less than spreadConstraint.MinGroups: 8 wanted, 7 fit",
        ),
    ];
    for (case, constraints, there, expected) in table {
        assert_eq!(
            chosen(&WORLD, 2, constraints, &Value::Null, there),
            *expected,
            "{case}"
        );
        // The order of constraints does not matter, nor does that of clusters.
        let mut turned = constraints.clone();
        turned.reverse();
        assert_eq!(
            chosen(&WORLD, 2, &turned, &Value::Null, there),
            *expected,
            "{case}, turned"
        );
    }
}

#[test]
fn room_counts_where_replicas_are_shared_by_it() {
    let by_cluster = |min, max| [constraint("cluster", min, max)];
    let regions = [constraint("region", 1, 1), constraint("cluster", 1, 9)];
    // The richest first; the poorest make way if the chosen ones have not enough room.
    assert_eq!(chosen(&WORLD, 50, &by_cluster(1, 1), &dynamic(), &[]), "g:50");
    assert_eq!(
        chosen(&WORLD, 100, &by_cluster(1, 2), &dynamic(), &["a"]),
        "f:46 g:54"
    );
    assert_eq!(
        chosen(&WORLD, 131, &by_cluster(1, 2), &dynamic(), &[]),
        "no enough resource when selecting 2 clusters: they have room for 130 of 131 replicas"
    );
    // The region that can take all of it, although another has more clusters.
    assert_eq!(chosen(&WORLD, 90, &regions, &dynamic(), &[]), "f:42 g:48");
    let full = chosen(&WORLD, 140, &regions, &dynamic(), &[]);
    assert_eq!(
        full,
        "Clusters available replicas 130 are not enough to schedule: 140 replicas are to be placed."
    );
}

#[test]
fn groups_with_room_come_before_those_where_it_is() {
    // `a` has one replica and is full then; what is there does not count for more than that all fit.
    let lines = ["a p eu z 4", "b p us z 100", "c p us z 9", "d p ap z 3"];
    let one = [constraint("region", 1, 1), constraint("cluster", 1, 9)];
    assert_eq!(chosen(&lines, 5, &one, &dynamic(), &["a"]), "a:5");
    assert_eq!(chosen(&lines, 10, &one, &dynamic(), &["a"]), "b:9 c:1");
    // A second region is taken where one has not enough room.
    let two = [constraint("region", 1, 2), constraint("cluster", 1, 9)];
    assert_eq!(chosen(&lines, 110, &two, &dynamic(), &["a"]), "a:5 b:96 c:9");
    // One cluster of the region: the one that has the room.
    let single = [constraint("region", 1, 1), constraint("cluster", 1, 1)];
    assert_eq!(chosen(&lines, 50, &single, &dynamic(), &["c"]), "b:50");
    // No region has it: what is there stays chosen, and it is said what is missing.
    let none = chosen(&lines, 500, &one, &dynamic(), &["a"]);
    assert!(none.contains("are not enough to schedule"), "{none}");
}

#[test]
fn fields_are_met_together() {
    let all = [
        constraint("provider", 2, 2),
        constraint("region", 2, 2),
        constraint("cluster", 2, 2),
    ];
    // The best of each field alone would be a and c, and then no second region.
    let lines = ["a p1 r1 z 1", "b p1 r2 z 1", "c p2 r1 z 1"];
    assert_eq!(chosen(&lines, 1, &all, &Value::Null, &[]), "b c");
}

#[test]
fn a_spread_that_cannot_be_met_tells_every_cluster() {
    let spec =
        spec(json!({ "replicas": 2, "placement": { "spreadConstraints": [constraint("region", 4, 4)] } }));
    let placed = place(&input(&spec, &world(&WORLD)));
    assert_eq!(placed.rejected.len(), WORLD.len());
    for rejection in &placed.rejected {
        assert_eq!(rejection.reason, RejectionReason::SpreadUnmet);
        assert!(rejection.message.contains("for region "), "{}", rejection.message);
        assert!(!rejection.help.is_empty());
    }
    let why = explain(&placed).unwrap();
    assert!(
        why.contains("a, b, c: it fits, for region eu, and the spread"),
        "{why}"
    );
}

#[test]
fn many_groups_are_bounded() {
    // More sets of zones than anybody could try.
    let lines: Vec<String> = (0..200).map(|n| format!("c{n:03} p r z{n:03} {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let constraints = [constraint("zone", 20, 20), constraint("cluster", 20, 20)];
    let names = chosen(&lines, 1, &constraints, &Value::Null, &["c150"]);
    assert_eq!(names.split(' ').count(), 20, "{names}");
    assert!(names.contains("c150"), "{names}");
}

#[test]
fn many_clusters_are_met_together() {
    // The largest two regions have no zone in common: what is best for the first field leaves too little for the next.
    let regions = [
        ("r1", "z1", 2600),
        ("r2", "z2", 2700),
        ("r3", "z1", 1500),
        ("r4", "z3", 10),
        ("r5", "z4", 10),
    ];
    let lines: Vec<String> = regions
        .iter()
        .flat_map(|(region, zone, count)| {
            (0..*count).map(move |number| format!("{region}-{number:04} p {region} {zone} 1"))
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let constraints = |clusters| {
        [
            constraint("region", 2, 2),
            constraint("zone", 1, 1),
            constraint("cluster", clusters, clusters),
        ]
    };
    let all = chosen(&lines, 1, &constraints(4100), &Value::Null, &[]);
    let of = |region: &str| all.split(' ').filter(|name| name.starts_with(region)).count();
    assert_eq!((of("r1"), of("r3"), all.split(' ').count()), (2600, 1500, 4100));
    let more = chosen(&lines, 1, &constraints(4101), &Value::Null, &[]);
    assert!(more.contains("no zones with enough clusters"), "{more}");
}

#[test]
fn a_zone_that_a_cluster_names_twice_is_one() {
    let world = ["a aws eu z1,z1,z1 10", "b aws eu z2 10", "c aws eu z2 10"];
    let zones = [constraint("zone", 1, 1), constraint("cluster", 1, 9)];
    assert_eq!(chosen(&world, 1, &zones, &Value::Null, &[]), "b c");
}

#[test]
fn a_cluster_in_several_zones_has_its_room_once() {
    let lines = ["a p r z1,z2 10", "b p r z3 8", "c p r z4 8"];
    let two = [constraint("zone", 2, 2)];
    assert_eq!(chosen(&lines, 15, &two, &dynamic(), &[]), "b:8 c:7");
    // One that is in a further zone is not chosen, and its room does not count.
    let lines = [
        "a p r z1,z5,z6 20",
        "b p r z1 1",
        "c p r z2 8",
        "d p r z3 9",
        "e p r z4 9",
    ];
    assert_eq!(chosen(&lines, 15, &two, &dynamic(), &[]), "c:7 d:8");
}

proptest! {
    #![proptest_config(crate::properties::cases(512))]

    /// A spread is refused only if no clusters whatsoever meet it; where room divides, none that have enough of it.
    #[test]
    fn what_can_be_met_is_met(
        places in prop::collection::vec((0..3_u8, 0..3_u8, 1..8_u8, 0..6_i64), 1..7),
        limits in prop::collection::vec((0..4_usize, 1..4_i64, 0..3_i64), 1..4),
        replicas in 1..16_i64,
    ) {
        let lines: Vec<String> = places
            .iter()
            .enumerate()
            .map(|(n, (provider, region, zones, room))| {
                let zones: Vec<String> = (0..3).filter(|zone| (zones >> zone) & 1 == 1).map(|zone| format!("z{zone}")).collect();
                format!("c{n} p{provider} r{region} {} {room}", zones.join(","))
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let fields = ["cluster", "provider", "region", "zone"];
        let mut limits: Vec<(usize, i64, i64)> = limits.iter().map(|(field, min, more)| (*field, *min, min + more)).collect();
        limits.sort();
        limits.dedup_by_key(|(field, ..)| *field);
        let constraints: Vec<Value> = limits.iter().map(|(field, min, max)| constraint(fields[*field], *min, *max)).collect();
        let clusters = world(&lines);
        let meets = |set: u32| {
            let taken: Vec<&Arc<Cluster>> = clusters.iter().enumerate().filter(|(n, _)| (set >> n) & 1 == 1).map(|(_, c)| c).collect();
            limits.iter().all(|(field, min, max)| {
                let mut values: Vec<&str> = taken
                    .iter()
                    .flat_map(|cluster| match field {
                        0 => vec![cluster.metadata.name.as_str()],
                        1 => vec![cluster.spec.provider.as_str()],
                        2 => vec![cluster.spec.region.as_str()],
                        _ => cluster.spec.zones.iter().map(String::as_str).collect(),
                    })
                    .collect();
                values.sort_unstable();
                values.dedup();
                (*min..=*max).contains(&(values.len() as i64))
            })
        };
        let has_room = |set: u32| {
            let rooms = places.iter().enumerate().filter(|(n, _)| (set >> n) & 1 == 1).map(|(_, place)| place.3);
            rooms.sum::<i64>() >= replicas
        };
        let by_room = replicas > 1;
        let can_be_met = (1..1_u32 << clusters.len()).any(|set| meets(set) && (!by_room || has_room(set)));
        let strategy = if by_room { dynamic() } else { Value::Null };
        let spec = spec(json!({ "replicas": replicas,
            "placement": { "spreadConstraints": constraints, "replicaScheduling": strategy } }));
        let placed = place(&input(&spec, &clusters));
        match &placed.verdict {
            // What is divided by room may be given to fewer clusters than were chosen.
            Verdict::Clusters(_) if by_room => prop_assert!(can_be_met),
            Verdict::Clusters(targets) => {
                let set = targets.iter().map(|target| {
                    1_u32 << clusters.iter().position(|cluster| cluster.metadata.name == target.name).unwrap()
                });
                prop_assert!(meets(set.sum()), "{targets:?}");
            }
            other => prop_assert!(!can_be_met, "{lines:?} {limits:?}: {other:?}"),
        }
    }
}
