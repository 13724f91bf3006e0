//! One template's rollout: what each of its clusters is told now, what is marked on its Work, and what it all comes to.
//!
//! Everything follows from what is stored: the record on the binding, the marks on the Works, and what members report. A
//! Work's digest says which content its member was told, so that no success of an old content counts for a new one, and a
//! cluster whose content does not change has nothing before it. What always holds:
//!
//! - who starts is decided by [`rollout::decide`](super::rollout::decide) alone;
//! - content goes out with the greater of the old and the new replicas; fewer replicas, in the same order, and the removal of
//!   copies come last, when every cluster has succeeded and soaked (or first, where nothing may run twice);
//! - a suspended cluster is told nothing.

mod reading;
mod stand;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::rollout_policy::RolloutRun;

use super::decision::{Overall, Place, Verdict};
use super::groups::Groups;
use super::record::{Back, RolloutRecord};
use super::rollout::decide;
use super::rules::{List, Order, Rules};
use super::standing::{Standing, Status};
use super::strategy::Followed;
use stand::{Stand, block, kept, stand};

pub use reading::{Told, seen};

/// What is added to why a cluster is done, where nobody knows how it is.
const UNKNOWN: &str = "; applied, its health is unknown";

/// How a member is with what it was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It has not got it, or has not said anything of it.
    Unknown,
    /// It has it, and is not well, or not yet.
    UnderWay,
    /// It has it, and is well.
    Well,
    /// It has it, and nobody knows how such things are: that counts as well.
    Applied,
    /// It refused it, or has given up.
    Bad,
}

/// Whether a member can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It cannot: nobody knows how it is, and its time does not run.
    Lost,
    /// It can, since then if somebody knows.
    Since(Option<Timestamp>),
}

/// A cluster that is to have a copy.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub cluster: &'a str,
    /// The digest of what it gets in the end.
    pub wanted: &'a str,
    /// The digest of the same with the replicas that it has, where it is to have fewer.
    pub kept: Option<&'a str>,
    /// Whether it is to have more than it has: a copy, or replicas.
    pub grows: bool,
    /// What its Work says; none if it has no Work.
    pub told: Option<&'a Told>,
    /// How it is with that.
    pub seen: Seen,
    /// Whether somebody holds it back.
    pub suspended: bool,
    /// Whether its Work is to be sent again that was held back.
    pub resumed: bool,
    /// Whether its Work was held back before the member got what it says: it takes its turn like one that was told nothing.
    pub unsent: bool,
    /// Whether it can be reached.
    pub reach: Reach,
    /// Whether somebody who needs it was told there already: it goes with them, whatever its turn.
    pub due: bool,
    /// Why what it is to get cannot be made, if it cannot. It has failed then, without having been told anything.
    pub unmade: Option<&'a str>,
}

impl Member<'_> {
    /// Whether it is to get this content, and was not told it yet.
    pub(super) fn waits_for(&self, digest: &str) -> bool {
        let told = self.told.filter(|_| !self.unsent);
        let is_told = told.is_some_and(|told| told.digest == digest);
        !is_told && (self.wanted == digest || self.kept == Some(digest))
    }
}

/// What decides about a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RunInput<'a> {
    /// How far it is.
    pub record: &'a RolloutRecord,
    /// The way back that it is, if it is one.
    pub back: Option<&'a Back>,
    /// The strategy.
    pub followed: &'a Followed,
    /// Its groups of the clusters that are to have copies.
    pub groups: &'a Groups,
    /// Those clusters, by name.
    pub members: &'a [Member<'a>],
    /// The clusters that have copies and are not to have any, by name.
    pub leaving: &'a [&'a str],
    /// The time.
    pub now: Timestamp,
}

/// Which content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What the cluster gets in the end.
    Wanted,
    /// The same with the replicas that it has.
    Kept,
}

/// What happens to a cluster's Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It takes this content now.
    Release(Target),
    /// It has this content.
    Stay(Target),
    /// It keeps what it has; if there is none, none is made.
    Hold,
}

/// What a Work says of itself beside its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// When its member was told.
    pub released_at: Option<Timestamp>,
    /// Since when it has been well.
    pub healthy_since: Option<Timestamp>,
    /// Since when it has not been well any more.
    pub failed_since: Option<Timestamp>,
}

/// What happens to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Its name.
    pub cluster: &'a str,
    /// What happens to its Work.
    pub act: Act,
    /// What its Work says from now on; none if no rollout ever told it anything.
    pub marks: Option<Marks>,
    /// How far it is.
    pub status: Status,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When its soak or its time ends.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: String,
}

/// Where a rollout is as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// It is on its way.
    Progressing,
    /// An operator stopped it.
    Paused,
    /// Too many failed, or some did and nothing more moves.
    Failed,
    /// It is everywhere.
    Succeeded,
    /// It was given up, and there is nothing to go back to.
    Aborted,
    /// It was given up, and the last good revision is on its way.
    RollingBack,
    /// It was given up, and the last good revision is everywhere.
    RolledBack,
    /// It was given up, and the last good revision fails too.
    RollbackFailed,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Progressing,
        Self::Paused,
        Self::Failed,
        Self::Succeeded,
        Self::Aborted,
        Self::RollingBack,
        Self::RolledBack,
        Self::RollbackFailed,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Paused => "Paused",
            Self::Failed => "Failed",
            Self::Succeeded => "Succeeded",
            Self::Aborted => "Aborted",
            Self::RollingBack => "RollingBack",
            Self::RolledBack => "RolledBack",
            Self::RollbackFailed => "RollbackFailed",
        }
    }

    /// Whether nothing is left to do.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Succeeded | Self::RolledBack)
    }
}

/// What a rollout does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// Every cluster that is to have a copy, by name.
    pub steps: Vec<Step<'a>>,
    /// Whether the copies that are no longer wanted go now.
    pub removes: bool,
    /// Where it is.
    pub phase: Phase,
    /// Why, for people.
    pub message: String,
    /// Why nothing starts, if too many failed.
    pub breach: Option<String>,
    /// Whether it is given up for the last good revision.
    pub rolls_back: bool,
    /// When to ask again.
    pub recheck_at: Option<Timestamp>,
}

impl Run<'_> {
    /// Whether it has succeeded everywhere, and nothing is left.
    pub fn is_complete(&self) -> bool {
        self.phase.is_settled()
    }

    /// How many clusters are done.
    pub fn done(&self) -> usize {
        let done = |step: &&Step<'_>| {
            matches!(step.act, Act::Stay(_))
                && step.until.is_none()
                && matches!(step.status, Status::Succeeded | Status::Skip)
        };
        self.steps.iter().filter(done).count()
    }

    /// The rollout as a binding's status tells it.
    pub fn view(&self, input: &RunInput<'_>, policy: &str) -> RolloutRun {
        view::view(self, input, policy)
    }
}

/// What a rollout does now.
pub fn run<'a>(input: &RunInput<'a>) -> Run<'a> {
    let rules = rules(input);
    let stamp = stamp(input);
    let mut stands: Vec<Stand> = input
        .members
        .iter()
        .map(|member| stand(member, input, &rules, stamp))
        .collect();
    block(input, &rules, &mut stands);
    let standings: Vec<Standing<'a>> = input
        .members
        .iter()
        .zip(&stands)
        .map(|(member, stand)| Standing {
            cluster: member.cluster,
            status: stand.told_as,
            since: stand.since,
        })
        .collect();
    let decision = decide(input.groups, &rules, &standings, input.now);
    let breach = decision.breach.map(|breach| breach.to_string());
    let held = held(input);
    let is_over = |stand: &Stand| {
        stand.at.is_some()
            && match stand.status {
                Status::Skip => true,
                Status::Succeeded => {
                    stand.told_as == Status::Skip
                        || rules.classify(stand.status, stand.since, input.now).list == List::Neither
                }
                _ => false,
            }
    };
    let everywhere = stands.iter().all(is_over);
    let last_stage = everywhere && held.is_none() && breach.is_none();
    let lowered = if last_stage {
        lowered(input, &rules, &stands)
    } else {
        BTreeSet::new()
    };
    let mut steps = Vec::with_capacity(stands.len());
    for ((member, stand), verdict) in input.members.iter().zip(&stands).zip(&decision.clusters) {
        let mut step = step(
            member,
            stand,
            verdict,
            held.as_deref(),
            kept(member, input),
            stamp,
        );
        if lowered.contains(member.cluster) {
            step.act = Act::Release(Target::Wanted);
            step.marks = Some(released(stamp));
            (step.status, step.since, step.until) = (Status::Progressing, Some(stamp), None);
            step.reason = "goes down to its replicas: every cluster has what it needs".to_owned();
        } else if stand.status != stand.told_as && stand.told_as == Status::Skip && !stand.blocked {
            step.reason = "an operator ended its soak".to_owned();
        }
        if member.seen == Seen::Applied && step.status == Status::Succeeded {
            step.reason.push_str(UNKNOWN);
        }
        steps.push(step);
    }
    let settled = steps.iter().all(|step| step.act == Act::Stay(Target::Wanted));
    let complete = everywhere && settled && input.leaving.is_empty();
    let failed = breach.is_some() || decision.overall() == Some(Overall::Failed);
    let phase = phase(input, complete, failed, held.is_some());
    let due = stands.iter().filter_map(|stand| stand.due);
    // Whoever is told now has until then, also if nothing more is heard of it.
    let tells = steps.iter().any(|step| matches!(step.act, Act::Release(_)));
    let deadline = rules.deadline.filter(|_| tells);
    let late = deadline
        .and_then(|deadline| SignedDuration::try_from(deadline).ok())
        .and_then(|deadline| stamp.checked_add(deadline).ok());
    let recheck_at = decision
        .recheck_after
        .and_then(|after| SignedDuration::try_from(after).ok())
        .and_then(|after| input.now.checked_add(after).ok())
        .into_iter()
        .chain(due)
        .chain(late)
        .filter(|due| *due > input.now)
        .min();
    let rolls_back = breach.is_some()
        && input.followed.rolls_back
        && input.back.is_none_or(|back| back.forward)
        && held.is_none()
        && input.record.good.is_some();
    let phase = if rolls_back { Phase::RollingBack } else { phase };
    let mut run = Run {
        steps,
        removes: if input.followed.breaks_first {
            held.is_none() && breach.is_none()
        } else {
            last_stage
        },
        phase,
        message: String::new(),
        breach,
        rolls_back,
        recheck_at,
    };
    run.message = view::message(&run, input, held.as_deref());
    run
}

/// Who goes down to its replicas now, when every cluster has what it needs: in the order of the strategy, too, the next when
/// those before are done.
fn lowered<'a>(input: &RunInput<'a>, rules: &Rules, stands: &[Stand]) -> BTreeSet<&'a str> {
    let standings: Vec<Standing<'a>> = input
        .members
        .iter()
        .zip(stands)
        .map(|(member, stand)| Standing {
            cluster: member.cluster,
            status: match stand.at {
                Some(Target::Kept) if member.suspended => Status::Suspended,
                Some(Target::Kept) => Status::ToApply,
                _ => Status::Skip,
            },
            since: None,
        })
        .collect();
    let decision = decide(input.groups, rules, &standings, input.now);
    decision.started().map(|verdict| verdict.cluster).collect()
}

/// The rules that count now.
fn rules(input: &RunInput<'_>) -> Rules {
    let mut rules = input.followed.rules.clone();
    if input.back.is_some_and(|back| !back.forward) {
        rules = rules.back();
    }
    if input.record.promoted_full {
        rules.order = Order::All;
        rules.mandatory.clear();
        rules.soak = std::time::Duration::ZERO;
    }
    rules
}

/// When a cluster is told something that is told now: later than any command, which is about what was told before.
fn stamp(input: &RunInput<'_>) -> Timestamp {
    let command = input.record.command.as_ref().map(|command| command.at);
    let after = command.and_then(|at| at.checked_add(SignedDuration::from_micros(1)).ok());
    after.map_or(input.now, |after| after.max(input.now))
}

/// Why nothing starts, whatever the strategy says.
fn held(input: &RunInput<'_>) -> Option<String> {
    match (input.back, &input.record.paused) {
        (Some(Back { to: None, why, .. }), _) => Some(format!("given up: {why}")),
        (_, Some(paused)) => Some(paused.clone()),
        _ => None,
    }
}

fn released(stamp: Timestamp) -> Marks {
    Marks {
        released_at: Some(stamp),
        ..Marks::default()
    }
}

/// What happens to one cluster before the last stage.
fn step<'a>(
    member: &Member<'a>,
    stand: &Stand,
    verdict: &Verdict<'a>,
    held: Option<&str>,
    kept: Option<&str>,
    stamp: Timestamp,
) -> Step<'a> {
    let target = if kept.is_some() {
        Target::Kept
    } else {
        Target::Wanted
    };
    let resting = stand.at.map_or(Act::Hold, Act::Stay);
    let mut step = Step {
        cluster: member.cluster,
        act: resting,
        marks: stand.marks,
        status: verdict.status,
        since: stand.since,
        until: verdict.due.filter(|_| verdict.place == Place::InFlight),
        reason: verdict.reason.to_string(),
    };
    if stand.blocked {
        step.status = stand.status;
        step.reason = "waits until the old copies are gone".to_owned();
    } else if stand.told_as != stand.status {
        step.status = stand.status;
    }
    if let Some(why) = member.unmade.filter(|_| stand.at.is_none()) {
        step.reason = format!("its manifest cannot be made: {why}");
    }
    let due = member.due && stand.status.is_waiting() && !stand.blocked;
    if due && verdict.place != Place::Starts {
        step.reason = "goes now, with what needs it".to_owned();
    }
    if verdict.place == Place::Starts || due {
        match held {
            Some(held) => step.reason = format!("held: {held}"),
            None => {
                step.act = Act::Release(target);
                step.marks = Some(released(stamp));
                step.status = Status::Progressing;
                step.since = Some(stamp);
            }
        }
    }
    if member.reach == Reach::Lost && step.status == Status::Progressing {
        step.reason = "cannot be reached".to_owned();
    }
    step
}

fn phase(input: &RunInput<'_>, complete: bool, failed: bool, held: bool) -> Phase {
    let back = input.back.filter(|back| !back.forward);
    match back {
        Some(Back { to: None, .. }) => Phase::Aborted,
        Some(_) if complete => Phase::RolledBack,
        None if complete => Phase::Succeeded,
        _ if held => Phase::Paused,
        Some(_) if failed => Phase::RollbackFailed,
        Some(_) => Phase::RollingBack,
        None if failed => Phase::Failed,
        None => Phase::Progressing,
    }
}
