//! How a cluster stands towards what it is to get, before anybody takes turns.

use jiff::Timestamp;

use super::{Marks, Member, Reach, RunInput, Seen, Target, Told};
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
    // What was everywhere goes back to where it was as soon as it may.
    let unsent = member.unsent && !input.record.is_settled();
    let told = member.told.filter(|_| !unsent);
    let digest = told.map(|told| told.digest.as_str());
    let at = if digest == Some(member.wanted) {
        Some(Target::Wanted)
    } else if digest.is_some() && digest == kept(member, input) {
        Some(Target::Kept)
    } else {
        None
    };
    // What it was told by a rollout that is not over; before that, it has nothing before it.
    let told = told.filter(|told| told.revision > input.record.good_revision());
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
            // Its time did not run while it was held back; that it failed is not forgotten.
            let again = Told {
                released_at: Some(stamp),
                healthy_since: None,
                failed_since: told.failed_since.map(|_| stamp),
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
        let before = |asked: Option<Timestamp>| {
            asked.is_some_and(|asked| told.released_at.is_none_or(|released| released <= asked))
        };
        if at.is_some() && class.status.is_failure() && before(input.record.retried) {
            (stand.status, stand.since) = (Status::ToApply, None);
        }
        stand.told_as = stand.status;
        let lasts =
            matches!(stand.status, Status::Progressing | Status::Succeeded) && !class.status.is_failure();
        if at.is_some() && lasts && before(input.record.promoted) {
            stand.told_as = Status::Skip;
        }
    } else {
        stand.told_as = stand.status;
    }
    if member.unmade.is_some() && at.is_none() {
        // It has nothing to wait for, and takes no place.
        (stand.status, stand.told_as, stand.since) = (Status::Failed, Status::TimeOut, None);
    }
    if member.suspended && stand.status != Status::Skip && stand.told_as != Status::Skip {
        let class = rules.classify(stand.status, stand.since, now);
        if stand.status != Status::Succeeded || class.list == List::Rollout {
            // One that soaks does so, without a place.
            stand.due = class.due.filter(|_| stand.status == Status::Succeeded);
            (stand.status, stand.told_as, stand.since) = (Status::Suspended, Status::Suspended, None);
        }
    }
    stand
}

/// What a cluster gets that is to have fewer replicas, before it has fewer; none where what is to go goes first.
pub(super) fn kept<'a>(member: &Member<'a>, input: &RunInput<'_>) -> Option<&'a str> {
    member.kept.filter(|_| !input.followed.breaks_first)
}

/// How a cluster is with what it was told, since when, and what its Work says of it.
fn outcome(member: &Member<'_>, told: &Told, now: Timestamp) -> (Status, Option<Timestamp>, Marks) {
    let released = told.released_at.unwrap_or(now);
    let mut marks = told.marks().unwrap_or_default();
    let Reach::Since(reached) = member.reach else {
        let status = if marks.failed_since.is_some() {
            Status::Failed
        } else {
            Status::Progressing
        };
        return (status, None, marks);
    };
    let since = |time: Timestamp| Some(time.max(released).max(reached.unwrap_or(released)).min(now));
    let was = marks.healthy_since.is_some() || marks.failed_since.is_some();
    match member.seen {
        // Missing evidence makes nobody fail, and nobody well: who has failed has failed until it is known to be well.
        Seen::Unknown => match (marks.failed_since, marks.healthy_since) {
            (Some(failed), _) => (Status::Failed, since(failed), marks),
            // It was well, and will say so again: its time does not run.
            (None, Some(_)) => (Status::Progressing, None, marks),
            (None, None) => (Status::Progressing, since(released), marks),
        },
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
        let gives_up = member.kept.is_some() && stand.at.is_none();
        // Who is held back has perhaps not given up what it was told to.
        let held = stand.status == Status::Suspended && stand.at.is_some();
        // What was not sent does not say what the cluster has given up.
        !member.grows
            && (member.unsent || gives_up || held || class.list != List::Neither || class.status.is_failure())
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
