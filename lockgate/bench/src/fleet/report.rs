//! The figures of a fleet, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::run::Findings;
use crate::table::aligned;

/// Everything that was found out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetReport {
    pub(crate) command: String,
    pub(crate) templates: u32,
    pub(crate) members: u32,
    pub(crate) ready: bool,
    /// For each of what writes are counted.
    #[serde(skip)]
    pub(crate) each: &'static str,
    pub(crate) machine: Machine,
    pub(crate) phases: Vec<Phase>,
    /// Why there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) incomplete: Option<String>,
}

/// One phase.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Objects in members that had to change.
    pub(crate) objects: usize,
    /// Until every member was as it should be.
    pub(crate) wall_s: f64,
    pub(crate) objects_per_s: f64,
    /// Until nothing was left to do: status had come back, and all was quiet.
    pub(crate) settled_s: f64,
    /// From the sending of an object to its arrival at the last member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p95_ms: Option<f64>,
    /// What the control plane wrote to the hub, and to all members.
    pub(crate) hub: Writes,
    pub(crate) members: Writes,
    /// Of this whole process: control plane, servers, load and checks.
    pub(crate) cpu_s: f64,
    pub(crate) peak_mb: f64,
}

/// Writes of one phase.
#[derive(Debug, Default, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Writes {
    /// Without events.
    pub(crate) total: u64,
    pub(crate) events: u64,
    pub(crate) per_template: f64,
    pub(crate) events_per_template: f64,
    /// By verb and resource.
    pub(crate) by: BTreeMap<String, u64>,
}

impl Writes {
    pub(crate) fn of(by: BTreeMap<String, u64>, templates: usize) -> Self {
        let is_event = |what: &str| what.ends_with(" events");
        let events = by
            .iter()
            .filter(|(what, _)| is_event(what))
            .map(|(_, count)| count)
            .sum();
        let total = by
            .iter()
            .filter(|(what, _)| !is_event(what))
            .map(|(_, count)| count)
            .sum();
        let each = |count: u64| count as f64 / templates.max(1) as f64;
        Self {
            total,
            events,
            per_template: each(total),
            events_per_template: each(events),
            by,
        }
    }
}

impl Findings for FleetReport {
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
            "{} templates, {} members{}; the hub is durable, members are in memory, everything is in one process without sockets",
            self.templates,
            self.members,
            if self.ready {
                " whose workloads become ready"
            } else {
                " without workload controllers"
            }
        );
        let _ = writeln!(text, "every object was read back and compared after each phase\n");
        let header = [
            "phase",
            "objects",
            "wall s",
            "objects/s",
            "settled s",
            "p50 ms",
            "p95 ms",
            "hub writes",
            "events",
            "member writes",
            "cpu s",
            "peak MB",
        ];
        let mut rows = vec![header.map(str::to_owned)];
        let optional =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        for phase in &self.phases {
            rows.push([
                phase.name.clone(),
                phase.objects.to_string(),
                format!("{:.2}", phase.wall_s),
                format!("{:.0}", phase.objects_per_s),
                format!("{:.2}", phase.settled_s),
                optional(phase.p50_ms),
                optional(phase.p95_ms),
                format!("{:.2}", phase.hub.per_template),
                format!("{:.2}", phase.hub.events_per_template),
                format!("{:.2}", phase.members.per_template),
                format!("{:.2}", phase.cpu_s),
                format!("{:.0}", phase.peak_mb),
            ]);
        }
        text.push_str(&aligned(&rows));
        let _ = writeln!(
            text,
            "\nwrites and events are those of the control plane, for each {}; cpu is of the whole process",
            self.each
        );
        for phase in self.phases.iter().filter(|phase| !phase.hub.by.is_empty()) {
            let by: Vec<String> = phase
                .hub
                .by
                .iter()
                .map(|(what, count)| format!("{count} {what}"))
                .collect();
            let _ = writeln!(text, "{}: {}", phase.name, by.join(", "));
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
    fn events_are_counted_apart() {
        let by = BTreeMap::from([
            ("POST events".to_owned(), 4),
            ("POST works".to_owned(), 3),
            ("PUT works/status".to_owned(), 3),
        ]);
        let writes = Writes::of(by, 2);
        assert_eq!((writes.total, writes.events), (6, 4));
        assert!((writes.per_template - 3.0).abs() < f64::EPSILON);
    }
}
