//! The rollout: which clusters may go now, which wait, and why.
//!
//! Nothing is remembered between two decisions: the statuses and their times say everything. What always holds:
//!
//! - every cluster is looked at before one is chosen, so that no failure is overlooked;
//! - while more failed than may, nothing starts, in any group;
//! - clusters that have started take their places before new ones are chosen, and soaking ones still have theirs;
//! - a mandatory group goes as a whole and before the others, and no cluster may fail in it;
//! - the same statuses give the same answer until the moment that the answer itself names.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::decision::{Decision, Place, Verdict};
use super::groups::Groups;
use super::reason::{Breach, Holdup, HoldupState, Reason};
use super::rules::{List, Order, Rules, nearest, threshold_size};
use super::standing::{Standing, Status};

/// What is known of one selected cluster.
struct Member<'a> {
    verdict: Verdict<'a>,
    group: usize,
    /// Whether something was said of it.
    known: bool,
}

impl Member<'_> {
    fn waits(&self) -> bool {
        self.verdict.status.is_waiting()
    }

    fn is_overtaken(&self) -> bool {
        self.verdict.status == Status::Overtaken
    }

    /// Whether its group is not settled because of it. One that failed does not hold it up.
    fn unsettled(&self) -> bool {
        self.waits()
            || self.verdict.status == Status::Suspended
            || self.verdict.place == Place::InFlight && self.verdict.status != Status::Failed
    }
}

/// What the members of a group come to.
#[derive(Clone, Copy, Default)]
struct Tally {
    failures: usize,
    first_failure: usize,
    unsettled: usize,
    first_unsettled: usize,
}

impl Tally {
    /// Members come by name.
    fn add(&mut self, at: usize, member: &Member<'_>) {
        let count = |number: &mut usize, first: &mut usize| {
            if *number == 0 {
                *first = at;
            }
            *number += 1;
        };
        if member.verdict.status.is_failure() {
            count(&mut self.failures, &mut self.first_failure);
        }
        if member.unsettled() {
            count(&mut self.unsettled, &mut self.first_unsettled);
        }
    }
}

/// Which clusters may start, as far as failures let them.
#[derive(Clone, Copy)]
enum Turn {
    Everybody,
    Group(usize),
    Window { size: usize, taken: usize },
    Nobody,
}

/// What a rollout does now. The order in which standings come has no meaning; of two for one cluster the worse counts.
pub fn decide<'a>(
    groups: &'a Groups,
    rules: &Rules,
    standings: &[Standing<'a>],
    now: Timestamp,
) -> Decision<'a> {
    let mandatory = groups.named_by(&rules.mandatory);
    let (mut members, removed) = join(groups, rules, standings, now);
    let mut tallies = vec![Tally::default(); mandatory.len()];
    for (at, member) in members.iter().enumerate() {
        tallies[member.group].add(at, member);
    }
    let fleet = Fleet {
        groups,
        rules,
        mandatory,
        tallies,
    };
    let breach = fleet.breach(&members);
    let turn = fleet.turn(&members);
    let starting = match breach {
        Some(_) => Vec::new(),
        None => fleet.starting(turn, &members),
    };
    // Those that were under way with an older change had their places before.
    let joining = starting.iter().filter(|at| !members[**at].is_overtaken()).count();
    // Told of before anybody starts: who starts now has nothing to say yet.
    let waiting = match (breach, turn) {
        (Some(breach), _) => Reason::Breach(breach),
        (None, Turn::Group(group)) => fleet.waits_for(group, &members),
        (None, Turn::Window { size, taken }) => Reason::NoPlace {
            taken: taken + joining,
            of: size,
        },
        (None, Turn::Everybody | Turn::Nobody) => Reason::GoesWithAll,
    };
    for member in members.iter_mut().filter(|member| member.waits()) {
        member.verdict.reason = waiting;
    }
    for at in &starting {
        let verdict = &mut members[*at].verdict;
        verdict.place = Place::Starts;
        verdict.reason = match turn {
            Turn::Window { size, taken } => Reason::TakesPlace {
                taken: taken + joining,
                of: size,
            },
            Turn::Group(group) => Reason::GoesWithGroup {
                group: &groups[group],
                mandatory: fleet.mandatory[group],
            },
            Turn::Everybody | Turn::Nobody => Reason::GoesWithAll,
        };
    }
    let rollout = listed(rules, turn, &members);
    let clusters: Vec<Verdict<'a>> = members.into_iter().map(|member| member.verdict).collect();
    let recheck_after = nearest(rollout.iter().filter_map(|at| clusters[*at].due), now);
    Decision {
        clusters,
        removed,
        breach,
        recheck_after,
        rollout,
    }
}

/// Every selected cluster by name with what was said of it, and what was said of others.
fn join<'a>(
    groups: &'a Groups,
    rules: &Rules,
    standings: &[Standing<'a>],
    now: Timestamp,
) -> (Vec<Member<'a>>, Vec<Standing<'a>>) {
    let mut sorted: Vec<&Standing<'a>> = standings.iter().collect();
    if !sorted.is_sorted_by(|a, b| a.cluster < b.cluster) {
        // The worse of two comes first, and so is the one that counts.
        sorted.sort_unstable_by(|a, b| a.cluster.cmp(b.cluster).then_with(|| b.cmp(a)));
        sorted.dedup_by(|later, first| later.cluster == first.cluster);
    }
    let mut said = sorted.into_iter().peekable();
    let (mut members, mut removed) = (Vec::with_capacity(groups.cluster_count()), Vec::new());
    for (cluster, group) in groups.clusters() {
        while let Some(other) = said.next_if(|standing| standing.cluster < cluster) {
            removed.push(*other);
        }
        let standing = said.next_if(|standing| standing.cluster == cluster);
        let (status, since) = standing.map_or((Status::ToApply, None), |said| (said.status, said.since));
        let class = rules.classify(status, since, now);
        let (place, reason) = match (class.list, class.status) {
            // Replaced once it is known why.
            (_, Status::ToApply | Status::Overtaken) => (Place::Waits, Reason::GoesWithAll),
            (_, Status::Suspended) => (Place::Waits, Reason::Suspended),
            (List::TimedOut, _) => (
                Place::TimedOut,
                Reason::TimedOut {
                    after: rules.deadline.unwrap_or_default(),
                    failed: status == Status::Failed,
                },
            ),
            (List::Rollout, Status::Succeeded) => (
                Place::InFlight,
                Reason::Soaks {
                    until: class.due.unwrap_or(now),
                },
            ),
            (List::Rollout, Status::Failed) => (Place::InFlight, Reason::Failed { until: class.due }),
            (List::Rollout, _) => (Place::InFlight, Reason::UnderWay { until: class.due }),
            (List::Neither, Status::TimeOut) => (Place::Over, Reason::TimedOutEarlier),
            (List::Neither, Status::Skip) => (Place::Over, Reason::Skipped),
            (List::Neither, _) => (Place::Over, Reason::Done),
        };
        members.push(Member {
            verdict: Verdict {
                cluster,
                group: &groups[group],
                status: class.status,
                since,
                due: class.due,
                place,
                reason,
            },
            group,
            known: standing.is_some(),
        });
    }
    removed.extend(said.copied());
    (members, removed)
}

/// The groups with what is known of them, each by its position.
struct Fleet<'a, 'r> {
    groups: &'a Groups,
    rules: &'r Rules,
    mandatory: Vec<bool>,
    tallies: Vec<Tally>,
}

impl<'a> Fleet<'a, '_> {
    /// The groups that go first, or the others.
    fn positions(&self, mandatory: bool) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.mandatory.len()).filter(move |at| self.mandatory[*at] == mandatory)
    }

    /// Whether more failed than may: in a mandatory group any, else by the strategy, in a group or among all clusters.
    fn breach(&self, members: &[Member<'a>]) -> Option<Breach<'a>> {
        let of_group = |group: usize, allowed: usize| {
            let tally = self.tallies[group];
            (tally.failures > allowed).then(|| Breach {
                failures: tally.failures,
                allowed,
                first: members[tally.first_failure].verdict.cluster,
                group: Some(&self.groups[group]),
                mandatory: self.mandatory[group],
            })
        };
        let allowed = |population| threshold_size(self.rules.max_failures, population, 0);
        let in_mandatory = || self.positions(true).find_map(|group| of_group(group, 0));
        match self.rules.order {
            Order::All => None,
            Order::ProgressivePerGroup => in_mandatory().or_else(|| {
                self.positions(false)
                    .find_map(|group| of_group(group, allowed(self.groups[group].clusters.len())))
            }),
            Order::Progressive => in_mandatory().or_else(|| {
                let (failures, allowed) = (
                    self.tallies.iter().map(|tally| tally.failures).sum(),
                    allowed(members.len()),
                );
                let failed = self.tallies.iter().filter(|tally| tally.failures > 0);
                let first = failed.map(|tally| tally.first_failure).min()?;
                (failures > allowed).then(|| Breach {
                    failures,
                    allowed,
                    first: members[first].verdict.cluster,
                    group: None,
                    mandatory: false,
                })
            }),
        }
    }

    /// Whose turn it is: the first mandatory group that is not settled, then as the strategy says; on the way back the
    /// other way round.
    fn turn(&self, members: &[Member<'_>]) -> Turn {
        let unsettled = |mandatory| {
            let mut unsettled = self
                .positions(mandatory)
                .filter(|group| self.tallies[*group].unsettled > 0);
            if self.rules.reversed {
                unsettled.next_back()
            } else {
                unsettled.next()
            }
        };
        let (mandatory, others) = (unsettled(true), unsettled(false));
        let first = if self.rules.reversed && others.is_some() {
            None
        } else {
            mandatory
        };
        match (self.rules.order, first) {
            (Order::All, _) => Turn::Everybody,
            (_, Some(group)) => Turn::Group(group),
            (Order::ProgressivePerGroup, None) => others.map_or(Turn::Nobody, Turn::Group),
            (Order::Progressive, None) => {
                let sizes = self.positions(false).map(|at| self.groups[at].clusters.len());
                let open = sizes.sum();
                let in_flight = |member: &&Member<'_>| {
                    (member.verdict.place == Place::InFlight || member.is_overtaken())
                        && !self.is_last(member)
                };
                Turn::Window {
                    size: threshold_size(self.rules.max_concurrency, open, open),
                    taken: members.iter().filter(in_flight).count(),
                }
            }
        }
    }

    /// Why others wait for a group that is not settled.
    fn waits_for(&self, group: usize, members: &[Member<'a>]) -> Reason<'a> {
        let tally = self.tallies[group];
        let first = &members[tally.first_unsettled];
        let state = match first.verdict.reason {
            Reason::Soaks { until } => HoldupState::Soaks(until),
            Reason::Suspended => HoldupState::Suspended,
            _ if first.waits() => HoldupState::Starts,
            _ => HoldupState::UnderWay,
        };
        Reason::WaitsForGroup {
            group: &self.groups[group],
            mandatory: self.mandatory[group],
            holdup: Holdup {
                cluster: first.verdict.cluster,
                state,
                others: tally.unsettled - 1,
            },
        }
    }

    /// Whether a cluster waits until all others are back.
    fn is_last(&self, member: &Member<'_>) -> bool {
        self.rules.reversed && self.mandatory[member.group]
    }

    /// Which of the waiting clusters start. Those that have their places already come first, then those that are known to wait,
    /// then those that nobody spoke of.
    fn starting(&self, turn: Turn, members: &[Member<'_>]) -> Vec<usize> {
        let mut waiting: Vec<usize> = (0..members.len()).filter(|at| members[*at].waits()).collect();
        if self.rules.reversed {
            waiting.reverse();
        }
        match turn {
            Turn::Everybody => waiting,
            Turn::Group(group) => {
                waiting.retain(|at| members[*at].group == group);
                waiting
            }
            Turn::Window { size, taken } => {
                waiting.retain(|at| !self.is_last(&members[*at]));
                let (overtaken, others): (Vec<usize>, Vec<usize>) =
                    waiting.into_iter().partition(|at| members[*at].is_overtaken());
                let held = taken - overtaken.len();
                let (known, unknown): (Vec<usize>, Vec<usize>) =
                    others.into_iter().partition(|at| members[*at].known);
                let joining = known.into_iter().chain(unknown).take(size.saturating_sub(taken));
                let staying = overtaken.into_iter().take(size.saturating_sub(held));
                staying.chain(joining).collect()
            }
            Turn::Nobody => Vec::new(),
        }
    }
}

/// The clusters that are worked on. Where groups take turns, those that start come last; else those that nobody spoke of.
fn listed(rules: &Rules, turn: Turn, members: &[Member<'_>]) -> Vec<usize> {
    let grouped = matches!(turn, Turn::Group(_)) || rules.order == Order::ProgressivePerGroup;
    let last = |member: &Member<'_>| {
        if grouped {
            member.verdict.place == Place::Starts
        } else {
            !member.known
        }
    };
    let listed = |at: &usize| matches!(members[*at].verdict.place, Place::Starts | Place::InFlight);
    let (later, mut first): (Vec<usize>, Vec<usize>) = (0..members.len())
        .filter(listed)
        .partition(|at| last(&members[*at]));
    first.extend(later);
    first
}
