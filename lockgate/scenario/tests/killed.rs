//! Scenarios with controllers that are stopped after every step, and some with controllers that are killed after every
//! write: what they know comes from the servers alone, so that all expectations still hold.
//!
//! `LOCKGATE_CUT_ALL=1` kills them in all scenarios, which takes many minutes; `LOCKGATE_CUT_ALL=2/4` does a quarter of it, and
//! `SCENARIO=part` those whose folder and name contain that.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use lockgate_scenario::Variant;

/// Scenarios that write all that there is to write: claims, bindings, Works, copies, removals; claims without bindings, claims
/// that move alone, records of a gate that is switched; and one each of what is evicted, needed by others, overridden,
/// interpreted, and let go.
const KILLED: &[&str] = &[
    "compliance/pruning-waits-for-enforcement",
    "dependencies/overrides-apply",
    "interpreters/health",
    "lazy/simple-2-policy-after-template",
    "migration/preserved-when-it-moves",
    "ocm-placement/decision-groups",
    "overrides/rules-by-cluster",
    "pipeline/deleted-binding-of-what-is-left-alone",
    "pipeline/hand-deleted-definition",
    "pipeline/hand-deleted-work",
    "pipeline/placement-edit-moves",
    "pipeline/template-deleted",
    "placement/eviction-by-hand",
    "rollout/placement-groups",
    "rollout/placement-moved",
    "rollout/rolls-back",
    "static/gate-off-keeps-what-was-frozen",
];

/// Whether controllers are killed in the scenario of this number and name.
fn is_killed(number: usize, name: &str) -> bool {
    let part = std::env::var("SCENARIO").unwrap_or_default();
    match std::env::var("LOCKGATE_CUT_ALL").as_deref() {
        Ok("") | Err(_) => KILLED.contains(&name),
        Ok(share) => {
            let (which, of) = share.split_once('/').unwrap_or(("1", "1"));
            let (which, of): (usize, usize) = (which.parse().unwrap(), of.parse().unwrap());
            number % of == which % of && name.contains(&part)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds_with_restarts() {
    support::start_logging();
    let outcomes = support::run_embedded(support::chosen(), Variant::RestartBetweenSteps).await;
    support::assert_passed(&outcomes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_after_any_write_loses_nothing() {
    support::start_logging();
    let files = support::files().into_iter().enumerate();
    let killed = files.filter(|(number, file)| is_killed(*number, &support::name(file)));
    let outcomes = support::run_embedded(killed.map(|(_, file)| file), Variant::CutEveryWrite).await;
    let most = outcomes.iter().map(|outcome| outcome.runs).max().unwrap_or(0);
    support::assert_passed(&outcomes);
    // Scenarios whose controllers write nothing would prove nothing.
    assert!(most > 5, "at most {most} runs");
}
