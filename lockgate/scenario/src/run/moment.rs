//! A moment to compare with later: what was where, and how much had been written.

use std::collections::BTreeMap;

use super::Runner;
use crate::file::{Action, Check, Place, Scenario};
use crate::server::Snapshot;

/// A moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) snapshots: BTreeMap<Place, Snapshot>,
    pub(super) hub_writes: u64,
    pub(super) member_writes: u64,
}

impl Runner<'_> {
    pub(super) async fn moment(&self) -> Result<Moment, String> {
        let mut moment = Moment {
            hub_writes: self.hub_writes(),
            member_writes: self.member_writes(),
            ..Moment::default()
        };
        if compares(self.scenario) {
            for (place, site) in self.world.sites() {
                let snapshot = site.snapshot().await;
                moment
                    .snapshots
                    .insert(place, snapshot.map_err(|problem| problem.to_string())?);
            }
        }
        Ok(moment)
    }

    pub(super) fn hub_writes(&self) -> u64 {
        self.world.hub.line.writes()
    }

    pub(super) fn member_writes(&self) -> u64 {
        self.world.members.values().map(|site| site.line.writes()).sum()
    }
}

/// Whether a scenario compares anything with an earlier moment: else nobody needs to look.
fn compares(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| match &step.action {
        Action::Expect(expectations) => expectations
            .iter()
            .any(|expectation| matches!(expectation.check, Check::Unchanged { .. })),
        _ => false,
    })
}
