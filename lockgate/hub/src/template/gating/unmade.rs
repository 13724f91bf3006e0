//! What a cluster is to get and cannot be given: its manifest cannot be made, or the hub does not take its Work.

use std::collections::BTreeMap;

use lockgate_api::Binding;
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::run::{Act, Member, Run, Step};
use lockgate_engine::render::{self, RenderError};

use super::rows::{Plan, Row};
use crate::template::{Walk, brief};

/// Why a manifest cannot be made.
#[derive(Clone)]
pub(in crate::template) struct Unmade {
    /// The reason of its event.
    pub(in crate::template) reason: &'static str,
    /// In words.
    pub(in crate::template) message: String,
    /// Whether the hub did not take it, which may be over at any time: it is tried again.
    pub(in crate::template) is_refused: bool,
}

impl Unmade {
    pub(in crate::template) fn new(error: &RenderError) -> Self {
        Self {
            reason: match error {
                RenderError::Override(_) => "ApplyOverridePolicyFailed",
                _ => "SyncWorkFailed",
            },
            message: brief::cut(&error.to_string(), brief::MESSAGE).to_owned(),
            is_refused: false,
        }
    }

    fn refused(message: String) -> Self {
        Self {
            reason: "SyncWorkFailed",
            message,
            is_refused: true,
        }
    }
}

impl Walk<'_> {
    /// Why what a cluster is to get cannot be made, if it cannot: also because the hub did not take it.
    fn unmade(
        &self,
        binding: &Binding,
        plan: &Plan<'_>,
        row: &Row,
        record: &RolloutRecord,
    ) -> Option<Unmade> {
        if let Err(error) = self.named_work(&row.cluster) {
            return Some(Unmade::new(&error));
        }
        let input = self.input(binding, &row.share, plan, "");
        if let Err(error) = render::render(&input) {
            return Some(Unmade::new(&error));
        }
        self.refused(record, &row.cluster)
    }

    /// Why the hub does not take what a cluster is to get, in its last words. That it does not is what the record says.
    fn refused(&self, record: &RolloutRecord, cluster: &str) -> Option<Unmade> {
        let first = record.refused.get(cluster)?;
        let verdicts = self.state.verdicts.lock();
        let last = verdicts
            .get(self.id)
            .and_then(|verdict| verdict.refused.get(cluster));
        let why = match last.unwrap_or(first).why.as_str() {
            "" => "the hub does not take it",
            why => why,
        };
        Some(Unmade::refused(why.to_owned()))
    }

    /// The clusters whose Works the hub does not take.
    pub(super) fn all_refused(&self, record: &RolloutRecord) -> BTreeMap<String, Unmade> {
        let refused = record.refused.keys();
        refused
            .filter_map(|cluster| Some((cluster.clone(), self.refused(record, cluster)?)))
            .collect()
    }

    /// Takes into the record what the hub did not take in the passes before.
    pub(super) fn take_refusals(&self, record: &mut RolloutRecord, members: &[Member<'_>]) {
        let mut verdicts = self.state.verdicts.lock();
        let lately = verdicts.get_mut(self.id).map(|verdict| &mut verdict.refused);
        record.take_refusals(lately.unwrap_or(&mut BTreeMap::new()), members);
    }

    /// The clusters whose manifests cannot be made, if one of them is to go now or could not before.
    pub(super) fn all_unmade(
        &self,
        binding: &Binding,
        plan: &Plan<'_>,
        rows: &[Row],
        record: &RolloutRecord,
        run: &Run<'_>,
    ) -> BTreeMap<String, Unmade> {
        let known = self
            .state
            .verdicts
            .lock()
            .get(self.id)
            .is_some_and(|verdict| !verdict.unrendered.is_empty());
        let fails = |(step, row): (&Step<'_>, &Row)| {
            matches!(step.act, Act::Release(_)) && self.unmade(binding, plan, row, record).is_some()
        };
        if !known && record.refused.is_empty() && !run.steps.iter().zip(rows).any(fails) {
            return BTreeMap::new();
        }
        let waiting = rows.iter().filter(|row| !row.is_there());
        waiting
            .filter_map(|row| Some((row.cluster.clone(), self.unmade(binding, plan, row, record)?)))
            .collect()
    }
}
