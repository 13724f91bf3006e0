//! What a run found.

use std::fmt;

use crate::compare::Difference;

/// More differences of one step than this are only counted.
const SHOWN: usize = 30;

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What the two servers are called.
    pub names: (String, String),
    /// Scripts that ran.
    pub scripts: usize,
    /// Steps whose answers were compared.
    pub exchanges: usize,
    /// Steps that could not run because of an earlier one.
    pub not_run: usize,
    /// Steps that failed, in the order of the scripts.
    pub failures: Vec<Failure>,
    /// What the left server answered, if that was asked for.
    pub transcript: String,
}

/// A step that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The script.
    pub script: String,
    /// Which step of it, from 1.
    pub step: usize,
    /// Its request.
    pub request: String,
    /// What went wrong other than a difference: no answer, an unexpected status, nothing to capture.
    pub trouble: Vec<String>,
    /// What differs.
    pub differences: Vec<Difference>,
}

impl Report {
    /// Whether the two servers answered alike.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.not_run == 0
    }

    /// How many scripts had a failure.
    pub fn failed_scripts(&self) -> usize {
        let mut names: Vec<&str> = self
            .failures
            .iter()
            .map(|failure| failure.script.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    /// Adds what another run found.
    pub fn merge(&mut self, other: Report) {
        self.names = other.names;
        self.scripts += other.scripts;
        self.exchanges += other.exchanges;
        self.not_run += other.not_run;
        self.failures.extend(other.failures);
        self.transcript.push_str(&other.transcript);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (&self.names.0, &self.names.1);
        f.write_str(&self.transcript)?;
        for failure in &self.failures {
            writeln!(f, "{} step {}: {}", failure.script, failure.step, failure.request)?;
            for trouble in &failure.trouble {
                writeln!(f, "    {trouble}")?;
            }
            if !failure.differences.is_empty() {
                writeln!(f, "    ({left} | {right})")?;
            }
            for difference in failure.differences.iter().take(SHOWN) {
                writeln!(f, "    {difference}")?;
            }
            if failure.differences.len() > SHOWN {
                writeln!(f, "    … and {} more", failure.differences.len() - SHOWN)?;
            }
        }
        writeln!(
            f,
            "{} exchanges in {} scripts compared between {left} and {right}: {} steps in {} scripts differ, {} could not run",
            self.exchanges,
            self.scripts,
            self.failures.len(),
            self.failed_scripts(),
            self.not_run
        )
    }
}
