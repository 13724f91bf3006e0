//! What a placement says of itself.

use jiff::Timestamp;
use lockgate_api::meta::Condition;
use lockgate_api::ocm::placement::{DecisionGroupStatus, MISCONFIGURED, PlacementStatus, SATISFIED};
use lockgate_api::ocm::{Placement, PlacementDecision};

use super::prioritize::total;
use super::publish::decision_name;
use super::{Choice, Decided, Kept, Outcome, Verdict};
use crate::gate::grouping::decision_parts;
use crate::gate::groups::{Agreed, Groups};

/// What is said where somebody took or changed decisions that nobody can make again.
const TORN: &str = "; not all of them are there as they were decided, and whoever follows this placement waits until it is mended";
/// So many scores that ran out are named.
const NAMED: usize = 3;
/// The longest list of scores in an event.
const SCORES_LENGTH: usize = 1000;

/// The status of a placement after a decision. Nothing else in it changes where nothing was decided; then the decisions that are
/// there are looked at.
pub fn status<'d>(
    placement: &Placement,
    decisions: impl IntoIterator<Item = &'d PlacementDecision>,
    choice: &Choice,
    outcome: &Outcome<'_>,
    now: Timestamp,
) -> PlacementStatus {
    let mut status = placement.status.clone().unwrap_or_default();
    let mut satisfied = satisfied(choice, outcome);
    match outcome {
        Outcome::Decided(decided) => {
            status.number_of_selected_clusters = i32::try_from(decided.selected).unwrap_or(i32::MAX);
            status.decision_groups = groups(&placement.metadata.name, decided);
        }
        Outcome::Kept(_) => {
            if Groups::agreed(placement, decisions) == Agreed::Writing {
                satisfied.3.push_str(TORN);
            }
        }
    }
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = [satisfied, misconfigured(outcome)];
    for (kind, is_so, reason, message) in conditions {
        let condition = Condition {
            kind: kind.to_owned(),
            status: if is_so { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: time.clone(),
            ..Condition::default()
        };
        condition.put(&mut status.conditions);
    }
    status
}

fn groups(placement: &str, decided: &Decided<'_>) -> Vec<DecisionGroupStatus> {
    let mut groups: Vec<DecisionGroupStatus> = Vec::new();
    for part in decision_parts(&decided.groups) {
        let index = i32::try_from(part.group.index).unwrap_or(i32::MAX);
        let name = decision_name(placement, part.number);
        match groups
            .last_mut()
            .filter(|group| group.decision_group_index == index)
        {
            Some(group) => group.decisions.push(name),
            None => groups.push(DecisionGroupStatus {
                decision_group_index: index,
                decision_group_name: part.group.name.clone(),
                decisions: vec![name],
                cluster_count: i32::try_from(part.group.clusters.len()).unwrap_or(i32::MAX),
            }),
        }
    }
    groups
}

/// Type, whether it is so, reason and message of a condition.
type Said = (&'static str, bool, &'static str, String);

fn satisfied(choice: &Choice, outcome: &Outcome<'_>) -> Said {
    let (is_so, reason, mut message) = match (choice, outcome) {
        (Choice::NoBindings { .. }, _) => {
            let message = "No valid ManagedClusterSetBindings found in placement namespace".to_owned();
            (false, "NoManagedClusterSetBindings", message)
        }
        (Choice::NoIntersection { wanted, .. }, _) => {
            let message = format!(
                "None of ManagedClusterSets [{}] is bound to placement namespace",
                wanted.join(",")
            );
            (false, "NoIntersection", message)
        }
        (Choice::Sets { .. }, Outcome::Kept(_)) => (
            false,
            "NotAllDecisionsScheduled",
            "Nothing is decided anew".to_owned(),
        ),
        (Choice::Sets { sets, unknown }, Outcome::Decided(decided)) => {
            let (is_so, reason, mut message) = satisfied_by(sets, decided);
            if !unknown.is_empty() {
                message.push_str(&format!(
                    "; {unknown}: clusters that were selected stay until that is mended or the binding is deleted"
                ));
            }
            message.push_str(&ran_out(&decided.expired));
            (is_so, reason, message)
        }
    };
    if let Outcome::Kept(kept) = outcome {
        let why = match kept {
            Kept::Misconfigured(_) => "the placement cannot be read, see PlacementMisconfigured".to_owned(),
            Kept::SetsUnknown(unknown) => unknown.to_string(),
        };
        message.push_str(&format!(": {why}; the last decisions are kept"));
    }
    (SATISFIED, is_so, reason, message)
}

/// What is said of scores that ran out: nobody else would notice that they no longer count.
fn ran_out(expired: &[(&str, &str)]) -> String {
    if expired.is_empty() {
        return String::new();
    }
    let named = expired.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|(cluster, resource)| format!("{resource} of {cluster}"))
        .collect();
    let rest = match expired.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "; these AddOnPlacementScores ran out and count nothing: {}{rest}",
        named.join(", ")
    )
}

fn satisfied_by(
    sets: &std::collections::BTreeSet<String>,
    decided: &Decided<'_>,
) -> (bool, &'static str, String) {
    let fits = |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Selected | Verdict::Limit);
    // Who is leaving is no member any more.
    let leaves = |(_, verdict): &(_, Verdict)| *verdict == Verdict::Leaving;
    if decided.verdicts.iter().all(leaves) {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let message = format!(
            "All ManagedClusterSets [{}] have no member ManagedCluster",
            sets.join(",")
        );
        return (false, "AllManagedClusterSetsEmpty", message);
    }
    if !decided.verdicts.iter().any(fits) {
        return (
            false,
            "NoManagedClusterMatched",
            "No ManagedCluster matches any of the cluster predicate".to_owned(),
        );
    }
    match decided.unscheduled {
        0 => (
            true,
            "AllDecisionsScheduled",
            "All cluster decisions scheduled".to_owned(),
        ),
        count => (
            false,
            "NotAllDecisionsScheduled",
            format!("{count} cluster decisions unscheduled"),
        ),
    }
}

fn misconfigured(outcome: &Outcome<'_>) -> Said {
    match outcome {
        Outcome::Kept(Kept::Misconfigured(error)) => {
            (MISCONFIGURED, true, "Misconfigured", error.to_string())
        }
        _ => (
            MISCONFIGURED,
            false,
            "Succeedconfigured",
            "Placement configurations check pass".to_owned(),
        ),
    }
}

/// The scores by which clusters were chosen, for an event; `None` if there was no need to choose.
pub fn scores(decided: &Decided<'_>) -> Option<String> {
    let mut text = String::new();
    for (cluster, parts) in &decided.scores {
        let one = format!("{}:{} ", cluster.name(), total(parts));
        if text.len() + one.len() > SCORES_LENGTH {
            text.push_str("...");
            break;
        }
        text.push_str(&one);
    }
    (!text.is_empty()).then(|| text.trim_end().to_owned())
}
