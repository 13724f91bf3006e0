//! The decision about a placement.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::prioritize::{self, Context, Part, score, total};
use super::sets::Unknown;
use super::{Candidate, Choice, Misconfigured, Rules, taints};
use crate::gate::grouping::cut;
use crate::gate::groups::Groups;

/// The name under which misconfigured groups are told.
const GROUPS: &str = "DecisionStrategy";

/// What a decision looks at.
pub struct Input<'a> {
    /// The placement, read.
    pub rules: &'a Rules,
    /// The sets that it chooses from.
    pub choice: &'a Choice,
    /// The clusters of these sets, and where the choice keeps them those that are decided, by name, each once.
    pub candidates: Vec<&'a Candidate>,
    /// Whether its decisions name a cluster now.
    pub is_decided: &'a dyn Fn(&str) -> bool,
    /// What other placements and add-ons say.
    pub context: Context<'a>,
    /// The time.
    pub now: Timestamp,
}

/// What is decided about one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is selected.
    Selected,
    /// It is being deleted.
    Leaving,
    /// It is none of the fleet.
    NotJoined,
    /// The hub does not accept it.
    NotAccepted,
    /// No predicate matches it.
    Predicates,
    /// A taint keeps it out, by its place.
    Taint(usize),
    /// Others are preferred, and there are as many as were asked for.
    Limit,
}

/// What is decided.
#[derive(Debug)]
pub struct Decided<'a> {
    /// Every cluster of the sets, and what is decided about it.
    pub verdicts: Vec<(&'a Candidate, Verdict)>,
    /// The scores of those that qualify, in the order of preference; empty if there was no need to choose.
    pub scores: Vec<(&'a Candidate, Vec<Part<'a>>)>,
    /// The groups of those that are selected.
    pub groups: Groups,
    /// How many clusters are selected.
    pub selected: usize,
    /// How many fewer there are than were asked for.
    pub unscheduled: usize,
    /// What would have counted, but ran out: clusters, and their AddOnPlacementScores.
    pub expired: Vec<(&'a str, &'a str)>,
    /// When to decide again although nothing changes.
    pub recheck: Option<Timestamp>,
}

/// Why nothing is decided: what was decided last stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The placement cannot be read.
    Misconfigured(Misconfigured),
    /// Nobody can tell who belongs to the sets that it needs, and there is no other.
    SetsUnknown(Unknown),
}

/// What became of a placement.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// What was decided last stays.
    Kept(Kept),
    /// There is something new to say, perhaps the same as before.
    Decided(Decided<'a>),
}

/// Decides about a placement. `matches` says whether the predicates match the cluster at some place among the candidates:
/// whoever asks often remembers the answers.
pub fn decide<'a>(
    input: &Input<'a>,
    mut matches: impl FnMut(usize) -> Result<bool, Misconfigured>,
) -> Outcome<'a> {
    match input.choice {
        Choice::NoBindings { unknown } | Choice::NoIntersection { unknown, .. } if !unknown.is_empty() => {
            return Outcome::Kept(Kept::SetsUnknown(unknown.clone()));
        }
        _ => {}
    }
    match decided(input, &mut matches) {
        Ok(decided) => Outcome::Decided(decided),
        Err(error) => Outcome::Kept(Kept::Misconfigured(error)),
    }
}

fn decided<'a>(
    input: &Input<'a>,
    matches: &mut dyn FnMut(usize) -> Result<bool, Misconfigured>,
) -> Result<Decided<'a>, Misconfigured> {
    let mut verdicts = Vec::with_capacity(input.candidates.len());
    let mut fit: Vec<&'a Candidate> = Vec::with_capacity(input.candidates.len());
    let mut recheck: Option<Timestamp> = None;
    for (place, cluster) in input.candidates.iter().enumerate() {
        let verdict = if let Some(verdict) = cluster.unfit {
            verdict
        } else if !matches(place)? {
            Verdict::Predicates
        } else {
            let is_tainted = !cluster.cluster.spec.taints.is_empty();
            let decided = is_tainted && (input.is_decided)(cluster.name());
            let tolerance = taints::tolerated(&input.rules.tolerations, cluster, decided, input.now);
            if let Some(until) = tolerance.until {
                recheck = Some(recheck.map_or(until, |other| other.min(until)));
            }
            match tolerance.refused_by {
                Some(taint) => Verdict::Taint(taint),
                None => {
                    fit.push(cluster);
                    Verdict::Selected
                }
            }
        };
        verdicts.push((*cluster, verdict));
    }
    let mut unscheduled = 0;
    let (mut scores, mut expired) = (Vec::new(), Vec::new());
    if let Some(number) = input.rules.number {
        unscheduled = number.saturating_sub(fit.len());
        if number < fit.len() {
            scores = ranked(input, &fit);
            expired = prioritize::expired(&input.rules.prioritizers, &fit, input.context.scores);
            fit = scores.iter().take(number).map(|(cluster, _)| *cluster).collect();
            let chosen: BTreeSet<&str> = fit.iter().map(|cluster| cluster.name()).collect();
            for (cluster, verdict) in &mut verdicts {
                if *verdict == Verdict::Selected && !chosen.contains(cluster.name()) {
                    *verdict = Verdict::Limit;
                }
            }
        }
    }
    let groups = cut(&fit, &input.rules.named, input.rules.size.as_ref())
        .map_err(|error| Misconfigured::new(GROUPS, error.to_string()))?;
    Ok(Decided {
        verdicts,
        scores,
        groups,
        selected: fit.len(),
        unscheduled,
        expired,
        recheck,
    })
}

/// Clusters in the order of preference, with their scores. One that is decided and does not answer comes before all others: what
/// is said of it runs out with its silence, and only a toleration takes it away. Of two that are as good, the one that is decided
/// comes first: nothing moves for nothing.
pub fn ranked<'a>(input: &Input<'a>, clusters: &[&'a Candidate]) -> Vec<(&'a Candidate, Vec<Part<'a>>)> {
    let scores = score(
        &input.rules.prioritizers,
        clusters,
        input.is_decided,
        &input.context,
    );
    let mut ranked: Vec<(&'a Candidate, Vec<Part<'a>>)> = clusters.iter().copied().zip(scores).collect();
    ranked.sort_by_cached_key(|(cluster, parts)| {
        let name = cluster.name();
        let decided = (input.is_decided)(name);
        let stays = decided && taints::is_silent(cluster);
        (!stays, Reverse(total(parts)), !decided, name)
    });
    ranked
}
