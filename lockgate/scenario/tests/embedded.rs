//! Every scenario on servers in this process. `SCENARIO=part` runs those whose names contain it, and
//! `SCENARIO_VARIANT=restart` or `=cut` runs them with the controllers stopped and killed on the way.

mod support;

use lockgate_scenario::{Embedded, HubPlane, Scenario, Variant, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds() {
    support::start_logging();
    let variant = match std::env::var("SCENARIO_VARIANT").as_deref() {
        Ok("restart") => Variant::RestartBetweenSteps,
        Ok("cut") => Variant::CutEveryWrite,
        _ => Variant::Plain,
    };
    let part = std::env::var("SCENARIO").unwrap_or_default();
    let mut backend = Embedded::new();
    let mut failures = Vec::new();
    for file in support::files() {
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        if !scenario.name.contains(&part) {
            continue;
        }
        let outcome = run(&scenario, &mut backend, &HubPlane, variant).await;
        println!(
            "{} {} ({} ms, {} runs)",
            if outcome.failure.is_none() { "ok  " } else { "FAIL" },
            outcome.name,
            outcome.took.as_millis(),
            outcome.runs
        );
        failures.extend(outcome.failure.map(|failure| failure.to_string()));
    }
    assert!(
        failures.is_empty(),
        "{} failed:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
