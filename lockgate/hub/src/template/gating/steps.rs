//! What the gate lets through, for the Works.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::{Work, keys};
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::run::{Act, Marks, Run, Target, Told};

use super::rows::Row;
use super::unmade::Unmade;
use crate::template::revisions::Stored;

/// What the gate lets through in this pass.
#[derive(Default)]
pub(in crate::template) struct Gate {
    /// What is sent in the place of the template.
    pub(in crate::template) stored: Option<Arc<Stored>>,
    /// What happens to each cluster; none if everything goes.
    steps: Option<BTreeMap<String, GateStep>>,
    removes: bool,
    /// The clusters whose manifests cannot be made, and why.
    pub(in crate::template) unmade: BTreeMap<String, Unmade>,
}

/// What happens to one cluster.
#[derive(Clone)]
pub(in crate::template) struct GateStep {
    pub(in crate::template) act: Act,
    pub(in crate::template) marks: Option<Marks>,
    /// The revision in which it is told something, if it is now.
    pub(in crate::template) revision: Option<i64>,
    /// The replicas that it has, where it is to have fewer.
    pub(in crate::template) kept: Option<i64>,
}

impl Gate {
    /// Nothing goes.
    pub(super) fn closed(stored: Option<Arc<Stored>>) -> Self {
        Self {
            stored,
            steps: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    /// Nothing new goes. What is there stays, and what was everywhere is made again where somebody deleted it.
    pub(super) fn held(
        rows: &[Row],
        record: &RolloutRecord,
        stored: Option<Arc<Stored>>,
        unmade: BTreeMap<String, Unmade>,
    ) -> Self {
        let steps = rows.iter().map(|row| {
            let act = match &row.told {
                Some(_) if row.is_there() => Act::Stay(Target::Wanted),
                None if record.is_settled() && !row.suspended => Act::Release(Target::Wanted),
                _ => Act::Hold,
            };
            let step = GateStep {
                act,
                marks: None,
                revision: matches!(act, Act::Release(_)).then_some(record.revision),
                kept: None,
            };
            (row.cluster.clone(), step)
        });
        Self {
            steps: Some(steps.collect()),
            unmade,
            ..Self::closed(stored)
        }
    }

    /// What happens to a cluster; none if nobody has a say in it.
    pub(in crate::template) fn step(&self, cluster: &str) -> Option<GateStep> {
        let steps = self.steps.as_ref()?;
        Some(steps.get(cluster).cloned().unwrap_or(GateStep {
            act: Act::Hold,
            marks: None,
            revision: None,
            kept: None,
        }))
    }

    /// Whether nobody says in which order anything goes.
    pub(in crate::template) fn is_open(&self) -> bool {
        self.steps.is_none()
    }

    /// Whether somebody is told something new.
    pub(in crate::template) fn releases(&self) -> bool {
        let mut steps = self.steps.iter().flat_map(BTreeMap::values);
        steps.any(|step| matches!(step.act, Act::Release(_)))
    }

    /// Whether copies that are no longer wanted may go.
    pub(in crate::template) fn removes(&self) -> bool {
        self.steps.is_none() || self.removes
    }
}

impl GateStep {
    /// It keeps its replicas for now; nobody else has a say in it.
    pub(in crate::template) fn keeping(replicas: i64) -> Self {
        Self {
            act: Act::Stay(Target::Kept),
            marks: None,
            revision: None,
            kept: Some(replicas),
        }
    }

    /// Whether a Work says so already.
    pub(in crate::template) fn is_said_by(&self, work: &Work) -> bool {
        let told = Told::of(&work.metadata);
        self.revision.is_none_or(|revision| revision == told.revision)
            && (self.marks.is_none() || self.marks == told.marks())
    }

    /// Makes a Work say so.
    pub(in crate::template) fn put(&self, work: &mut Work) {
        let metadata = &mut work.metadata;
        if let Some(revision) = self.revision {
            metadata
                .annotations
                .insert(keys::REVISION.to_owned(), revision.to_string());
        }
        if let Some(marks) = self.marks {
            marks.put(metadata);
        }
    }
}

/// Takes off a Work what a rollout wrote.
pub(in crate::template) fn unmark(work: &mut Work) {
    work.metadata.annotations.remove(keys::REVISION);
    Marks::default().put(&mut work.metadata);
}

/// What was decided, for the Works. Of those that are `tried` again this is what comes of it if the hub takes them.
pub(super) fn gate_of(
    rows: &[Row],
    run: &Run<'_>,
    record: &RolloutRecord,
    stored: Option<Arc<Stored>>,
    unmade: BTreeMap<String, Unmade>,
    tried: &BTreeMap<String, (Act, Option<Marks>)>,
) -> Gate {
    if record.is_settled() && run.is_complete() {
        return Gate {
            stored,
            ..Gate::default()
        };
    }
    let steps = run.steps.iter().zip(rows).map(|(step, row)| {
        let (mut act, marks) = tried.get(step.cluster).copied().unwrap_or((step.act, step.marks));
        if record.is_settled() && act == Act::Hold && !row.suspended {
            // It was everywhere: whoever deleted a Work by hand gets it back.
            act = Act::Release(Target::Wanted);
        }
        let gated = GateStep {
            act,
            marks,
            revision: matches!(act, Act::Release(_)).then_some(record.revision),
            kept: row.kept.as_ref().map(|(replicas, _)| *replicas),
        };
        (step.cluster.to_owned(), gated)
    });
    Gate {
        stored,
        steps: Some(steps.collect()),
        removes: run.removes,
        unmade,
    }
}
