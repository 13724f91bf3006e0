//! What a rollout decides: for every cluster where it is and why, and what it comes to as a whole.

use std::time::Duration;

use jiff::Timestamp;

use super::groups::DecisionGroup;
use super::reason::{Breach, Reason};
use super::standing::{Standing, Status};

/// What a rollout does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Every selected cluster, by name.
    pub clusters: Vec<Verdict<'a>>,
    /// The clusters that are known but not selected any more, by name.
    pub removed: Vec<Standing<'a>>,
    /// Set while nothing starts, for too many failed.
    pub breach: Option<Breach<'a>>,
    /// When to ask again, if nobody says anything new before.
    pub recheck_after: Option<Duration>,
    /// Which clusters are worked on, those that are under way before those that start.
    pub(super) rollout: Vec<usize>,
}

/// Where one cluster is, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Its name.
    pub cluster: &'a str,
    /// Its group.
    pub group: &'a DecisionGroup,
    /// Its status, which is [`Status::TimeOut`] once its time has run out.
    pub status: Status,
    /// Since when, as it was said.
    pub since: Option<Timestamp>,
    /// When its soak or its time ends, or ended.
    pub due: Option<Timestamp>,
    /// Where it is.
    pub place: Place,
    /// Why.
    pub reason: Reason<'a>,
}

/// Where a cluster is in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It starts now.
    Starts,
    /// It has started, and is not done: under way, not well but in time, or soaking.
    InFlight,
    /// Its time ran out in this very decision.
    TimedOut,
    /// It has not started, and does not now.
    Waits,
    /// There is nothing to do: done, skipped, or timed out before.
    Over,
}

impl<'a> Decision<'a> {
    /// The clusters that start now, in the order in which they were chosen.
    pub fn started(&self) -> impl Iterator<Item = &Verdict<'a>> {
        self.rollout().filter(|verdict| verdict.place == Place::Starts)
    }

    /// The clusters that are worked on: those that have started, and those that start now.
    pub fn rollout(&self) -> impl Iterator<Item = &Verdict<'a>> {
        self.rollout.iter().map(|at| &self.clusters[*at])
    }

    /// The clusters whose time ran out in this very decision, by name.
    pub fn timed_out(&self) -> impl Iterator<Item = &Verdict<'a>> {
        self.clusters
            .iter()
            .filter(|verdict| verdict.place == Place::TimedOut)
    }

    /// Why each cluster is where it is: the selected ones by name, then those that are not selected any more.
    pub fn reasons(&self) -> impl Iterator<Item = (&'a str, Reason<'a>)> {
        let selected = self
            .clusters
            .iter()
            .map(|verdict| (verdict.cluster, verdict.reason));
        let removed = self
            .removed
            .iter()
            .map(|standing| (standing.cluster, Reason::NotSelected));
        selected.chain(removed)
    }

    /// What it comes to as a whole; `None` where no cluster is selected. A soaking cluster is not done.
    pub fn overall(&self) -> Option<Overall> {
        let status = |verdict: &Verdict<'_>| match (verdict.place, verdict.status) {
            (Place::InFlight, Status::Succeeded) => Status::Progressing,
            (_, status) => status,
        };
        overall(self.clusters.iter().map(status), self.breach.is_some())
    }
}

/// What a rollout comes to as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overall {
    /// Some clusters are not done.
    Progressing,
    /// Every cluster is done.
    Succeeded,
    /// Some failed, and nothing more moves.
    Failed,
}

impl Overall {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

/// What clusters come to together; `None` where there are none. Failures show once nothing else moves, by itself or because
/// too many failed.
pub fn overall(statuses: impl IntoIterator<Item = Status>, breach: bool) -> Option<Overall> {
    let (mut any, mut moves, mut failed) = (false, false, false);
    for status in statuses {
        any = true;
        failed |= status.is_failure();
        moves |= status.is_waiting()
            || matches!(status, Status::Progressing | Status::Unknown | Status::Suspended);
    }
    if !any {
        None
    } else if breach || failed && !moves {
        Some(Overall::Failed)
    } else if moves {
        Some(Overall::Progressing)
    } else {
        Some(Overall::Succeeded)
    }
}
