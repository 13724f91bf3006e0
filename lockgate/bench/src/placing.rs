//! `lockgate bench placing`: what a large fleet costs those who place workloads in it.
//!
//! Two worlds, one after the other, each in this process. In the first a cluster among many gets a label, and only those
//! whose placement names it may be touched. In the second as many templates as dependencies are in the store before the
//! control plane comes, and then the hub itself starts again from its file.
//!
//! What always holds: a phase is reported only when the bindings that had to change did, no other was written, and every
//! member has what it should have and nothing else.

mod dependencies;
mod labels;
mod report;
mod world;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tempfile::TempDir;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::placing::report::PlacingReport;

/// Measure placing: a label among many clusters, and a start with many dependencies
#[derive(Clone, Debug, Args)]
pub struct PlacingArguments {
    /// How many clusters one of which gets a label
    #[arg(long, value_name = "M", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub clusters: u32,
    /// How many templates, and how many dependencies
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub templates: u32,
    /// Measure only these
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// How many requests of the load are under way at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: u32,
    /// Where the hub keeps its data [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// How long one phase may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub patience: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// A label of one cluster among many.
    Labels,
    /// A start with many dependencies.
    Dependencies,
}

impl PlacingArguments {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Measures, and prints the report on standard output.
pub fn run_placing(arguments: &PlacingArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| BenchError::Usage(format!("failed to start: {e}")))?;
    let parent = arguments.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = TempDir::with_prefix_in("lockgate-bench-", &parent).map_err(BenchError::file(&parent))?;
    let mut report = PlacingReport {
        command: crate::run::command(),
        clusters: arguments.clusters,
        templates: arguments.templates,
        machine: Machine::inspect(scratch.path())?,
        phases: Vec::new(),
        incomplete: None,
    };
    let measured = runtime.block_on(async {
        tokio::select! {
            measured = measure(arguments, &scratch, &mut report) => measured,
            () = crate::run::stop_signal() => Err(BenchError::Interrupted),
        }
    });
    crate::run::conclude(measured, report, arguments.json)
}

async fn measure(
    arguments: &PlacingArguments,
    scratch: &TempDir,
    report: &mut PlacingReport,
) -> Result<(), BenchError> {
    if arguments.wants(Part::Labels) {
        labels::measure(arguments, scratch.path(), &mut report.phases).await?;
    }
    if arguments.wants(Part::Dependencies) {
        dependencies::measure(arguments, scratch.path(), &mut report.phases).await?;
    }
    Ok(())
}
