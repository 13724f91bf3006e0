//! A rollout as people see it.

use lockgate_api::rollout_policy::{RolloutRun, RunCluster, RunGroup};

use super::{Phase, Run, RunInput, Seen, Step, UNKNOWN};
use crate::gate::standing::Status;
use crate::gate::suspension::some;
use crate::observe::stamp;

/// Where leaving clusters are shown, after all groups.
const LEAVING: &str = "leaving";
/// How they are.
const LEAVES: &str = "Leaving";
/// How many names a message shows.
const NAMES: usize = 3;

/// The rollout as a binding's status tells it. One that is over tells no clusters: the rest of the status does.
pub(super) fn view(run: &Run<'_>, input: &RunInput<'_>, policy: &str) -> RolloutRun {
    let record = input.record;
    let mut groups = Vec::new();
    if !run.is_complete() {
        let step = |cluster: &String| {
            let at = run
                .steps
                .binary_search_by(|step| step.cluster.cmp(cluster.as_str()))
                .ok()?;
            run.steps.get(at)
        };
        groups.extend(input.groups.iter().map(|group| {
            let clusters = group.clusters.iter().filter_map(step);
            let clusters = clusters.map(|step| cluster(step, input)).collect();
            RunGroup::of(group.index.into(), &group.name, clusters)
        }));
        if !input.leaving.is_empty() {
            groups.push(leaving(run, input));
        }
    }
    RolloutRun {
        policy: policy.to_owned(),
        revision: record.revision,
        good_revision: if run.is_complete() {
            Some(record.revision)
        } else {
            record.good.as_ref().map(|good| good.revision)
        },
        phase: run.phase.name().to_owned(),
        message: run.message.clone(),
        command: record
            .command
            .as_ref()
            .map(super::super::record::Command::told)
            .unwrap_or_default(),
        groups,
    }
}

fn cluster(step: &Step<'_>, input: &RunInput<'_>) -> RunCluster {
    let at = input
        .members
        .binary_search_by(|member| member.cluster.cmp(step.cluster))
        .ok();
    let told = at
        .and_then(|at| input.members.get(at))
        .and_then(|member| member.told);
    let revision = if matches!(step.act, super::Act::Release(_)) {
        input.record.revision
    } else {
        told.map_or(0, |told| told.revision)
    };
    RunCluster {
        name: step.cluster.to_owned(),
        state: step.status.name().to_owned(),
        reason: step.reason.clone(),
        since: step.since.map(stamp),
        until: step.until.map(stamp),
        revision,
    }
}

fn leaving(run: &Run<'_>, input: &RunInput<'_>) -> RunGroup {
    let reason = if run.removes {
        "goes now"
    } else {
        "is kept until every cluster has its copy"
    };
    let last = input.groups.iter().map(|group| group.index).max();
    let clusters = input.leaving.iter().map(|cluster| RunCluster {
        name: (*cluster).to_owned(),
        state: LEAVES.to_owned(),
        reason: reason.to_owned(),
        ..RunCluster::default()
    });
    let index = last.map_or(0, |last| i64::from(last) + 1);
    RunGroup::of(index, LEAVING, clusters.collect())
}

/// What it comes to, in a sentence.
pub(super) fn message(run: &Run<'_>, input: &RunInput<'_>, held: Option<&str>) -> String {
    let record = input.record;
    let done = run.done();
    let total = run.steps.len();
    let progress = format!("{done} of {total} clusters are done");
    let given_up = input.back.map(|back| match &back.to {
        Some(to) => format!(
            "revision {} was given up for revision {}: {}",
            back.from, to.revision, back.why
        ),
        None => format!(
            "revision {} was given up, and no revision has succeeded everywhere before: {}",
            back.from, back.why
        ),
    });
    let mut text = match run.phase {
        Phase::Succeeded => {
            let unknown = input.members.iter().any(|member| member.seen == Seen::Applied);
            let unknown = if unknown { UNKNOWN } else { "" };
            format!("revision {} is everywhere{unknown}", record.revision)
        }
        Phase::RolledBack | Phase::Aborted => String::new(),
        Phase::Paused => format!("{progress}; paused: {}", held.unwrap_or_default()),
        Phase::Failed | Phase::RollbackFailed => {
            let why = run.breach.clone().unwrap_or_else(|| failures(run));
            format!("{progress}; {why}")
        }
        Phase::Progressing => progress,
        Phase::RollingBack => match &run.breach {
            Some(breach) => format!("{progress}; {breach}"),
            None => progress,
        },
    };
    if let Some(given_up) = given_up {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&given_up);
    }
    let outside = input.groups.outside();
    if !run.is_complete() && !outside.is_empty() {
        text.push_str("; ");
        text.push_str(&some(outside.iter().map(String::as_str), NAMES));
        text.push_str(" not in the placement, last");
    }
    if !run.is_complete() && !run.removes && !input.leaving.is_empty() {
        text.push_str("; ");
        text.push_str(&some(input.leaving.iter().copied(), NAMES));
        text.push_str(" kept until every cluster has its copy");
    }
    text
}

fn failures(run: &Run<'_>) -> String {
    let failed: Vec<&str> = run
        .steps
        .iter()
        .filter(|step| matches!(step.status, Status::Failed | Status::TimeOut))
        .map(|step| step.cluster)
        .collect();
    format!("{} failed", some(failed.into_iter(), NAMES))
}
