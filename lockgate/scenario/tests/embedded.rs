//! Every scenario on servers in this process. `SCENARIO=part` runs those whose names contain it, and
//! `SCENARIO_VARIANT=restart` or `=cut` runs them with the controllers stopped and killed on the way.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use lockgate_scenario::Variant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds() {
    support::start_logging();
    let variant = match std::env::var("SCENARIO_VARIANT").as_deref() {
        Ok("restart") => Variant::RestartBetweenSteps,
        Ok("cut") => Variant::CutEveryWrite,
        _ => Variant::Plain,
    };
    support::assert_passed(&support::run_embedded(support::chosen(), variant).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fight_names_the_other_side() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/drift-fight.yaml");
    support::assert_passed(&support::run_embedded([file], Variant::Plain).await);
}
