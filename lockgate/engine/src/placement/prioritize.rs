//! Prioritizers: which of the clusters that qualify are preferred.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockgate_api::ocm::placement::{AddOnPlacementScore, PrioritizerPolicy};

use super::{Candidate, Misconfigured};

/// The name under which misconfigured prioritizers are told.
const PART: &str = "Prioritizer";
/// The best score, and the worst with a minus.
const BEST: i64 = 100;

/// What gives a score.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prioritizer {
    /// Clusters that other placements leave alone.
    Balance,
    /// Clusters that are decided already.
    Steady,
    /// Clusters with much to give of a resource.
    Allocatable(&'static str),
    /// What an add-on says.
    AddOn {
        /// The AddOnPlacementScore.
        resource: String,
        /// The score in it.
        score: String,
    },
}

impl std::fmt::Display for Prioritizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Balance => f.write_str("Balance"),
            Self::Steady => f.write_str("Steady"),
            Self::Allocatable("cpu") => f.write_str("ResourceAllocatableCPU"),
            Self::Allocatable(_) => f.write_str("ResourceAllocatableMemory"),
            Self::AddOn { resource, score } => write!(f, "AddOn/{resource}/{score}"),
        }
    }
}

/// What add-ons say of clusters.
pub trait Scores {
    /// The scores of an AddOnPlacementScore in the namespace of a cluster, as far as they count.
    fn all(&self, cluster: &str, resource: &str) -> Vec<(String, i64)>;

    /// When an AddOnPlacementScore ran out, if that is why it does not count.
    fn ended(&self, cluster: &str, resource: &str) -> Option<Timestamp>;
}

/// Until when what an add-on says counts; absent: for ever.
pub fn end(score: &AddOnPlacementScore) -> Option<Timestamp> {
    let until = score.status.valid_until.as_deref();
    until.and_then(|time| time.parse().ok())
}

/// What there is to know of other placements and of add-ons.
pub struct Context<'a> {
    /// How many decisions of other placements name a cluster.
    pub used: &'a dyn Fn(&str) -> usize,
    /// The most of them for any cluster of the fleet.
    pub most_used: usize,
    /// What add-ons say.
    pub scores: &'a dyn Scores,
}

/// What counts, and how much. In the mode `Additive` the usual ones are there unless they are configured otherwise.
pub fn read(policy: &PrioritizerPolicy) -> Result<Vec<(Prioritizer, i64)>, Misconfigured> {
    let mut weights: BTreeMap<Prioritizer, i64> = match policy.mode.as_str() {
        "" | "Additive" => [(Prioritizer::Balance, 1), (Prioritizer::Steady, 1)].into(),
        "Exact" => BTreeMap::new(),
        other => {
            let message = format!("the mode {other:?} is neither Additive nor Exact");
            return Err(Misconfigured::new(PART, message));
        }
    };
    for (at, configuration) in policy.configurations.iter().enumerate() {
        let bad = |problem: String| {
            Misconfigured::new(PART, format!("prioritizerPolicy.configurations[{at}]: {problem}"))
        };
        let coordinate = configuration
            .score_coordinate
            .as_ref()
            .ok_or_else(|| bad("scoreCoordinate is missing".to_owned()))?;
        let prioritizer = match (coordinate.kind.as_str(), coordinate.built_in.as_str()) {
            ("" | "BuiltIn", "Steady") => Prioritizer::Steady,
            ("" | "BuiltIn", "Balance") => Prioritizer::Balance,
            ("" | "BuiltIn", "ResourceAllocatableCPU") => Prioritizer::Allocatable("cpu"),
            ("" | "BuiltIn", "ResourceAllocatableMemory") => Prioritizer::Allocatable("memory"),
            ("" | "BuiltIn", other) => {
                return Err(bad(format!(
                    "there is no prioritizer {other:?}: there are Steady, Balance, ResourceAllocatableCPU and \
                     ResourceAllocatableMemory"
                )));
            }
            ("AddOn", _) => {
                let add_on = coordinate
                    .add_on
                    .as_ref()
                    .ok_or_else(|| bad("addOn is missing".to_owned()))?;
                Prioritizer::AddOn {
                    resource: add_on.resource_name.clone(),
                    score: add_on.score_name.clone(),
                }
            }
            (other, _) => return Err(bad(format!("the type {other:?} is neither BuiltIn nor AddOn"))),
        };
        weights.insert(prioritizer, i64::from(configuration.weight.unwrap_or(1)));
    }
    // What counts nothing is not asked for.
    weights.retain(|_, weight| *weight != 0);
    Ok(weights.into_iter().collect())
}

/// The score of a cluster by one prioritizer, before its weight.
pub type Part<'a> = (&'a Prioritizer, i64, i64);

/// The scores of clusters: for each, what every prioritizer says with its weight.
pub fn score<'a>(
    prioritizers: &'a [(Prioritizer, i64)],
    clusters: &[&Candidate],
    decided: &dyn Fn(&str) -> bool,
    context: &Context<'_>,
) -> Vec<Vec<Part<'a>>> {
    let mut scores: Vec<Vec<Part<'a>>> = clusters.iter().map(|_| Vec::new()).collect();
    for (prioritizer, weight) in prioritizers {
        let said: Vec<i64> = match prioritizer {
            // With a weight below zero it would move everybody with every decision: then it says nothing.
            Prioritizer::Steady => of_each(
                clusters,
                |name| if *weight > 0 && decided(name) { BEST } else { 0 },
            ),
            Prioritizer::Balance => of_each(clusters, |name| match decided(name) {
                true => BEST * weight.signum(),
                false => balance(name, context),
            }),
            Prioritizer::Allocatable(resource) => allocatable(clusters, resource),
            Prioritizer::AddOn { resource, score } => of_each(clusters, |name| {
                let all = context.scores.all(name, resource);
                all.into_iter()
                    .find(|(known, _)| known == score)
                    .map_or(0, |(_, value)| value)
            }),
        };
        for (parts, score) in scores.iter_mut().zip(said) {
            parts.push((prioritizer, score, *weight));
        }
    }
    scores
}

/// The AddOnPlacementScores that would count, but ran out: of which cluster, and which.
pub fn expired<'a>(
    prioritizers: &'a [(Prioritizer, i64)],
    clusters: &[&'a Candidate],
    scores: &dyn Scores,
) -> Vec<(&'a str, &'a str)> {
    let asked = prioritizers
        .iter()
        .filter_map(|(prioritizer, _)| match prioritizer {
            Prioritizer::AddOn { resource, .. } => Some(resource.as_str()),
            _ => None,
        });
    // Two scores of one resource run out together.
    let asked: BTreeSet<&str> = asked.collect();
    let all = asked
        .into_iter()
        .flat_map(|resource| clusters.iter().map(move |cluster| (cluster.name(), resource)));
    all.filter(|(cluster, resource)| scores.ended(cluster, resource).is_some())
        .collect()
}

/// All that counts for a cluster.
pub fn total(parts: &[Part<'_>]) -> i64 {
    parts.iter().map(|(_, score, weight)| score * weight).sum()
}

fn of_each(clusters: &[&Candidate], score: impl Fn(&str) -> i64) -> Vec<i64> {
    clusters.iter().map(|cluster| score(cluster.name())).collect()
}

/// The more other placements use a cluster, the less it gets. That is asked about clusters that are not decided: one that is
/// has the best of it, whatever the weight. Else two placements that share a cluster and are decided at the same moment would both
/// make way, and meet again on the next one, each time that anything wakes them; and a restart would move what others came to
/// after it was decided.
fn balance(cluster: &str, context: &Context<'_>) -> i64 {
    let count = (context.used)(cluster);
    if count == 0 || context.most_used == 0 {
        return BEST;
    }
    let share = count as f64 / context.most_used as f64;
    2 * (BEST as f64 * (0.5 - share)) as i64
}

/// The more a cluster has to give, the more it gets. One that does not say gets nothing.
fn allocatable(clusters: &[&Candidate], resource: &str) -> Vec<i64> {
    let amounts: Vec<Option<i128>> = clusters
        .iter()
        .map(|cluster| cluster.allocatable(resource))
        .collect();
    let known = || amounts.iter().flatten();
    let (Some(least), Some(most)) = (known().min(), known().max()) else {
        return vec![0; clusters.len()];
    };
    let (least, range) = (*least, (most - least) as f64);
    let of = |amount: &Option<i128>| match amount {
        None => 0,
        Some(_) if range == 0.0 => BEST,
        Some(amount) => ((((amount - least) as f64) / range - 0.5) * 200.0) as i64,
    };
    amounts.iter().map(of).collect()
}
