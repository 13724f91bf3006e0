//! Every scenario on real kube-apiservers with etcd. Where they cannot be had this says so and checks nothing.
//! It takes many minutes, so it is asked for: `LOCKGATE_SCENARIOS_REAL=2` runs them on two fleets side by side.
//! `SCENARIO=part` runs those whose names contain it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use std::path::Path;

use lockgate_scenario::{Real, RealError, Variant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds_on_real_servers() {
    support::start_logging();
    let Ok(fleets) = std::env::var("LOCKGATE_SCENARIOS_REAL") else {
        println!("WARNING: LOCKGATE_SCENARIOS_REAL is not set: NO scenario was run on a real kube-apiserver");
        return;
    };
    let fleets: usize = fleets.parse().expect("LOCKGATE_SCENARIOS_REAL: how many fleets");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../real");
    let mut backends = Vec::new();
    for _ in 0..fleets.max(1) {
        match Real::obtain(&scripts) {
            Ok(backend) => backends.push(backend),
            Err(RealError::Unavailable) => {
                println!("WARNING: no real kube-apiserver on this machine: NO scenario was run on one");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let outcomes = support::run_on(support::chosen(), backends, Variant::Plain).await;
    support::assert_passed(&outcomes);
}
