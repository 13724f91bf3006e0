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
use lockgate_api::rollout_policy::RolloutRun;

use super::retained::{Retained, group, groups};
use super::rollout::{Known, RootPlan, Standing};
use super::selection::{Selection, some};
use crate::gate::decision::{Overall, overall};
use crate::gate::record::{Command, RolloutRecord};
use crate::gate::run::Phase;
use crate::gate::standing::Status;
use crate::observe::{overall_compliance, stamp};

/// Condition of a root: what its bindings say of single clusters is ignored.
const OVERRIDES_IGNORED: &str = "OverridesIgnored";

/// The status of a root; `retained` are the clusters that keep what they have while nobody can say whether they are chosen.
pub fn status(
    root: &Policy,
    refused: Option<&(&'static str, String)>,
    selection: &Selection,
    told: Option<(&RootPlan, &BTreeMap<String, Known>)>,
    retained: &[Retained],
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
        return unmoved(status, root, &before, retained, now);
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
        ..standing.told()
    };
    tell_clusters(&mut status, plan.standings.iter().map(of), retained);
    let statuses = plan.standings.iter().map(|standing| match standing.status {
        Status::Succeeded if standing.soaks => Status::Progressing,
        other => other,
    });
    let statuses = statuses.chain(retained.iter().map(status_of));
    status.rollout_status = match plan.phase {
        Phase::Aborted | Phase::RollbackFailed => "Failed",
        _ => overall(statuses, plan.breach).map_or("", |overall| overall.name()),
    }
    .to_owned();
    let mut view = plan.view.clone();
    view.groups.extend(group(&view.groups, retained));
    status.rollout = Some(view);
    stamp_change(&mut status, &before, now);
    status
}

/// The status of a root of which nothing moves: what is there is still there, and is told as it is.
fn unmoved(
    mut status: PolicyStatus,
    root: &Policy,
    before: &PolicyStatus,
    retained: &[Retained],
    now: Timestamp,
) -> PolicyStatus {
    tell_clusters(&mut status, std::iter::empty(), retained);
    let record = RolloutRecord::of(&root.metadata).unwrap_or_default();
    status.rollout = before.rollout.clone().map(|rollout| RolloutRun {
        groups: groups(&rollout.groups, retained),
        command: record.command.as_ref().map(Command::told).unwrap_or_default(),
        ..rollout
    });
    let phase = before.rollout.as_ref().map_or("", |rollout| &rollout.phase);
    let is_given_up = [Phase::Aborted, Phase::RollbackFailed]
        .map(Phase::name)
        .contains(&phase);
    let overall = match overall(retained.iter().map(status_of), record.breach.is_some()) {
        Some(_) if is_given_up => Some(Overall::Failed),
        // Some still soak, and nobody counts how long.
        Some(Overall::Succeeded) if !record.is_settled() => Some(Overall::Progressing),
        other => other,
    };
    overall
        .map_or("", Overall::name)
        .clone_into(&mut status.rollout_status);
    stamp_change(&mut status, before, now);
    status
}

/// Tells how every cluster is, by name, and what that comes to.
fn tell_clusters(
    status: &mut PolicyStatus,
    chosen: impl Iterator<Item = ClusterCompliance>,
    retained: &[Retained],
) {
    let kept = retained.iter().map(|one| one.told.clone());
    status.status = chosen.chain(kept).collect();
    status.status.sort_by(|a, b| a.clustername.cmp(&b.clustername));
    let states = status.status.iter().map(|cluster| cluster.compliant.as_str());
    status.compliant = overall_compliance(states).to_owned();
}

fn status_of(retained: &Retained) -> Status {
    Status::from_name(&retained.told.rollout_status)
}

/// Since when the rollout is how it is: the time stays as long as status and revision do.
fn stamp_change(status: &mut PolicyStatus, before: &PolicyStatus, now: Timestamp) {
    let revision = |status: &PolicyStatus| status.rollout.as_ref().map(|rollout| rollout.revision);
    let same = before.rollout_status == status.rollout_status && revision(before) == revision(status);
    let kept = before.rollout_status_transition_time.clone().filter(|_| same);
    status.rollout_status_transition_time =
        kept.or_else(|| (!status.rollout_status.is_empty()).then(|| stamp(now)));
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
