//! One whole measurement.

use std::io::Write as _;

use tempfile::TempDir;

use crate::arguments::{ApiArguments, Format, Section};
use crate::error::BenchError;
use crate::machine::{Machine, load_average};
use crate::report::Report;
use crate::servers::Servers;
use crate::{apply, members, memory, operations, start, table, watch};

/// Measures, and prints the report on standard output.
pub fn run(arguments: ApiArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| BenchError::Usage(format!("failed to start: {e}")))?;
    let arguments = arguments.settled();
    let mut report = Report {
        command: command(),
        ..Report::default()
    };
    let measured = runtime.block_on(async {
        tokio::select! {
            measured = measure(&arguments, &mut report) => measured,
            // What was started is stopped as the measurement is dropped.
            () = stop_signal() => Err(BenchError::Interrupted),
        }
    });
    // What was found out before a failure is worth seeing.
    if let Err(error) = &measured {
        if report.figures.is_empty() {
            return measured;
        }
        report.notes.push(format!("INCOMPLETE: {error}"));
    }
    report.machine.load_after = load_average();
    let text = match arguments.output {
        Format::Json => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
        format => table::render(&report, format),
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    measured
}

async fn measure(arguments: &ApiArguments, report: &mut Report) -> Result<(), BenchError> {
    let parent = arguments.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = TempDir::with_prefix_in("lockgate-bench-", &parent).map_err(BenchError::file(&parent))?;
    report.machine = Machine::inspect(scratch.path())?;
    if arguments.wants(Section::Members) {
        members::measure(arguments, report).await?;
    }
    let of_servers = [
        Section::Start,
        Section::Operations,
        Section::Apply,
        Section::Watch,
        Section::Crowd,
        Section::Memory,
    ];
    if of_servers.iter().any(|section| arguments.wants(*section)) {
        let servers = Servers::find(arguments, scratch.path()).await?;
        compare(&servers, arguments, report).await?;
    }
    Ok(())
}

async fn compare(servers: &Servers, arguments: &ApiArguments, report: &mut Report) -> Result<(), BenchError> {
    let needed = [
        Section::Start,
        Section::Operations,
        Section::Apply,
        Section::Watch,
    ];
    if needed.iter().any(|section| arguments.wants(*section)) {
        let fleet = start::measure(servers, arguments, report).await?;
        for running in &fleet {
            report
                .notes
                .push(format!("measured: {}", running.version().await?));
        }
        if arguments.wants(Section::Operations) {
            operations::measure(&fleet, arguments, report).await?;
        }
        if arguments.wants(Section::Apply) {
            apply::measure(&fleet, arguments, report).await?;
        }
        if arguments.wants(Section::Watch) {
            watch::measure(&fleet, arguments, report).await?;
        }
        for running in fleet {
            running.stop().await?;
        }
    }
    if arguments.wants(Section::Crowd) {
        watch::crowd(servers, arguments, report).await?;
    }
    if arguments.wants(Section::Memory) {
        memory::measure(servers, arguments, report).await?;
    }
    report.notes.extend([
        "durability: on; both servers acknowledge a write once it is synced to disk".into(),
        format!(
            "client: one for both, HTTP/2 over TLS on loopback, JSON, {} connections, {} requests at a time unless said otherwise",
            arguments.connections, arguments.concurrency
        ),
        "runs in turns; medians, with the least and the most in parentheses; everything written was read back and compared".into(),
    ]);
    if servers.sides().len() < 2 {
        report
            .notes
            .push("NOT COMPARED with a real kube-apiserver".into());
    }
    Ok(())
}

/// What a measurement in phases found out.
pub(crate) trait Findings: serde::Serialize {
    /// Whether there is nothing yet.
    fn is_empty(&self) -> bool;
    /// Takes in what is known in the end: the load of the machine, and why there is no more.
    fn end(&mut self, load: f64, why: Option<String>);
    /// The report as text.
    fn render(&self) -> String;
}

/// Prints what was found out, on standard output. What came before a failure is worth seeing, too.
pub(crate) fn conclude(
    measured: Result<(), BenchError>,
    mut findings: impl Findings,
    json: bool,
) -> Result<(), BenchError> {
    if measured.is_err() && findings.is_empty() {
        return measured;
    }
    let why = measured.as_ref().err().map(ToString::to_string);
    findings.end(load_average(), why);
    let text = if json {
        serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
    } else {
        findings.render()
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    measured
}

/// Resolves at the first Ctrl-C or SIGTERM: the real server runs on unless somebody stops it.
pub(crate) async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// What was typed, without the place of the program.
pub(crate) fn command() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = std::path::Path::new(&program)
        .file_name()
        .map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(program)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}
