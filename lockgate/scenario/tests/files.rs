//! Every scenario file of the repository.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use lockgate_scenario::{Embedded, NoPlane, Scenario, Variant, run};
use support::files;

#[test]
fn every_file_is_a_scenario() {
    let files = files();
    assert!(files.len() >= 200, "{} files", files.len());
    for file in files {
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.about.len() > 20, "{}: say what it shows", file.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_servers_refuse_needs_no_controllers() {
    for name in ["refused-overrides", "refused-policies"] {
        let file = files()
            .into_iter()
            .find(|file| file.file_stem().is_some_and(|stem| stem == name));
        let scenario = Scenario::load(&file.unwrap()).unwrap();
        let outcome = run(&scenario, &mut Embedded::new(), &NoPlane, Variant::Plain).await;
        if let Some(failure) = outcome.failure {
            panic!("{failure}");
        }
    }
}
