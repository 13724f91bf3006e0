//! Scenarios with controllers that are stopped after every step, and some with controllers that are killed after every
//! write: what they know comes from the servers alone, so that all expectations still hold.
//!
//! `lockgate scenario --cut-every-write scenarios` kills them in all scenarios, which takes a while.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use lockgate_scenario::{Embedded, HubPlane, Scenario, Variant, run};

/// Scenarios that write all that there is to write: claims, bindings, Works, copies, removals.
const KILLED: &[&str] = &["hand-deleted-work", "placement-edit-moves", "template-deleted"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds_with_restarts() {
    support::start_logging();
    let failures = support::run_all(&mut Embedded::new(), &HubPlane, Variant::RestartBetweenSteps).await;
    assert!(
        failures.is_empty(),
        "{} failed:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_after_any_write_loses_nothing() {
    support::start_logging();
    for file in support::files() {
        let scenario = Scenario::load(&file).unwrap();
        if !KILLED.contains(&scenario.name.as_str()) {
            continue;
        }
        let outcome = run(&scenario, &mut Embedded::new(), &HubPlane, Variant::CutEveryWrite).await;
        if let Some(failure) = outcome.failure {
            panic!("{failure}");
        }
        // A scenario whose controllers write nothing would prove nothing.
        assert!(outcome.runs > 5, "{}: {} runs", scenario.name, outcome.runs);
    }
}
