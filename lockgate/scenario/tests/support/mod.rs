//! The scenario files of the repository.
//!
//! (A `mod.rs`, since cargo takes every other file beside the tests for a test of its own.)

use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use lockgate_scenario::{Backend, Embedded, HubPlane, Outcome, Scenario, Variant, run};

/// The files below `scenarios/`, sorted.
pub(crate) fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    let mut open = vec![root];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The folder and the name of a scenario.
#[allow(dead_code, reason = "not every test that shares this module runs files")]
pub(crate) fn name(file: &Path) -> String {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap().to_string_lossy().into_owned();
    format!(
        "{}/{}",
        part(file.parent().unwrap().file_name()),
        part(file.file_stem())
    )
}

/// Says what the controllers do, if `LOCKGATE_LOG` asks for it.
#[allow(dead_code, reason = "not every test that shares this module logs")]
pub(crate) fn start_logging() {
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("LOCKGATE_LOG").unwrap_or_else(|_| "error".into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}

/// How many scenarios run at once where each has servers of its own: most of their time they wait.
const AT_ONCE: usize = 8;

/// The files whose folder and name contain `SCENARIO`.
#[allow(dead_code, reason = "not every test that shares this module runs files")]
pub(crate) fn chosen() -> Vec<PathBuf> {
    let part = std::env::var("SCENARIO").unwrap_or_default();
    let mut files = files();
    files.retain(|file| name(file).contains(&part));
    files
}

/// Runs a file and prints a line if it failed: among hundreds that held nobody would find it. `LOCKGATE_LOG=info` tells of
/// all of them.
async fn run_file(file: &Path, backend: &mut dyn Backend, variant: Variant) -> Outcome {
    let scenario = Scenario::load(file).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, backend, &HubPlane, variant).await;
    let (name, took, runs) = (name(file), outcome.took.as_millis(), outcome.runs);
    match &outcome.failure {
        None => tracing::info!("ok   {name} ({took} ms, {runs} runs)"),
        Some(_) => println!("FAIL {name} ({took} ms, {runs} runs)"),
    }
    outcome
}

/// Runs files on some backends, one after the other on each.
#[allow(dead_code, reason = "not every test that shares this module runs files")]
pub(crate) async fn run_on<B: Backend>(
    files: Vec<PathBuf>,
    backends: Vec<B>,
    variant: Variant,
) -> Vec<Outcome> {
    let files = std::sync::Mutex::new(files.into_iter());
    let next = || files.lock().unwrap().next();
    let runs = backends.into_iter().map(|mut backend| async move {
        let mut outcomes = Vec::new();
        while let Some(file) = next() {
            outcomes.push(run_file(&file, &mut backend, variant).await);
        }
        outcomes
    });
    futures::future::join_all(runs)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// Runs files, each on servers of its own in this process.
#[allow(dead_code, reason = "not every test that shares this module runs files")]
pub(crate) async fn run_embedded(files: impl IntoIterator<Item = PathBuf>, variant: Variant) -> Vec<Outcome> {
    futures::stream::iter(files)
        .map(|file| async move { run_file(&file, &mut Embedded::new(), variant).await })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Fails with the reports of all that failed.
#[allow(dead_code, reason = "not every test that shares this module runs files")]
pub(crate) fn assert_passed(outcomes: &[Outcome]) {
    let failures = outcomes.iter().filter_map(|outcome| outcome.failure.as_ref());
    let reports: Vec<String> = failures.map(ToString::to_string).collect();
    assert!(
        reports.is_empty(),
        "{} failed:\n\n{}",
        reports.len(),
        reports.join("\n\n")
    );
}
