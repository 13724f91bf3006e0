//! How much memory a server takes, idle and with many objects; and how long it takes to open their data again.

use std::time::Duration;

use bytes::Bytes;

use crate::arguments::ApiArguments;
use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::load::drive;
use crate::operations::make_namespace;
use crate::payload::CONFIG_MAP;
use crate::process::{Memory, Process};
use crate::progress::Progress;
use crate::report::{Goal, Label, Report, Unit};
use crate::servers::{Running, Servers, Side};
use crate::verify;

const SECTION: &str = "Memory";
const NAMESPACE: &str = "bench-memory";
const IDLE: &str = "idle";
const IDLE_HUB: &str = "idle, with the control plane in it";
/// For a server to finish what it does after an answer.
const SETTLE: Duration = Duration::from_secs(3);

/// Fills new servers, one after the other, so that neither has the other's load beside it.
pub(crate) async fn measure(
    servers: &Servers,
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    for side in servers.sides() {
        let running = servers.start(side).await?;
        fill_and_record(&running, arguments, report)
            .await
            .map_err(BenchError::on(side))?;
        reopen(servers, running, arguments, report)
            .await
            .map_err(BenchError::on(side))?
            .stop()
            .await?;
    }
    let hub = servers.start_hub().await?;
    tokio::time::sleep(settle(arguments)).await;
    record(&hub, IDLE_HUB, report)?;
    hub.stop().await
}

fn settle(arguments: &ApiArguments) -> Duration {
    if arguments.quick { SETTLE / 10 } else { SETTLE }
}

async fn fill_and_record(
    running: &Running,
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    let settle = settle(arguments);
    tokio::time::sleep(settle).await;
    record(running, IDLE, report)?;
    let client = running.client(arguments.connections).await?;
    make_namespace(&client, NAMESPACE).await?;
    let mut present = 0;
    for &count in &arguments.objects {
        fill(&client, present..count, arguments.concurrency).await?;
        present = count;
        tokio::time::sleep(settle).await;
        record(running, &format!("{count} objects"), report)?;
    }
    // Reading back takes memory too: it comes last.
    verify::collection(&client, &CONFIG_MAP, NAMESPACE, present, 0).await
}

/// Starts a server again with everything that was written, again and again; afterwards all of it must be there.
async fn reopen(
    servers: &Servers,
    mut running: Running,
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<Running, BenchError> {
    let Some(&count) = arguments.objects.last() else {
        return Ok(running);
    };
    let what = format!("{count} objects: start until ready");
    let label = Label::new("Opening a data directory", what, Unit::Milliseconds);
    let label = match count {
        100_000 => label.goal(Goal::Below(2_000.0)),
        _ => label,
    };
    let progress = Progress::start(
        format!("starting with {count} objects ({:?})", running.side),
        arguments.repeat,
    );
    for _ in 0..arguments.repeat {
        running = servers.start_again(running).await?;
        report.record(running.side, label.clone(), running.took.as_secs_f64() * 1e3);
        progress.advance(1);
    }
    let client = running.client(1).await?;
    verify::collection(&client, &CONFIG_MAP, NAMESPACE, count, 0).await?;
    Ok(running)
}

async fn fill(
    client: &std::sync::Arc<Client>,
    numbers: std::ops::Range<usize>,
    concurrency: usize,
) -> Result<(), BenchError> {
    let progress = Progress::start(format!("filling up to {} objects", numbers.end), numbers.len());
    let client = client.clone();
    let (first, count) = (numbers.start, numbers.len());
    drive(count, concurrency, &progress, move |lane, number| {
        let client = client.clone();
        async move {
            let body = CONFIG_MAP.body(first + number, 0, None);
            let answer: Bytes = client
                .call(lane, &Call::post(CONFIG_MAP.collection(NAMESPACE), body))
                .await?;
            drop(answer);
            Ok(())
        }
    })
    .await?;
    Ok(())
}

fn record(running: &Running, what: &str, report: &mut Report) -> Result<(), BenchError> {
    let each: Vec<(&Process, Memory)> = running
        .processes
        .iter()
        .map(|process| Ok((process, process.memory()?)))
        .collect::<Result<_, BenchError>>()?;
    let all = each
        .iter()
        .fold(Memory::default(), |sum, (_, memory)| sum + *memory);
    let label = |text: String| Label::new(SECTION, text, Unit::Megabytes);
    let resident = label(format!("{what}: resident"));
    let goal = match what {
        IDLE => Some(Goal::Below(40.0)),
        "100000 objects" => Some(Goal::Below(1_000.0)),
        _ => None,
    };
    report.record(
        running.side,
        goal.map_or(resident.clone(), |goal| resident.clone().goal(goal)),
        all.resident,
    );
    report.record(running.side, label(format!("{what}: peak")), all.peak);
    if running.side == Side::Real {
        for (process, memory) in each {
            report.record(
                Side::Real,
                label(format!("{what}: resident, {} alone", process.name)),
                memory.resident,
            );
        }
    }
    Ok(())
}
