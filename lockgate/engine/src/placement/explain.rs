//! Why a cluster is selected or not, in words.

use std::collections::BTreeMap;

use super::decide::ranked;
use super::prioritize::{self, total};
use super::publish::Published;
use super::{Candidate, Choice, Decided, Input, Outcome, Verdict};

/// What is to be said of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The cluster.
    pub cluster: String,
    /// Whether it is selected.
    pub selected: bool,
    /// The group in which it is: index and name.
    pub group: Option<(u32, String)>,
    /// What each prioritizer says, and how much that counts; empty for those that do not qualify.
    pub scores: Vec<(String, i64, i64)>,
    /// Why it is not selected, or why it still is.
    pub why: String,
}

impl Explained {
    /// All that counts for it.
    pub fn score(&self) -> Option<i64> {
        let parts = self.scores.iter().map(|(_, score, weight)| score * weight);
        (!self.scores.is_empty()).then(|| parts.sum())
    }
}

/// What is to be said of every cluster of the fleet.
pub fn explain<'a>(
    input: &Input<'a>,
    outcome: &Outcome<'a>,
    fleet: &'a [Candidate],
    published: &[Published<'_>],
) -> Vec<Explained> {
    match outcome {
        Outcome::Decided(decided) => of_decided(input, decided, fleet),
        Outcome::Kept(_) => kept(fleet, published),
    }
}

/// What is to be said while a placement cannot be read: what was decided before is kept.
pub fn kept(fleet: &[Candidate], published: &[Published<'_>]) -> Vec<Explained> {
    fleet
        .iter()
        .map(|cluster| {
            let holds = |decision: &&Published<'_>| decision.clusters.contains(cluster.name());
            let selected = published.iter().any(|decision| holds(&decision));
            let why = match selected {
                true => "it was decided before, and that is kept",
                false => "nothing new is decided now",
            };
            Explained {
                cluster: cluster.name().to_owned(),
                selected,
                group: published
                    .iter()
                    .filter(holds)
                    .find_map(|decision| decision.group.clone()),
                scores: Vec::new(),
                why: why.to_owned(),
            }
        })
        .collect()
}

fn of_decided<'a>(input: &Input<'a>, decided: &Decided<'a>, fleet: &'a [Candidate]) -> Vec<Explained> {
    let verdicts: BTreeMap<&str, Verdict> = decided
        .verdicts
        .iter()
        .map(|(cluster, verdict)| (cluster.name(), *verdict))
        .collect();
    let groups: BTreeMap<&str, usize> = decided.groups.clusters().collect();
    let fit: Vec<&'a Candidate> = decided
        .verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Selected | Verdict::Limit))
        .map(|(cluster, _)| *cluster)
        .collect();
    let ranked = ranked(input, &fit);
    let last = input
        .rules
        .number
        .and_then(|number| ranked.get(number.checked_sub(1)?))
        .map(|(_, parts)| total(parts));
    let scores: BTreeMap<&str, Vec<(String, i64, i64)>> = ranked
        .iter()
        .map(|(cluster, parts)| {
            let parts = parts
                .iter()
                .map(|(by, score, weight)| (by.to_string(), *score, *weight));
            (cluster.name(), parts.collect())
        })
        .collect();
    fleet
        .iter()
        .map(|cluster| {
            let name = cluster.name();
            let verdict = verdicts.get(name).copied();
            let at = groups.get(name).map(|at| &decided.groups[*at]);
            let mut words = vec![why(input, cluster, verdict, last)];
            words.extend(ended(input, cluster, verdict));
            words.retain(|words| !words.is_empty());
            Explained {
                cluster: name.to_owned(),
                selected: verdict == Some(Verdict::Selected),
                group: at.map(|group| (group.index, group.name.clone())),
                scores: scores.get(name).cloned().unwrap_or_default(),
                why: words.join("; "),
            }
        })
        .collect()
}

fn why(input: &Input<'_>, cluster: &Candidate, verdict: Option<Verdict>, last: Option<i64>) -> String {
    let Some(verdict) = verdict else {
        return match input.choice {
            Choice::Sets { sets, .. } => {
                let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
                format!("it is in none of the sets {}", sets.join(", "))
            }
            Choice::NoBindings { .. } => "no set of clusters is bound in the namespace".to_owned(),
            Choice::NoIntersection { wanted, .. } => {
                format!("none of the sets {} is bound in the namespace", wanted.join(", "))
            }
        };
    };
    match verdict {
        Verdict::Selected => still(input, cluster),
        Verdict::Leaving => "it is being deleted".to_owned(),
        Verdict::NotJoined => "it has not joined: there is no Cluster of its name".to_owned(),
        Verdict::NotAccepted => "the hub does not accept it: spec.hubAcceptsClient is false".to_owned(),
        Verdict::Predicates => input.rules.mismatch(cluster, input.context.scores),
        Verdict::Taint(at) => format!("the taint {} is not tolerated", taint(cluster, at)),
        Verdict::Limit => {
            let number = input.rules.number.unwrap_or_default();
            match last {
                None => "numberOfClusters is 0".to_owned(),
                Some(last) => format!(
                    "others are preferred: {number} were asked for, and the last of them has the score {last}"
                ),
            }
        }
    }
}

/// Which scores of a cluster would count if they had not run out.
fn ended(input: &Input<'_>, cluster: &Candidate, verdict: Option<Verdict>) -> Vec<String> {
    if !matches!(verdict, Some(Verdict::Selected | Verdict::Limit)) {
        return Vec::new();
    }
    let scores = input.context.scores;
    let expired = prioritize::expired(&input.rules.prioritizers, &[cluster], scores);
    let ends = expired.into_iter().filter_map(|(cluster, resource)| {
        let end = scores.ended(cluster, resource)?.strftime("%Y-%m-%dT%H:%M:%SZ");
        Some(format!("its AddOnPlacementScore {resource} ran out at {end}"))
    });
    ends.collect()
}

/// What would keep a cluster out if it were not decided already.
fn still(input: &Input<'_>, cluster: &Candidate) -> String {
    let decided = (input.is_decided)(cluster.name());
    let new = super::taints::tolerated(&input.rules.tolerations, cluster, false, input.now);
    let until = super::taints::tolerated(&input.rules.tolerations, cluster, decided, input.now).until;
    match (new.refused_by, until) {
        (Some(at), _) if decided => {
            format!("it has the taint {} and was selected before", taint(cluster, at))
        }
        (_, Some(until)) => format!(
            "until {}, when a toleration runs out",
            until.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        _ if decided && super::taints::is_silent(cluster) => {
            "it does not answer and was selected before".to_owned()
        }
        _ => String::new(),
    }
}

fn taint(cluster: &Candidate, at: usize) -> String {
    let Some(taint) = cluster.cluster.spec.taints.get(at) else {
        return String::new();
    };
    match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}
