//! What a decision of the gate costs: `cargo run --release -p lockgate-engine --example gate_decision [CLUSTERS]`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement may end where it likes, and prints"
)]

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use lockgate_api::rollout;
use lockgate_engine::gate::groups::{DecisionGroup, Groups};
use lockgate_engine::gate::rollout::decide;
use lockgate_engine::gate::rules::Rules;
use lockgate_engine::gate::standing::{Standing, Status};
use serde_json::{Value, json};

const GROUP: usize = 50;
const RUNS: usize = 500;
/// What a decision over 1,000 clusters may take.
const TARGET: Duration = Duration::from_micros(200);

/// Clusters as far as a rollout in its middle brings them: the first part is done, the next under way, the others wait.
fn standings(names: &[String], now: Timestamp) -> Vec<Standing<'_>> {
    let count = names.len();
    let standing = |(at, cluster)| {
        let (status, age) = match at * 100 / count {
            0..40 => (Status::Succeeded, 4000),
            40..45 => (Status::Succeeded, 30),
            45..50 => (Status::Progressing, 20),
            50 => (Status::Failed, 10),
            _ => (Status::ToApply, 0),
        };
        Standing {
            cluster,
            status,
            since: (status != Status::ToApply).then(|| now - SignedDuration::from_secs(age)),
        }
    };
    names
        .iter()
        .map(String::as_str)
        .enumerate()
        .map(standing)
        .collect()
}

fn main() {
    let count: usize = std::env::args()
        .nth(1)
        .map_or(1000, |count| count.parse().unwrap());
    let names: Vec<String> = (0..count)
        .map(|number| format!("cluster-{number:05}.europe"))
        .collect();
    let groups = Groups::new(
        names
            .chunks(GROUP)
            .enumerate()
            .map(|(index, clusters)| DecisionGroup {
                index: index as u32,
                name: if index == 0 {
                    "canary".to_owned()
                } else {
                    String::new()
                },
                clusters: clusters.to_vec(),
            }),
    );
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let sorted = standings(&names, now);
    // Every cluster far from its neighbours by name, as a map that does not sort has them.
    let step = (count / 3 * 2 + 1) | 1;
    let mut mixed: Vec<Standing<'_>> = (0..count).map(|at| sorted[at * step % count]).collect();
    mixed.sort_by_key(|standing| standing.cluster.bytes().rev().collect::<Vec<_>>());
    mixed.reverse();
    let config = |extra: Value| {
        let mut config = json!({ "maxFailures": "5%", "minSuccessTime": "1m", "progressDeadline": "10m",
            "mandatoryDecisionGroups": [{ "groupName": "canary" }] });
        config
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        config
    };
    let strategies = [
        (
            "All",
            json!({ "type": "All", "all": { "progressDeadline": "10m" } }),
        ),
        (
            "Progressive",
            json!({ "type": "Progressive", "progressive": config(json!({ "maxConcurrency": "20%" })) }),
        ),
        (
            "ProgressivePerGroup",
            json!({ "type": "ProgressivePerGroup", "progressivePerGroup": config(json!({})) }),
        ),
    ];
    if cfg!(debug_assertions) {
        println!("built without --release: the figures say nothing");
    }
    println!(
        "{count} clusters in {} groups, {RUNS} decisions each; median and worst of one",
        groups.iter().count()
    );
    for (name, strategy) in strategies {
        let rules = Rules::read(&rollout::read(&strategy).unwrap()).unwrap();
        for (order, standings) in [("by name", &sorted), ("in any order", &mixed)] {
            let mut times: Vec<Duration> = (0..RUNS)
                .map(|_| {
                    let start = Instant::now();
                    std::hint::black_box(decide(&groups, &rules, std::hint::black_box(standings), now));
                    start.elapsed()
                })
                .collect();
            times.sort_unstable();
            let (median, worst) = (times[RUNS / 2], times[RUNS - 1]);
            let verdict = match count {
                _ if cfg!(debug_assertions) => "",
                1000 if median < TARGET => "PASS",
                1000 => "MISS",
                _ => "",
            };
            println!("  {name:<21}{order:<14}{median:>10.1?}{worst:>12.1?}  {verdict}");
        }
    }
}
