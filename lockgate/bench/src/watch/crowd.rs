//! A thousand watches of one kind while it changes a hundred times a second: what that costs a server.
//!
//! Each run has a server of its own, so that the most memory that it ever took is what the crowd made it take.

use std::sync::Arc;
use std::time::Duration;

use super::{Deliveries, Times, WATCHES_PER_CONNECTION, delays, open, paced};
use crate::arguments::ApiArguments;
use crate::error::BenchError;
use crate::operations::make_namespace;
use crate::process::{Memory, Process, cpu_seconds};
use crate::progress::Progress;
use crate::report::{Goal, Label, Report, Unit};
use crate::servers::{Running, Servers};

const CHANGES_PER_SECOND: u32 = 100;
const NAMESPACE: &str = "bench-crowd";
/// For a server to finish what it does after its start.
const SETTLE: Duration = Duration::from_secs(3);
/// The goals are for this many watches.
const HEADLINE: usize = 1_000;

pub(crate) async fn crowd(
    servers: &Servers,
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    for _ in 0..arguments.repeat {
        for side in servers.sides() {
            let running = servers.start(side).await?;
            run(&running, arguments, report)
                .await
                .map_err(BenchError::on(side))?;
            running.stop().await?;
        }
    }
    Ok(())
}

async fn run(running: &Running, arguments: &ApiArguments, report: &mut Report) -> Result<(), BenchError> {
    let (watchers, changes) = (arguments.crowd, (arguments.operations / 5).max(20));
    let client = running.client(arguments.connections).await?;
    make_namespace(&client, NAMESPACE).await?;
    let readers = running.client(watchers.div_ceil(WATCHES_PER_CONNECTION)).await?;
    let times = Arc::new(Times::new(changes));
    let watches = open(&readers, NAMESPACE, watchers, &times).await?;
    tokio::time::sleep(if arguments.quick { SETTLE / 10 } else { SETTLE }).await;
    let progress = Progress::start(
        format!("changes to {watchers} watches ({:?})", running.side),
        changes,
    );
    let (server_before, client_before) = (cpu_seconds(&running.processes)?, Process::this().cpu_seconds()?);
    let first = times.now();
    paced(&client, NAMESPACE, CHANGES_PER_SECOND, &times, &progress).await?;
    let Deliveries { at, resumed } = Deliveries::of(watches).await?;
    let server_cpu = cpu_seconds(&running.processes)? - server_before;
    let client_cpu = Process::this().cpu_seconds()? - client_before;
    let last = at.iter().flatten().copied().max().unwrap_or(first);
    let wall = Duration::from_nanos(last.saturating_sub(first))
        .as_secs_f64()
        .max(1e-9);
    let mut memory = Memory::default();
    for process in &running.processes {
        memory = memory + process.memory()?;
    }
    let late = delays(&at, &times.sent);
    let goal = |limit| (watchers == HEADLINE).then_some(Goal::Below(limit));
    let figures = [
        ("server CPU", Unit::Cores, server_cpu / wall, goal(1.0)),
        ("client CPU", Unit::Cores, client_cpu / wall, None),
        ("peak memory", Unit::Megabytes, memory.peak, goal(200.0)),
        (
            "events delivered",
            Unit::PerSecond,
            (watchers * changes) as f64 / wall,
            None,
        ),
        (
            "delay since the write was due, p50",
            Unit::Milliseconds,
            late.quantile(0.5),
            None,
        ),
        (
            "delay since the write was due, p99",
            Unit::Milliseconds,
            late.quantile(0.99),
            None,
        ),
        (
            "watches that the server ended, and that were resumed",
            Unit::Count,
            resumed as f64,
            None,
        ),
    ];
    for (what, unit, value, goal) in figures {
        let section = format!("Crowd: {watchers} watches of one kind, {CHANGES_PER_SECOND} changes a second");
        let label = Label::new(section, what, unit);
        report.record(running.side, Label { goal, ..label }, value);
    }
    Ok(())
}
