//! Compares for as long as it is told to, and keeps what it finds as small scripts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{Target, TargetError};
use crate::report::{Failure, Report};
use crate::runner::{Options, run};
use crate::script::{Script, ScriptError};
use crate::{allowed, generate, shrink};

/// How many scripts are compared before the clock is looked at.
const BATCH: usize = 12;
/// Who found that many has enough to do.
const MAX_FOUND: usize = 12;

/// How long a script is made smaller; what is left then is kept.
const SHRINKING: Duration = Duration::from_secs(90);

/// What a hunt needs to know.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The seed of its scripts.
    pub seed: u64,
    /// How long it goes on.
    pub time: Duration,
    /// Where small scripts are written to.
    pub regressions: PathBuf,
    /// Distinguishes its namespaces from those of other runs: letters and digits.
    pub run: String,
}

/// What a hunt came to.
#[derive(Debug, Default)]
pub struct Hunted {
    /// How many scripts were compared.
    pub scripts: usize,
    /// How many exchanges.
    pub exchanges: usize,
    /// The differences, each with the file that shows it.
    pub found: Vec<(PathBuf, String)>,
}

/// Why a hunt could not go on.
#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    /// A server's description is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A script cannot be made.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A file cannot be written.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
}

/// Hunts. `tell` hears of every difference as soon as it is kept.
pub async fn hunt(
    left: &Target,
    right: &Target,
    hunt: &Hunt,
    mut tell: impl FnMut(&str),
) -> Result<Hunted, HuntError> {
    let began = Instant::now();
    let mut hunted = Hunted::default();
    let mut known = BTreeSet::new();
    let mut next = 0;
    while began.elapsed() < hunt.time && hunted.found.len() < MAX_FOUND {
        let scripts = (next..next + BATCH)
            .map(|index| generate::script(hunt.seed, index))
            .collect::<Result<Vec<_>, _>>()?;
        let options = options(&format!("{}b{next}", hunt.run));
        next += BATCH;
        let mut report = run(left, right, &scripts, &options).await?;
        hunted.scripts += report.scripts;
        hunted.exchanges += report.exchanges;
        allowed::remove(&mut report);
        ask_again((left, right), &scripts, &mut report, &options.run).await?;
        for script in &scripts {
            // What comes after the first difference is often its consequence.
            let Some(failure) = report
                .failures
                .iter()
                .find(|failure| failure.script == script.name)
            else {
                continue;
            };
            if !known.insert(signature(failure)) {
                continue;
            }
            let (small, text) = reduce(left, right, script, failure, &hunt.run).await;
            let file = keep(&small, &hunt.regressions)?;
            tell(&format!("{text}kept as {}\n", file.display()));
            hunted.found.push((file, text));
        }
    }
    Ok(hunted)
}

/// How often what differs is asked again.
const ROUNDS: usize = 2;

/// Compares again what differed. The real server answers some questions from caches that are a moment behind, the longer the busier
/// the machine is: only what differs each time is a difference between the two. Takes the rest out of the report, and gives it.
pub async fn ask_again(
    (left, right): (&Target, &Target),
    scripts: &[Script],
    report: &mut Report,
    run_name: &str,
) -> Result<Vec<Failure>, TargetError> {
    let mut gone = Vec::new();
    for round in 0..ROUNDS {
        if report.is_clean() {
            break;
        }
        let failed = |script: &&Script| report.failures.iter().any(|f| f.script == script.name);
        let suspects: Vec<Script> = scripts.iter().filter(failed).cloned().collect();
        let options = options(&format!("{run_name}r{round}"));
        let mut repeated = run(left, right, &suspects, &options).await?;
        allowed::remove(&mut repeated);
        report.not_run = repeated.not_run;
        let shows_again = |failure: &Failure| {
            let same = |other: &Failure| (&other.script, other.step) == (&failure.script, failure.step);
            repeated.failures.iter().any(same)
        };
        let (kept, others) = std::mem::take(&mut report.failures)
            .into_iter()
            .partition(shows_again);
        report.failures = kept;
        gone.extend::<Vec<Failure>>(others);
    }
    Ok(gone)
}

/// Makes what a run found small, at most `most` of it, and keeps it in `folder`: each with the file and its text.
pub async fn condense(
    (left, right): (&Target, &Target),
    scripts: &[Script],
    report: &Report,
    most: usize,
    folder: &Path,
) -> Result<Vec<(PathBuf, String)>, HuntError> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for script in scripts {
        let Some(failure) = report
            .failures
            .iter()
            .find(|failure| failure.script == script.name)
        else {
            continue;
        };
        if found.len() == most || !known.insert(signature(failure)) {
            continue;
        }
        let (small, _) = reduce(left, right, script, failure, &format!("c{}", found.len())).await;
        found.push((keep(&small, folder)?, small.to_yaml()));
    }
    Ok(found)
}

fn options(run: &str) -> Options {
    Options {
        run: run.to_owned(),
        transcript: false,
    }
}

/// What tells one difference from another: where, and what the two say, without names and numbers.
fn signature(failure: &Failure) -> String {
    let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).take(60).collect() };
    let method = failure.request.split(' ').next().unwrap_or_default();
    match failure.differences.first() {
        Some(difference) => {
            let side = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or(String::new(), |v| plain(&v.to_string()))
            };
            format!(
                "{method} {} {} {}",
                plain(&difference.path),
                side(&difference.left),
                side(&difference.right)
            )
        }
        None => format!("{method} {}", plain(&failure.trouble.concat())),
    }
}

/// The smallest script that shows the same, and how it shows.
async fn reduce(
    left: &Target,
    right: &Target,
    script: &Script,
    failure: &Failure,
    run_name: &str,
) -> (Script, String) {
    let wanted = signature(failure);
    let began = Instant::now();
    let tried = AtomicUsize::new(0);
    let compare = |script: Script| {
        let options = options(&format!("{run_name}s{}", tried.fetch_add(1, Ordering::Relaxed)));
        async move {
            let mut report = run(left, right, &[script], &options).await.unwrap_or_default();
            allowed::remove(&mut report);
            report
        }
    };
    let shows = |script: Script| {
        let (last, began) = (script.steps.len(), began);
        let report = compare(script);
        let wanted = wanted.clone();
        async move {
            let shows = |failure: &Failure| failure.step == last && signature(failure) == wanted;
            began.elapsed() < SHRINKING && report.await.failures.iter().any(shows)
        }
    };
    let mut small = shrink::shrink(script, failure.step, shows).await;
    small.about = format!("Found as {} and made small.", script.name);
    let shown = Report {
        failures: compare(small.clone()).await.failures,
        names: (left.name.clone(), right.name.clone()),
        ..Report::default()
    };
    let told: String = shown.to_string();
    let differs = told
        .lines()
        .filter(|line| !line.contains(" exchanges in "))
        .map(|line| format!("{line}\n"));
    (small, differs.collect())
}

fn keep(script: &Script, folder: &Path) -> Result<PathBuf, HuntError> {
    let file = folder.join(format!("{}.yaml", script.name));
    let write = |text: &str| {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&file, text)
    };
    write(&script.to_yaml()).map_err(|error| HuntError::File(file.clone(), error))?;
    Ok(file)
}
