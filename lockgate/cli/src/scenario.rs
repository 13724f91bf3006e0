//! `lockgate scenario`: runs scenario files and says which hold.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use lockgate_scenario::{Backend, Embedded, HubPlane, Outcome, Real, Scenario, Variant, run as run_scenario};

use crate::exit::Failure;
use crate::print::{Paint, Tone};

/// Deeper directories are not looked into.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all hold, 1 some do not, 2 a file is not a scenario.\n\nThe format is described in docs/scenarios.md."
)]
pub(crate) struct ScenarioArguments {
    /// Scenario files, or directories of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run on real kube-apiservers with etcd, started by the scripts in --real-scripts
    #[arg(long)]
    real: bool,
    /// Where the scripts are that start real servers
    #[arg(long, value_name = "DIR", default_value = "real")]
    real_scripts: PathBuf,
    /// Run each again with the controllers restarted after every step
    #[arg(long)]
    restart_between_steps: bool,
    /// Run each again and again with the controllers killed after their first write, their second, and so on
    #[arg(long)]
    cut_every_write: bool,
    /// Say what each scenario shows
    #[arg(short, long)]
    verbose: bool,
}

/// Runs them all, one after the other.
pub(crate) fn run(arguments: &ScenarioArguments) -> Result<ExitCode, Failure> {
    let mut scenarios = Vec::new();
    for file in files(&arguments.files)? {
        scenarios.push(Scenario::load(&file).map_err(|error| Failure::Usage(error.to_string()))?);
    }
    if scenarios.is_empty() {
        return Err(Failure::Usage(
            "there are no scenario files (*.yaml) in these directories".to_owned(),
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("failed to start: {error}")))?;
    let mut backend: Box<dyn Backend> = if arguments.real {
        print("obtaining the real kube-apiserver (minutes, the first time)");
        let real = Real::obtain(&arguments.real_scripts);
        Box::new(real.map_err(|error| Failure::Other(error.to_string()))?)
    } else {
        Box::new(Embedded::new())
    };
    let failed = runtime.block_on(run_all(arguments, &scenarios, &mut *backend));
    // Real servers are stopped inside the runtime that their clients belong to.
    let _entered = runtime.enter();
    drop(backend);
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs them all; says how many runs failed.
async fn run_all(arguments: &ScenarioArguments, scenarios: &[Scenario], backend: &mut dyn Backend) -> usize {
    let mut variants = vec![Variant::Plain];
    if arguments.restart_between_steps {
        variants.push(Variant::RestartBetweenSteps);
    }
    if arguments.cut_every_write {
        variants.push(Variant::CutEveryWrite);
    }
    let paint = Paint::stdout();
    let width = scenarios
        .iter()
        .map(|scenario| scenario.name.len())
        .max()
        .unwrap_or(0);
    let begun = Instant::now();
    let (mut held, mut failures) = (0, Vec::new());
    for scenario in scenarios {
        for variant in &variants {
            let outcome = run_scenario(scenario, backend, &HubPlane, *variant).await;
            print(&line(&outcome, width, paint));
            if arguments.verbose && *variant == Variant::Plain {
                print(&paint.tone(&format!("      {}", scenario.about), Tone::Faint));
            }
            match outcome.failure {
                None => held += 1,
                Some(failure) => {
                    print(&format!("\n{failure}\n"));
                    failures.push(format!("{} ({})", outcome.name, variant.name()));
                }
            }
        }
    }
    let took = seconds(begun.elapsed());
    if failures.is_empty() {
        print(&paint.tone(&format!("\n{held} hold ({took})"), Tone::Good));
    } else {
        let summary = format!("\n{held} hold, {} do not ({took}):", failures.len());
        print(&paint.tone(&summary, Tone::Bad));
        for failure in &failures {
            print(&format!("  {failure}"));
        }
    }
    failures.len()
}

fn line(outcome: &Outcome, width: usize, paint: Paint) -> String {
    let word = match outcome.failure {
        None => paint.tone("ok  ", Tone::Good),
        Some(_) => paint.tone("FAIL", Tone::Bad),
    };
    let how = match outcome.variant {
        Variant::Plain => String::new(),
        Variant::RestartBetweenSteps => "  restart between steps".to_owned(),
        Variant::CutEveryWrite => format!("  cut every write, {} runs", outcome.runs),
    };
    format!("{word}  {:width$}  {}{how}", outcome.name, seconds(outcome.took))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// The files that were named, and those in directories that were named.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            let mut found = Vec::new();
            collect(path, MAX_DEPTH, &mut found)?;
            found.sort();
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Other(format!("{}: {error}", directory.display()));
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}

fn print(text: &str) {
    // A closed pipe is no reason to fail.
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_searched_in_order() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        for name in ["b.yaml", "a.yaml", "sub/c.yaml", "notes.md"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let found = files(&[directory.path().to_owned(), PathBuf::from("other")]).unwrap();
        let names: Vec<String> = found
            .iter()
            .map(|path| {
                path.strip_prefix(directory.path())
                    .unwrap_or(path)
                    .display()
                    .to_string()
            })
            .collect();
        assert_eq!(names, ["a.yaml", "b.yaml", "sub/c.yaml", "other"]);
    }

    #[test]
    fn a_line_says_how_it_went() {
        let outcome = Outcome {
            name: "moves".to_owned(),
            variant: Variant::CutEveryWrite,
            took: Duration::from_millis(1500),
            runs: 12,
            failure: None,
        };
        assert_eq!(
            line(&outcome, 8, Paint::OFF),
            "ok    moves     1.50 s  cut every write, 12 runs"
        );
    }
}
