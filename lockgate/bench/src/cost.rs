//! What a number of requests took: the time, and the CPU time of the server and of its client.

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::process::{Process, cpu_seconds};
use crate::report::{Goal, Label, Report, Unit};
use crate::servers::Side;

/// What was done, and how it is spoken of.
pub(crate) struct Phrase<'a> {
    pub(crate) section: &'a str,
    pub(crate) what: &'a str,
    /// What the latencies are latencies of.
    pub(crate) latency: &'a str,
    pub(crate) goal: Option<Goal>,
}

/// What it took; CPU time is in milliseconds for each operation.
pub(crate) struct Cost {
    pub(crate) per_second: f64,
    pub(crate) latencies: Latencies,
    pub(crate) server_cpu: f64,
    pub(crate) client_cpu: f64,
    /// Of a list's answer, in megabytes of a million bytes.
    pub(crate) size: Option<f64>,
}

impl Cost {
    /// Adds it to the report as one run.
    pub(crate) fn record(&self, report: &mut Report, side: Side, phrase: &Phrase<'_>) {
        let (what, latency) = (phrase.what, phrase.latency);
        let mut add = |name: String, unit: Unit, goal: Option<Goal>, value: f64| {
            let label = Label::new(phrase.section, name, unit);
            report.record(side, Label { goal, ..label }, value);
        };
        let milliseconds = [
            (format!("{what}: {latency} p50"), self.latencies.quantile(0.5)),
            (format!("{what}: {latency} p99"), self.latencies.quantile(0.99)),
            (format!("{what}: server CPU each"), self.server_cpu),
            (format!("{what}: client CPU each"), self.client_cpu),
        ];
        add(what.to_owned(), Unit::PerSecond, phrase.goal, self.per_second);
        for (name, value) in milliseconds {
            add(name, Unit::Milliseconds, None, value);
        }
        if let Some(size) = self.size {
            add(format!("{what}: size of the answer"), Unit::Megabytes, None, size);
        }
    }
}

/// Reads the CPU times before and after.
pub(crate) struct Meter<'a> {
    processes: &'a [Process],
    server: f64,
    client: f64,
}

impl<'a> Meter<'a> {
    pub(crate) fn start(processes: &'a [Process]) -> Result<Self, BenchError> {
        Ok(Self {
            processes,
            server: cpu_seconds(processes)?,
            client: Process::this().cpu_seconds()?,
        })
    }

    pub(crate) fn stop(
        self,
        operations: usize,
        per_second: f64,
        latencies: Latencies,
    ) -> Result<Cost, BenchError> {
        let each = 1e3 / operations.max(1) as f64;
        let server_cpu = (cpu_seconds(self.processes)? - self.server) * each;
        let client_cpu = (Process::this().cpu_seconds()? - self.client) * each;
        Ok(Cost {
            per_second,
            latencies,
            server_cpu,
            client_cpu,
            size: None,
        })
    }
}
