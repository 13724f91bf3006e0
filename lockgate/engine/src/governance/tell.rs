//! What the replicas of a root come to, and what the policies of a set do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockgate_api::Condition;
use lockgate_api::ocm::policy::{
    CONDITION_ACCEPTED, CONDITION_PLACED, ClusterCompliance, NON_COMPLIANT, PENDING, PolicyPlacement,
    PolicyStatus,
};
use lockgate_api::ocm::policy_binding::PolicySetStatus;
use lockgate_api::ocm::{PlacementBinding, Policy, PolicySet};

use super::rollout::{Known, RootPlan, Standing};
use super::selection::{Selection, some};
use crate::gate::decision::overall;
use crate::gate::run::Phase;
use crate::gate::standing::Status;
use crate::observe::{overall_compliance, stamp};

/// Condition of a root: what its bindings say of single clusters is ignored.
const OVERRIDES_IGNORED: &str = "OverridesIgnored";

/// The status of a root. What cannot be told stays as it was.
pub fn status(
    root: &Policy,
    refused: Option<&(&'static str, String)>,
    selection: &Selection,
    told: Option<(&RootPlan, &BTreeMap<String, Known>)>,
    now: Timestamp,
) -> PolicyStatus {
    let before = root.status.clone().unwrap_or_default();
    let mut status = PolicyStatus {
        placement: selection.placements.clone(),
        observed_generation: Some(root.metadata.generation),
        conditions: conditions(&before.conditions, refused, selection, now),
        ..PolicyStatus::default()
    };
    if root.spec.disabled {
        return status;
    }
    let leads_nowhere = !selection.has_clusters() && !selection.excludes_all;
    if selection.is_bound && (refused.is_some() || leads_nowhere) {
        // Nothing moves, and what is there is still there.
        status.status = before.status;
        status.compliant = before.compliant;
        status.rollout_status = before.rollout_status;
        status.rollout_status_transition_time = before.rollout_status_transition_time;
        status.rollout = before.rollout;
        return status;
    }
    let Some((plan, known)) = told else {
        return status;
    };
    let compliance = |cluster: &str| {
        known
            .get(cluster)
            .and_then(|known| known.replica.as_ref()?.status.as_ref())
            .map(|status| status.compliant.clone())
            .unwrap_or_default()
    };
    let of = |standing: &Standing| ClusterCompliance {
        compliant: compliance(&standing.cluster),
        clustername: standing.cluster.clone(),
        clusternamespace: standing.cluster.clone(),
        rollout_status: standing.status.name().to_owned(),
        rollout_status_transition_time: standing.since.map(|at| at.to_string()),
        ..ClusterCompliance::default()
    };
    status.status = plan.standings.iter().map(of).collect();
    let states = status.status.iter().map(|cluster| cluster.compliant.as_str());
    status.compliant = overall_compliance(states).to_owned();
    let statuses = plan.standings.iter().map(|standing| match standing.status {
        Status::Succeeded if standing.soaks => Status::Progressing,
        other => other,
    });
    status.rollout_status = match plan.phase {
        Phase::Aborted | Phase::RollbackFailed => "Failed",
        _ => overall(statuses, plan.breach).map_or("", |overall| overall.name()),
    }
    .to_owned();
    let revision = before.rollout.as_ref().map(|rollout| rollout.revision);
    let same = before.rollout_status == status.rollout_status && revision == Some(plan.view.revision);
    status.rollout_status_transition_time = before
        .rollout_status_transition_time
        .filter(|_| same)
        .or_else(|| (!status.rollout_status.is_empty()).then(|| stamp(now)));
    status.rollout = Some(plan.view.clone());
    status
}

/// What is wrong, and what is ignored. Where all is well there is nothing.
fn conditions(
    before: &[Condition],
    refused: Option<&(&'static str, String)>,
    selection: &Selection,
    now: Timestamp,
) -> Vec<Condition> {
    let mut found = Vec::new();
    let mut add = |kind: &str, is: bool, reason: &str, message: String| {
        let status = if is { "True" } else { "False" };
        let old = Condition::find(before, kind).filter(|old| old.status == status);
        found.push(Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: old.map_or_else(|| stamp(now), |old| old.last_transition_time.clone()),
            ..Condition::default()
        });
    };
    if let Some((reason, message)) = refused {
        add(CONDITION_ACCEPTED, false, reason, message.clone());
    }
    if let Some((reason, message)) = &selection.unplaced {
        add(CONDITION_PLACED, false, reason, message.clone());
    } else if selection.excludes_all {
        let message = "spec.exclusions of its PolicySets leave out every cluster that is selected".to_owned();
        add(CONDITION_PLACED, false, "AllExcluded", message);
    } else if !selection.unknown.is_empty() {
        let message = format!("there is no cluster {}", some(&selection.unknown));
        add(CONDITION_PLACED, false, "ClusterNotFound", message);
    }
    if let Some(ignored) = &selection.ignored {
        add(OVERRIDES_IGNORED, true, "RolloutStrategy", ignored.clone());
    }
    found
}

/// The status of a set: the worst of its policies that are enabled; nothing while one of them is unknown.
pub fn set_status<'a>(
    set: &PolicySet,
    bindings: &[&PlacementBinding],
    policy: impl Fn(&str) -> Option<&'a Policy>,
) -> PolicySetStatus {
    let mut names: [BTreeSet<String>; 4] = Default::default();
    let [disabled, unknown, deleted, pending] = &mut names;
    let mut states = Vec::new();
    for name in &set.spec.policies {
        let Some(policy) = policy(name) else {
            deleted.insert(name.clone());
            continue;
        };
        if policy.spec.disabled {
            disabled.insert(name.clone());
            continue;
        }
        let state = policy
            .status
            .as_ref()
            .map_or("", |status| status.compliant.as_str());
        match state {
            "" => drop(unknown.insert(name.clone())),
            PENDING => drop(pending.insert(name.clone())),
            _ => {}
        }
        states.push(state);
    }
    let compliant = if states.contains(&NON_COMPLIANT) && unknown.is_empty() {
        NON_COMPLIANT
    } else if unknown.is_empty() {
        overall_compliance(states)
    } else {
        ""
    };
    let said: Vec<String> = [
        "Disabled policies",
        "No status provided while awaiting policy status",
        "Deleted policies",
        "Policies awaiting pending dependencies",
    ]
    .iter()
    .zip(&names)
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("{what}: {}", names.join(", "))
    })
    .collect();
    let exclusions = set.spec.exclusions.iter();
    // Everything of ours can be encoded.
    let exclusions = exclusions.filter_map(|one| serde_json::to_value(one).ok());
    PolicySetStatus {
        placement: placements(set, bindings),
        compliant: compliant.to_owned(),
        status_message: if said.is_empty() {
            "All policies are reporting status".to_owned()
        } else {
            said.join("; ")
        },
        exclusions: exclusions.collect(),
    }
}

fn placements(set: &PolicySet, bindings: &[&PlacementBinding]) -> Vec<PolicyPlacement> {
    let names_set = |binding: &&&PlacementBinding| {
        let mut subjects = binding.subjects.iter();
        subjects.any(|subject| subject.kind == "PolicySet" && subject.name == set.metadata.name)
    };
    let of = |binding: &&PlacementBinding| {
        let reference = &binding.placement_ref;
        let of_kind = |kind: &str| {
            if reference.kind == kind {
                reference.name.clone()
            } else {
                String::new()
            }
        };
        PolicyPlacement {
            placement_binding: binding.metadata.name.clone(),
            placement: of_kind("Placement"),
            placement_rule: of_kind("PlacementRule"),
            ..PolicyPlacement::default()
        }
    };
    bindings.iter().filter(names_set).map(of).collect()
}
