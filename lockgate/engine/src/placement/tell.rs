//! What a placement says of itself.

use jiff::Timestamp;
use lockgate_api::meta::Condition;
use lockgate_api::ocm::placement::{DecisionGroupStatus, MISCONFIGURED, PlacementStatus, SATISFIED};

use super::prioritize::total;
use super::publish::decision_name;
use super::sets::Unknown;
use super::{Choice, Decided, Kept, Outcome, Verdict};
use crate::gate::grouping::decision_parts;

/// The longest list of scores in an event.
const SCORES_LENGTH: usize = 1000;

/// The status of a placement after a decision. Nothing else in it changes where nothing was decided.
pub fn status(
    before: &PlacementStatus,
    placement: &str,
    choice: &Choice,
    outcome: &Outcome<'_>,
    now: Timestamp,
) -> PlacementStatus {
    let mut status = before.clone();
    if let Outcome::Decided(decided) = outcome {
        status.number_of_selected_clusters = i32::try_from(decided.selected).unwrap_or(i32::MAX);
        status.decision_groups = groups(placement, decided);
    }
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = [satisfied(choice, outcome), misconfigured(outcome)];
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
    let (is_so, reason, message) = match (choice, outcome) {
        (_, Outcome::Kept(Kept::Misconfigured(_))) => (
            false,
            "NotAllDecisionsScheduled",
            "the placement cannot be read, and its last decisions are kept: see PlacementMisconfigured"
                .to_owned(),
        ),
        (Choice::NoBindings { unknown }, _) => {
            let message = "No valid ManagedClusterSetBindings found in placement namespace".to_owned();
            (false, "NoManagedClusterSetBindings", message + &kept(unknown))
        }
        (Choice::NoIntersection { unknown, wanted }, _) => {
            let message = format!(
                "None of ManagedClusterSets [{}] is bound to placement namespace",
                wanted.join(",")
            );
            (false, "NoIntersection", message + &kept(unknown))
        }
        (Choice::Sets { sets, unknown }, Outcome::Decided(decided)) => {
            let (is_so, reason, mut message) = satisfied_by(sets, decided);
            if !unknown.is_empty() {
                message.push_str(&format!(
                    "; {unknown}: clusters that were selected stay until that is mended or the binding is deleted"
                ));
            }
            (is_so, reason, message)
        }
        (Choice::Sets { .. }, Outcome::Kept(Kept::SetsUnknown(unknown))) => {
            (false, "NoIntersection", unknown.to_string())
        }
    };
    (SATISFIED, is_so, reason, message)
}

/// What is said where nobody can tell who belongs to the sets.
fn kept(unknown: &Unknown) -> String {
    match unknown.is_empty() {
        true => String::new(),
        false => format!(": {unknown}; the last decisions are kept"),
    }
}

fn satisfied_by(
    sets: &std::collections::BTreeSet<String>,
    decided: &Decided<'_>,
) -> (bool, &'static str, String) {
    let fits = |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Selected | Verdict::Limit);
    if decided.verdicts.is_empty() {
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
