//! The decision about a placement.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::prioritize::{Context, Part, score, total};
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
    /// The clusters of these sets, by name, each once.
    pub candidates: Vec<&'a Candidate>,
    /// The clusters that its decisions name now.
    pub decided: &'a BTreeSet<&'a str>,
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
    /// When to decide again although nothing changes.
    pub recheck: Option<Timestamp>,
}

/// Why nothing is decided: what was decided last stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The placement cannot be read.
    Misconfigured(Misconfigured),
    /// Sets that it needs are not there, and no other is.
    SetsMissing(Vec<String>),
}

/// What became of a placement.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// What was decided last stays.
    Kept(Kept),
    /// There is something new to say, perhaps the same as before.
    Decided(Decided<'a>),
}

/// Decides about a placement. `matches` says whether the predicates match a cluster: whoever asks often remembers the answers.
pub fn decide<'a>(
    input: &Input<'a>,
    mut matches: impl FnMut(&Candidate) -> Result<bool, Misconfigured>,
) -> Outcome<'a> {
    match input.choice {
        Choice::NoBindings { missing } | Choice::NoIntersection { missing, .. } if !missing.is_empty() => {
            return Outcome::Kept(Kept::SetsMissing(missing.clone()));
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
    matches: &mut dyn FnMut(&Candidate) -> Result<bool, Misconfigured>,
) -> Result<Decided<'a>, Misconfigured> {
    let is_decided = |name: &str| input.decided.contains(name);
    let mut verdicts = Vec::with_capacity(input.candidates.len());
    let mut fit: Vec<&'a Candidate> = Vec::with_capacity(input.candidates.len());
    let mut recheck: Option<Timestamp> = None;
    for cluster in &input.candidates {
        let verdict = if cluster.cluster.metadata.deleting() {
            Verdict::Leaving
        } else if !cluster.cluster.joined() {
            Verdict::NotJoined
        } else if !cluster.cluster.spec.hub_accepts_client {
            Verdict::NotAccepted
        } else if !matches(cluster)? {
            Verdict::Predicates
        } else {
            let decided = is_decided(cluster.name());
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
    let mut scores = Vec::new();
    if let Some(number) = input.rules.number {
        unscheduled = number.saturating_sub(fit.len());
        if number < fit.len() {
            scores = ranked(input, &fit);
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
        recheck,
    })
}

/// Clusters in the order of preference, with their scores. Of two that are as good, the one that is decided comes first:
/// nothing moves for nothing.
pub fn ranked<'a>(input: &Input<'a>, clusters: &[&'a Candidate]) -> Vec<(&'a Candidate, Vec<Part<'a>>)> {
    let is_decided = |name: &str| input.decided.contains(name);
    let scores = score(&input.rules.prioritizers, clusters, &is_decided, &input.context);
    let mut ranked: Vec<(&'a Candidate, Vec<Part<'a>>)> = clusters.iter().copied().zip(scores).collect();
    ranked.sort_by_cached_key(|(cluster, parts)| {
        let name = cluster.name();
        (Reverse(total(parts)), !is_decided(name), name)
    });
    ranked
}
