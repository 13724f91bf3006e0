//! Which clusters are chosen where the placement spreads.

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
fn many_groups_are_bounded() {
    // More sets of zones than anybody could try.
    let lines: Vec<String> = (0..200).map(|n| format!("c{n:03} p r z{n:03} {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let constraints = [constraint("zone", 20, 20), constraint("cluster", 20, 20)];
    let names = chosen(&lines, 1, &constraints, &Value::Null, &["c150"]);
    assert_eq!(names.split(' ').count(), 20, "{names}");
    assert!(names.contains("c150"), "{names}");
}
