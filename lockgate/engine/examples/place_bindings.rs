//! How fast bindings are placed: `cargo run --release -p lockgate-engine --example place_bindings`.
//!
//! Prints how long one binding takes on 1,000 clusters for each strategy, and how many Divided bindings are placed a second.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it prints figures, and may end where it likes"
)]

use std::sync::Arc;
use std::time::Instant;

use lockgate_api::{Binding, BindingSpec, Cluster};
use lockgate_engine::Gates;
use lockgate_engine::cluster::Difference;
use lockgate_engine::place::{PlaceInput, Rooms, Verdict, place};
use serde_json::{Value, json};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn fleet(size: usize) -> Vec<Arc<Cluster>> {
    let zone = |number: usize| format!("z{}", number % 36);
    let cluster = |number: usize| {
        let tier = match number {
            number if number.is_multiple_of(47) => "t0",
            number if number.is_multiple_of(7) => "t1",
            _ => "t2",
        };
        let cluster = json!({
            "metadata": { "name": format!("member{number:05}"), "labels": { "env": "prod", "tier": tier } },
            "spec": {
                "provider": format!("p{}", number % 3),
                "region": format!("r{}", number % 12),
                // One cluster of ten is in two zones.
                "zones": if number.is_multiple_of(10) { vec![zone(number), zone(number + 12)] } else { vec![zone(number)] },
            },
            "status": {
                "apiEnablements": [{ "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] }],
                "resourceSummary": {
                    "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "1100" },
                    "allocated": { "cpu": format!("{}", number % 60), "memory": "64Gi", "pods": "300" },
                },
            },
        });
        Arc::new(serde_json::from_value(cluster).unwrap())
    };
    (0..size).map(cluster).collect()
}

fn binding(replicas: i64, placement: &Value) -> BindingSpec {
    serde_json::from_value(json!({
        "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1" },
        "replicas": replicas,
        "replicaRequirements": { "resourceRequest": { "cpu": "500m", "memory": "1Gi" } },
        "placement": placement,
    }))
    .unwrap()
}

fn placed(spec: &BindingSpec, clusters: &[Arc<Cluster>], rooms: &Rooms) -> usize {
    let placed = place(&PlaceInput {
        spec,
        applied_placement: None,
        observed_affinity: "",
        last_scheduled: None,
        rebalanced: None,
        clusters,
        rooms: Some(rooms),
        neighbours: None,
        gates: Gates::default(),
    });
    match placed.verdict {
        Verdict::Clusters(targets) => targets.len(),
        verdict => panic!("{verdict:?}"),
    }
}

fn main() {
    let affinity = json!({ "labelSelector": { "matchLabels": { "env": "prod" } } });
    let with = |scheduling: Value, spread: Value| json!({ "clusterAffinity": affinity, "replicaScheduling": scheduling, "spreadConstraints": spread });
    let dynamic = json!({ "replicaSchedulingType": "Divided", "weightPreference": { "dynamicWeight": "AvailableReplicas" } });
    let aggregated = json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" });
    let regions = json!([
        { "spreadByField": "region", "minGroups": 3, "maxGroups": 5 },
        { "spreadByField": "cluster", "minGroups": 3, "maxGroups": 30 },
    ]);
    let fields = |fields: &[&str]| {
        let by = |field: &&str| json!({ "spreadByField": field, "minGroups": 2, "maxGroups": 4 });
        let mut all: Vec<Value> = fields.iter().map(by).collect();
        all.push(json!({ "spreadByField": "cluster", "minGroups": 4, "maxGroups": 30 }));
        Value::from(all)
    };
    let duplicated = json!({ "replicaSchedulingType": "Duplicated" });
    // The group itself has room for most of the replicas, and the first of what it overflows to for the rest.
    let tier =
        |name: &str| json!({ "affinityName": name, "labelSelector": { "matchLabels": { "tier": name } } });
    let overflowing = |spread: Value| {
        let mut group = tier("t0");
        group["overflowAffinities"] = json!([tier("t1"), tier("t2")]);
        json!({ "clusterAffinities": [group], "replicaScheduling": dynamic, "spreadConstraints": spread })
    };
    let cases = [
        (
            "Duplicated",
            with(json!({ "replicaSchedulingType": "Duplicated" }), json!([])),
        ),
        (
            "Divided, static",
            with(json!({ "replicaSchedulingType": "Divided" }), json!([])),
        ),
        ("Divided, dynamic", with(dynamic.clone(), json!([]))),
        ("Divided, aggregated", with(aggregated, json!([]))),
        (
            "Divided, dynamic, 3 to 5 regions",
            with(dynamic.clone(), regions.clone()),
        ),
        (
            "Duplicated, 3 to 5 regions",
            with(duplicated.clone(), regions.clone()),
        ),
        ("Duplicated, zones", with(duplicated.clone(), fields(&["zone"]))),
        (
            "Duplicated, regions, zones",
            with(duplicated.clone(), fields(&["region", "zone"])),
        ),
        (
            "Duplicated, providers, regions, zones",
            with(duplicated, fields(&["provider", "region", "zone"])),
        ),
        (
            "Divided, dynamic, zones",
            with(dynamic.clone(), fields(&["zone"])),
        ),
        (
            "Divided, dynamic, regions, zones",
            with(dynamic.clone(), fields(&["region", "zone"])),
        ),
        (
            "Divided, dynamic, all three",
            with(dynamic.clone(), fields(&["provider", "region", "zone"])),
        ),
        ("Overflow", overflowing(json!([]))),
        ("Overflow, 3 to 5 regions", overflowing(regions.clone())),
        (
            "Overflow, 1 to 40 zones",
            overflowing(json!([
                { "spreadByField": "zone", "minGroups": 1, "maxGroups": 40 },
                { "spreadByField": "cluster", "minGroups": 1, "maxGroups": 100 },
            ])),
        ),
        (
            "Overflow, at least 1 region",
            overflowing(json!([{ "spreadByField": "region", "minGroups": 1 }])),
        ),
        ("Overflow, zones", overflowing(fields(&["zone"]))),
        (
            "Overflow, regions, zones",
            overflowing(fields(&["region", "zone"])),
        ),
        (
            "Overflow, all three",
            overflowing(fields(&["provider", "region", "zone"])),
        ),
    ];
    println!("one binding of 2,000 replicas on 1,000 clusters");
    let clusters = fleet(1000);
    let rooms = Rooms::of(&clusters);
    for (name, placement) in &cases {
        let spec = binding(2000, placement);
        let (runs, begun) = (100, Instant::now());
        let targets: usize = (0..runs).map(|_| placed(&spec, &clusters, &rooms)).sum();
        let each = begun.elapsed() / runs;
        println!(
            "  {name:<38} {:>7} us, {} clusters",
            each.as_micros(),
            targets / runs as usize
        );
    }
    let clusters = fleet(10);
    let rooms = Rooms::of(&clusters);
    let begun = Instant::now();
    let bindings = 10_000;
    for number in 0..bindings {
        let spec = binding(3 + number % 20, &cases[2].1);
        placed(&spec, &clusters, &rooms);
    }
    let rate = f64::from(u32::try_from(bindings).unwrap()) / begun.elapsed().as_secs_f64();
    println!("10,000 Divided bindings by room on 10 clusters: {rate:.0} a second");
    relabel();
}

/// A label of one cluster changes: who names it, and where they go then.
fn relabel() {
    let clusters = fleet(1000);
    let mut rooms = Rooms::of(&clusters);
    let by_label =
        |key: &str| json!({ "clusterAffinity": { "labelSelector": { "matchLabels": { key: "prod" } } } });
    let stored: Vec<String> = (0..10_000)
        .map(|number| {
            let key = if number % 100 == 0 { "env" } else { "tier" };
            serde_json::to_string(&json!({ "spec": binding(1, &by_label(key)) })).unwrap()
        })
        .collect();
    let begun = Instant::now();
    let mut changed = (*clusters[500]).clone();
    changed
        .metadata
        .labels
        .insert("env".to_owned(), "test".to_owned());
    let difference = Difference::between(&clusters[500], &changed);
    let mut after = clusters.clone();
    after[500] = Arc::new(changed);
    rooms.replace(500, &after[500]);
    let mut moved = 0;
    for text in &stored {
        if !difference.names().any(|name| text.contains(name)) {
            continue;
        }
        let stored: Binding = serde_json::from_str(text).unwrap();
        if stored
            .spec
            .placement
            .as_ref()
            .is_some_and(|placement| difference.is_mentioned_by(placement))
        {
            assert_eq!(placed(&stored.spec, &after, &rooms), 999);
            moved += 1;
        }
    }
    let took = begun.elapsed().as_millis();
    println!(
        "a label of one of 1,000 clusters changes: {moved} of 10,000 bindings name it, and are placed in {took} ms"
    );
}
