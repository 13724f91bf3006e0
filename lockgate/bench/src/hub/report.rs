//! The figures, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::process::Memory;
use crate::run::Findings;
use crate::table::aligned;

/// Everything that was found out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HubReport {
    pub(super) command: String,
    pub(super) templates: u32,
    pub(super) members: usize,
    pub(super) machine: Machine,
    pub(super) phases: Vec<Phase>,
    /// Of each process, while everything is there.
    pub(super) memory: Vec<(String, Memory)>,
    /// Why there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) incomplete: Option<String>,
}

/// One phase.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Phase {
    pub(super) name: String,
    /// Objects in members that had to change.
    pub(super) objects: usize,
    /// From the first request until every member was as it should be.
    pub(super) wall_s: f64,
    pub(super) objects_per_s: f64,
    /// From the sending of an object until the last member has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p95_ms: Option<f64>,
    /// What the hub was asked to write, by the load too; by verb and resource.
    pub(super) hub_writes: BTreeMap<String, u64>,
    /// Until all rested.
    pub(super) cpu: Vec<Used>,
}

/// The CPU time of a process in one phase.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Used {
    pub(super) process: String,
    pub(super) seconds: f64,
}

impl Findings for HubReport {
    fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    fn end(&mut self, load: f64, why: Option<String>) {
        self.machine.load_after = load;
        self.incomplete = why;
    }

    fn render(&self) -> String {
        let mut text = format!("{}\n\n", self.command);
        for line in self.machine.lines() {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(
            text,
            "{} templates, {} members; every member was read back after each phase\n",
            self.templates, self.members
        );
        let mut header: Vec<String> = [
            "phase",
            "objects",
            "wall s",
            "objects/s",
            "p50 ms",
            "p95 ms",
            "hub writes",
        ]
        .map(str::to_owned)
        .into();
        header.extend(self.memory.iter().map(|(name, _)| format!("{name} s")));
        let mut rows = vec![header];
        let optional =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        for phase in &self.phases {
            let mut row = vec![
                phase.name.clone(),
                phase.objects.to_string(),
                format!("{:.2}", phase.wall_s),
                format!("{:.0}", phase.objects_per_s),
                optional(phase.p50_ms),
                optional(phase.p95_ms),
                match phase.hub_writes.values().sum::<u64>() {
                    0 => "-".to_owned(),
                    writes => writes.to_string(),
                },
            ];
            row.extend(phase.cpu.iter().map(|used| format!("{:.2}", used.seconds)));
            rows.push(row);
        }
        text.push_str(&aligned(&rows));
        text.push_str("\nthe last columns are seconds of CPU of each process until all rested; hub writes are everybody's, but for leases and events\n");
        for (name, memory) in &self.memory {
            let _ = writeln!(
                text,
                "memory of {name}: {:.1} MB resident, {:.1} MB at its peak",
                memory.resident, memory.peak
            );
        }
        if let Some(why) = &self.incomplete {
            let _ = writeln!(text, "\nINCOMPLETE: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_column() {
        let phase = Phase {
            name: "create".into(),
            objects: 6,
            wall_s: 2.0,
            objects_per_s: 3.0,
            p50_ms: None,
            p95_ms: None,
            hub_writes: BTreeMap::from([("POST works".to_owned(), 6)]),
            cpu: vec![Used {
                process: "hub".into(),
                seconds: 1.5,
            }],
        };
        let report = HubReport {
            command: "lockgate bench hub".into(),
            templates: 2,
            members: 3,
            machine: Machine::default(),
            phases: vec![phase],
            memory: vec![("hub".to_owned(), Memory::default())],
            incomplete: None,
        };
        let text = report.render();
        assert!(text.contains("hub s\n") && text.contains("1.50\n"), "{text}");
    }
}
