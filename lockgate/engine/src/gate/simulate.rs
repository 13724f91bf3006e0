//! A rollout played forward in virtual time, against clusters whose fate is known.
//!
//! It decides by [`rollout::decide`](super::rollout::decide) alone, at the moments at which a controller would be woken: when
//! a cluster says something, and when the last decision asked to be made again.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::decision::{Decision, Overall, Place, Verdict};
use super::groups::Groups;
use super::rollout::decide;
use super::rules::Rules;
use super::standing::{Standing, Status};

/// What becomes of a cluster once it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// How long it takes to say something.
    pub takes: Duration,
    /// Whether that is good. A cluster that fails does not recover.
    pub succeeds: bool,
}

/// What happened to a cluster, or to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// It said that it is well.
    Succeeded,
    /// It said that it is not well.
    Failed,
    /// It has been well for long enough.
    Soaked,
    /// It did not become well in time.
    TimedOut,
    /// Too many failed: nobody starts any more.
    Stopped,
    /// Not too many have failed any more.
    Resumed,
    /// It starts.
    Started,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, counted from the beginning.
    pub at: Duration,
    /// To which cluster; empty where it happens to all.
    pub cluster: String,
    /// What.
    pub happened: Happened,
    /// Why it starts or stops, or how it stands after what happened.
    pub why: String,
}

/// How one cluster stands at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its name.
    pub cluster: String,
    /// The index of its group.
    pub group: u32,
    /// How far it came.
    pub status: Status,
    /// Why it is there.
    pub why: String,
}

/// A rollout from beginning to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// When the last of it happened.
    pub took: Duration,
    /// Every cluster by name.
    pub clusters: Vec<Ending>,
    /// The most clusters that were worked on at a time.
    pub most_in_flight: usize,
    /// What it came to; `None` where there are no clusters.
    pub overall: Option<Overall>,
    /// Why nothing more starts, where too many failed.
    pub breach: Option<String>,
}

/// Plays a rollout until nothing more happens. Clusters without a fate succeed at once.
///
/// Times in the words of reasons are written by `clock`, which is given the time since the beginning.
pub fn simulate(
    groups: &Groups,
    rules: &Rules,
    fates: &BTreeMap<String, Fate>,
    clock: impl Fn(Duration) -> String,
) -> Timeline {
    let told = |time: Timestamp| clock(elapsed(time));
    let mut run = Run {
        states: vec![None; groups.cluster_count()],
        events: Vec::new(),
        most_in_flight: 0,
        stopped: false,
    };
    let mut now = Timestamp::UNIX_EPOCH;
    loop {
        let heard = run.hear(now);
        let standings = run.standings(groups);
        let decision = decide(groups, rules, &standings, now);
        run.tell(&decision, heard, now, &told);
        // Whoever starts now has a deadline now, which the next decision knows of.
        if run.start(&decision, fates, now, &told) {
            continue;
        }
        let rechecked = decision
            .recheck_after
            .and_then(|after| now.checked_add(SignedDuration::try_from(after).ok()?).ok());
        match run.next_report().into_iter().chain(rechecked).min() {
            Some(next) => now = next.max(now),
            None => return run.end(&decision, now, &told),
        }
    }
}

fn elapsed(time: Timestamp) -> Duration {
    time.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs()
}

/// What one cluster has been through.
#[derive(Clone, Copy)]
struct State {
    status: Status,
    since: Timestamp,
    /// What it is going to say, and when.
    report: Option<(Timestamp, Status)>,
    place: Place,
}

impl State {
    fn started(fate: Option<Fate>, now: Timestamp) -> Self {
        let fate = fate.unwrap_or(Fate {
            takes: Duration::ZERO,
            succeeds: true,
        });
        let status = if fate.succeeds {
            Status::Succeeded
        } else {
            Status::Failed
        };
        let takes = SignedDuration::try_from(fate.takes).unwrap_or(SignedDuration::MAX);
        Self {
            status: Status::Progressing,
            since: now,
            report: now.checked_add(takes).ok().map(|at| (at, status)),
            place: Place::InFlight,
        }
    }
}

fn event(
    verdict: &Verdict<'_>,
    happened: Happened,
    at: Timestamp,
    told: &impl Fn(Timestamp) -> String,
) -> Event {
    Event {
        at: elapsed(at),
        cluster: verdict.cluster.to_owned(),
        happened,
        why: verdict.reason.told(told),
    }
}

struct Run {
    /// By name, as in the groups; `None` until it starts.
    states: Vec<Option<State>>,
    events: Vec<Event>,
    most_in_flight: usize,
    stopped: bool,
}

impl Run {
    fn next_report(&self) -> Option<Timestamp> {
        let reports = self
            .states
            .iter()
            .flatten()
            .filter_map(|state| state.report.map(|(at, _)| at));
        reports.min()
    }

    /// Clusters say what they have to say by now; which, and what.
    fn hear(&mut self, now: Timestamp) -> Vec<(usize, Happened)> {
        let mut heard = Vec::new();
        for (at, state) in self.states.iter_mut().enumerate() {
            if let Some(state) = state
                && let Some((when, status)) = state.report
                && when <= now
            {
                (state.status, state.since, state.report) = (status, when, None);
                let succeeded = status == Status::Succeeded;
                let happened = if succeeded {
                    Happened::Succeeded
                } else {
                    Happened::Failed
                };
                heard.push((at, happened));
            }
        }
        heard
    }

    fn standings<'a>(&self, groups: &'a Groups) -> Vec<Standing<'a>> {
        let known = self.states.iter().zip(groups.clusters());
        let standing = known.filter_map(|(state, (cluster, _))| {
            let state = state.as_ref()?;
            Some(Standing {
                cluster,
                status: state.status,
                since: Some(state.since),
            })
        });
        standing.collect()
    }

    /// Notes what was heard, and whose time came, each with how its cluster stands now.
    fn tell(
        &mut self,
        decision: &Decision<'_>,
        mut happened: Vec<(usize, Happened)>,
        now: Timestamp,
        told: &impl Fn(Timestamp) -> String,
    ) {
        for (at, (state, verdict)) in self.states.iter_mut().zip(&decision.clusters).enumerate() {
            let Some(state) = state else { continue };
            let before = std::mem::replace(&mut state.place, verdict.place);
            match (before, verdict.place) {
                (Place::InFlight, Place::TimedOut) => happened.push((at, Happened::TimedOut)),
                // One that has said so only now has not soaked.
                (Place::InFlight, Place::Over) if state.since < now => happened.push((at, Happened::Soaked)),
                _ => {}
            }
        }
        happened.sort_by_key(|(at, happened)| (*happened, *at));
        for (at, happened) in happened {
            let verdict = &decision.clusters[at];
            self.events.push(event(verdict, happened, now, told));
        }
        if self.stopped != decision.breach.is_some() {
            self.stopped = !self.stopped;
            let (happened, why) = match decision.breach {
                Some(breach) => (Happened::Stopped, breach.to_string()),
                None => (Happened::Resumed, "no more failed than may".to_owned()),
            };
            self.events.push(Event {
                at: elapsed(now),
                cluster: String::new(),
                happened,
                why,
            });
        }
        self.most_in_flight = self.most_in_flight.max(decision.rollout().count());
    }

    /// Starts those whose turn it is; whether there are any.
    fn start(
        &mut self,
        decision: &Decision<'_>,
        fates: &BTreeMap<String, Fate>,
        now: Timestamp,
        told: &impl Fn(Timestamp) -> String,
    ) -> bool {
        for (state, verdict) in self.states.iter_mut().zip(&decision.clusters) {
            if verdict.place == Place::Starts {
                *state = Some(State::started(fates.get(verdict.cluster).copied(), now));
            }
        }
        let before = self.events.len();
        let started = decision.started();
        let events = started.map(|verdict| event(verdict, Happened::Started, now, told));
        self.events.extend(events);
        self.events.len() > before
    }

    fn end(self, decision: &Decision<'_>, now: Timestamp, told: &impl Fn(Timestamp) -> String) -> Timeline {
        let ending = |verdict: &Verdict<'_>| Ending {
            cluster: verdict.cluster.to_owned(),
            group: verdict.group.index,
            status: verdict.status,
            why: verdict.reason.told(told),
        };
        Timeline {
            took: self.events.last().map_or_else(|| elapsed(now), |event| event.at),
            events: self.events,
            clusters: decision.clusters.iter().map(ending).collect(),
            most_in_flight: self.most_in_flight,
            overall: decision.overall(),
            breach: decision.breach.map(|breach| breach.to_string()),
        }
    }
}
