//! `lockgate bench fleet`: what propagation costs. A hub and members in one process, the control plane between them, and a
//! load that comes through the hub's API.
//!
//! ```text
//!   driver ─▶ hub (durable) ◀─counted─▶ control plane ─counted─▶ members (in memory)
//!                                                                    │
//!                                             arrivals ◀─ changes ───┘
//! ```
//!
//! What always holds: a phase is reported only when every object of every member, and every binding and Work of the hub,
//! was read back and is what a plain reading of the policy says it should be. A restart that writes anything fails.

mod arrivals;
pub(crate) mod counts;
mod expect;
pub(crate) mod load;
mod phases;
mod policy;
mod report;
mod rollout;
mod suspension;
mod waits;
pub(crate) mod world;

use std::path::PathBuf;

use clap::Args;
use tempfile::TempDir;

use crate::error::BenchError;
pub use crate::fleet::policy::{PolicyArguments, run_policy};
use crate::fleet::report::FleetReport;
use crate::fleet::world::World;
use crate::machine::Machine;

/// Measure propagation: objects through the hub to every member
#[derive(Clone, Debug, Args)]
pub struct FleetArguments {
    /// How many templates
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub templates: u32,
    /// How many members
    #[arg(long, value_name = "M", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub members: u32,
    /// Members make their workloads ready, and the status comes back
    #[arg(long)]
    pub ready: bool,
    /// Also measure policies that wait and policies that preempt
    #[arg(long)]
    pub waits: bool,
    /// Also measure a rollout of every template in three stages
    #[arg(long, requires = "ready")]
    pub rollout: bool,
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

/// Measures, and prints the report on standard output.
pub fn run_fleet(arguments: &FleetArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| BenchError::Usage(format!("failed to start: {e}")))?;
    let parent = arguments.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = TempDir::with_prefix_in("lockgate-bench-", &parent).map_err(BenchError::file(&parent))?;
    let mut report = FleetReport {
        command: crate::run::command(),
        templates: arguments.templates,
        members: arguments.members,
        ready: arguments.ready,
        each: "template",
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
    arguments: &FleetArguments,
    scratch: &TempDir,
    report: &mut FleetReport,
) -> Result<(), BenchError> {
    let mut world = World::start(arguments, scratch.path()).await?;
    let measured = phases::all(&mut world, arguments, &mut report.phases).await;
    world.stop().await;
    measured
}
