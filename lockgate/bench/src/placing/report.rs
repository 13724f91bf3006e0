//! The figures, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::run::Findings;

/// Everything that was found out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacingReport {
    pub(crate) command: String,
    pub(crate) clusters: u32,
    pub(crate) templates: u32,
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
    /// Until nothing was left to do.
    pub(crate) settled_s: f64,
    /// The bindings that were written.
    pub(crate) bindings: usize,
    /// What the control plane wrote, without events.
    pub(crate) hub_writes: u64,
    pub(crate) member_writes: u64,
    /// In what time it should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target_s: Option<f64>,
}

impl Phase {
    /// Whether it was done in time.
    fn passed(&self) -> Option<bool> {
        self.target_s.map(|target| self.settled_s < target)
    }
}

impl Findings for PlacingReport {
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
            "{} clusters, {} templates; the hub is durable, members are in memory, everything is in one process without sockets\n",
            self.clusters, self.templates
        );
        let _ = writeln!(
            text,
            "{:36}  {:>9}  {:>9}  {:>10}  {:>13}  {:>8}",
            "phase", "settled s", "bindings", "hub writes", "member writes", "target"
        );
        for phase in &self.phases {
            let target = match (phase.target_s, phase.passed()) {
                (Some(target), Some(passed)) => {
                    format!("< {target} s {}", if passed { "PASS" } else { "MISS" })
                }
                _ => String::new(),
            };
            let line = format!(
                "{:36}  {:>9.2}  {:>9}  {:>10}  {:>13}  {:>8}",
                phase.name, phase.settled_s, phase.bindings, phase.hub_writes, phase.member_writes, target
            );
            let _ = writeln!(text, "{}", line.trim_end());
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
    fn targets_are_judged() {
        let phase = |settled_s: f64, target_s: Option<f64>| Phase {
            name: "label".to_owned(),
            settled_s,
            bindings: 100,
            hub_writes: 300,
            member_writes: 100,
            target_s,
        };
        let report = PlacingReport {
            command: "lockgate bench placing".to_owned(),
            clusters: 10,
            templates: 100,
            machine: Machine::default(),
            phases: vec![phase(1.5, Some(2.0)), phase(2.5, Some(2.0)), phase(3.0, None)],
            incomplete: None,
        };
        let text = report.render();
        let lines: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(lines[2].ends_with("< 2 s PASS"), "{text}");
        assert!(lines[1].ends_with("< 2 s MISS"), "{text}");
        assert!(lines[0].ends_with("100"), "{text}");
    }
}
