//! How a cluster stands towards what it is to get, before anybody takes turns.

use jiff::Timestamp;

use super::{Marks, Member, Reach, RunInput, Seen, Target, Told};
use crate::gate::record::Verb;
use crate::gate::rules::{List, Rules};
use crate::gate::standing::Status;

/// How a cluster stands before anybody takes turns.
pub(super) struct Stand {
    /// What it has of the new content.
    pub(super) at: Option<Target>,
    /// How it is.
    pub(super) status: Status,
    pub(super) since: Option<Timestamp>,
    /// What the strategy is told about it: an operator may have ended its soak, or something else goes first.
    pub(super) told_as: Status,
    pub(super) marks: Option<Marks>,
    /// When a cluster that is under way with an older content frees its place.
    pub(super) due: Option<Timestamp>,
    /// Whether it waits until the old copies are gone.
    pub(super) blocked: bool,
}

/// How a cluster stands towards what it is to get.
pub(super) fn stand(member: &Member<'_>, input: &RunInput<'_>, rules: &Rules, stamp: Timestamp) -> Stand {
    let now = input.now;
    let digest = member.told.map(|told| told.digest.as_str());
    let at = if digest == Some(member.wanted) {
        Some(Target::Wanted)
    } else if digest.is_some() && digest == member.kept {
        Some(Target::Kept)
    } else {
        None
    };
    // What it was told by a rollout that is not over; before that, it has nothing before it.
    let told = member
        .told
        .filter(|told| told.revision > input.record.good_revision());
    let mut stand = Stand {
        at,
        status: if at.is_some() {
            Status::Skip
        } else {
            Status::ToApply
        },
        since: None,
        told_as: Status::Skip,
        marks: member.told.and_then(Told::marks),
        due: None,
        blocked: false,
    };
    if let Some(told) = told {
        let (mut status, mut since, mut marks) = outcome(member, told, now);
        if member.resumed && status != Status::Succeeded {
            // Its time did not run while it was held back.
            let again = Told {
                released_at: Some(stamp),
                healthy_since: None,
                failed_since: None,
                ..told.clone()
            };
            (status, since, marks) = outcome(member, &again, now);
        }
        stand.marks = Some(marks);
        let class = rules.classify(status, since, now);
        match at {
            Some(_) => (stand.status, stand.since) = (status, since),
            None if class.list == List::Rollout => {
                stand.status = Status::Overtaken;
                stand.due = class.due;
            }
            None => {}
        }
        let before = |verb| {
            let command = input.record.present(verb);
            command.is_some_and(|command| told.released_at.is_none_or(|at| at <= command.at))
        };
        if at.is_some() && class.status.is_failure() && before(Verb::Retry) {
            (stand.status, stand.since) = (Status::ToApply, None);
        }
        stand.told_as = stand.status;
        let lasts = matches!(stand.status, Status::Progressing | Status::Succeeded);
        if at.is_some() && lasts && before(Verb::Promote) {
            stand.told_as = Status::Skip;
        }
    } else {
        stand.told_as = stand.status;
    }
    if member.suspended && !matches!(stand.status, Status::Succeeded | Status::Skip) {
        (stand.status, stand.told_as, stand.since) = (Status::Suspended, Status::Suspended, None);
    }
    stand
}

/// How a cluster is with what it was told, since when, and what its Work says of it.
fn outcome(member: &Member<'_>, told: &Told, now: Timestamp) -> (Status, Option<Timestamp>, Marks) {
    let released = told.released_at.unwrap_or(now);
    let mut marks = told.marks().unwrap_or_default();
    let Reach::Since(reached) = member.reach else {
        return (Status::Progressing, None, marks);
    };
    let since = |time: Timestamp| Some(time.max(released).max(reached.unwrap_or(released)).min(now));
    let was = marks.healthy_since.is_some() || marks.failed_since.is_some();
    match member.seen {
        // Missing evidence makes nobody fail, and nobody well.
        Seen::Unknown => (Status::Progressing, since(released), marks),
        Seen::Well | Seen::Applied => {
            // Whoever has failed soaks from the beginning.
            let healthy = marks
                .healthy_since
                .filter(|_| marks.failed_since.is_none())
                .unwrap_or(now);
            marks.healthy_since = Some(healthy);
            marks.failed_since = None;
            (Status::Succeeded, since(healthy), marks)
        }
        Seen::UnderWay if !was => (Status::Progressing, since(released), marks),
        Seen::Bad | Seen::UnderWay => {
            let failed = marks.failed_since.unwrap_or(now);
            marks.failed_since = Some(failed);
            marks.healthy_since = None;
            (Status::Failed, since(failed), marks)
        }
    }
}

/// Where nothing may run twice, whoever gets more waits until everybody has given up what is to go.
pub(super) fn block(input: &RunInput<'_>, rules: &Rules, stands: &mut [Stand]) {
    if !input.followed.breaks_first {
        return;
    }
    let is_open = |(member, stand): (&Member<'_>, &Stand)| {
        let class = rules.classify(stand.status, stand.since, input.now);
        !member.grows && (class.list != List::Neither || class.status.is_failure())
    };
    let breaking = !input.leaving.is_empty() || input.members.iter().zip(&*stands).any(is_open);
    if !breaking {
        return;
    }
    for (member, stand) in input.members.iter().zip(stands) {
        if member.grows && stand.told_as.is_waiting() {
            // Who is under way with something older has its place until that is over.
            stand.told_as = match stand.status {
                Status::Overtaken => Status::Progressing,
                _ => Status::Skip,
            };
            stand.blocked = true;
        }
    }
}
