//! Deployments: one ReplicaSet for each template, the newest growing while the others shrink.
//!
//! A set belongs to a template by the hash in its name and label. Revisions are numbered in annotations, as
//! `kubectl rollout` reads them. What a set *is* (its status) comes from the ReplicaSet's own decision; here is only
//! decided how large it should be.

mod rollout;
mod status;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::Action;
use crate::behaviour::{self, BEHAVIOUR, INHERITED};
use crate::hash::template_hash;
use crate::object::{
    annotation, condition, controller, fields, int, is_deleting, key, name, namespace, owner_reference,
    set_annotation, share, status_of, text, uid,
};

pub(crate) use rollout::limits;
pub(crate) use status::{availability, set_progress, time_out};

/// The label and the selector by which the Pods of one template are told from those of another.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that are not for the sets.
const OWN: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
    BEHAVIOUR,
    INHERITED,
];

/// What a decision about a Deployment looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The Deployment.
    pub deployment: &'a Value,
    /// The ReplicaSets that it controls.
    pub sets: &'a [Value],
    /// The ReplicaSet that has the name which [`set_name`] gives, if it is not one of those.
    pub namesake: Option<&'a Value>,
}

/// The name of the ReplicaSet for the Deployment's present template.
pub fn set_name(deployment: &Value) -> String {
    format!("{}-{}", name(deployment), hash(deployment))
}

pub(crate) fn hash(deployment: &Value) -> String {
    template_hash(
        &deployment["spec"]["template"],
        int(&deployment["status"]["collisionCount"]),
    )
}

/// What is to be done for a Deployment.
pub fn decide(seen: &Snapshot<'_>, now: Timestamp) -> Vec<Action> {
    let deployment = seen.deployment;
    if is_deleting(deployment) {
        return Vec::new();
    }
    let paused = deployment["spec"]["paused"] == true;
    let (new, mut old) = split(deployment, seen.sets);
    old.sort_by_key(|set| (text(&set["metadata"]["creationTimestamp"]), name(set)));

    let mut actions = Vec::new();
    let mut news = None;
    if new.is_none() && !paused && rollout::may_start(deployment, &old) {
        match found_or_made(seen, &old) {
            Made::Set(set) => {
                news = Some(format!("Created new replica set \"{}\"", name(&set)));
                actions.push(Action::Create(*set));
            }
            Made::Adopted(set) => return vec![Action::Update(*set)],
            Made::Collision => {
                let mut status = status_of(deployment);
                status["collisionCount"] = json!(int(&status["collisionCount"]) + 1);
                let mut changed = deployment.clone();
                changed["status"] = status;
                return vec![Action::UpdateStatus(changed)];
            }
        }
    }
    let sizes = rollout::plan(deployment, new, &old, paused);
    let revision = next_revision(&old);
    for (set, size) in new.into_iter().chain(old.iter().copied()).zip(&sizes) {
        let is_new = new.is_some_and(|new| uid(new) == uid(set));
        if let Some(set) = resized(deployment, set, *size, is_new.then_some(revision)) {
            actions.push(Action::Update(set));
        }
    }

    let created = actions.iter().find_map(|action| match action {
        Action::Create(set) => Some(set),
        _ => None,
    });
    let shown = new.or(created);
    let planned = sizes.iter().sum::<i64>() + created.map_or(0, |set| int(&set["spec"]["replicas"]));
    let (mut wanted, wake) = status::next(
        deployment,
        new,
        &old,
        planned,
        shown.map(name),
        news.as_deref(),
        now,
    );
    if let Some(set) = shown {
        let shown_revision = if created.is_some() {
            revision
        } else {
            revision_of(set).max(revision)
        };
        set_annotation(&mut wanted, REVISION, Some(&shown_revision.to_string()));
    }
    if status::is_complete(&wanted) {
        actions.extend(expired(deployment, &old));
    }
    if wanted != *deployment {
        actions.push(Action::UpdateStatus(wanted));
    }
    actions.extend(wake.map(Action::WakeAt));
    actions
}

/// The set of the present template, and the others.
fn split<'a>(deployment: &Value, sets: &'a [Value]) -> (Option<&'a Value>, Vec<&'a Value>) {
    let hash = hash(deployment);
    let live = || sets.iter().filter(|set| !is_deleting(set));
    let by_hash = live().find(|set| set["metadata"]["labels"][HASH_LABEL] == hash.as_str());
    let new = by_hash.or_else(|| live().find(|set| same_template(set, deployment)));
    let others = sets
        .iter()
        .filter(|set| new.is_none_or(|new| uid(new) != uid(set)))
        .collect();
    (new, others)
}

fn same_template(set: &Value, deployment: &Value) -> bool {
    let mut template = set["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH_LABEL);
    }
    template == deployment["spec"]["template"]
}

fn revision_of(set: &Value) -> i64 {
    annotation(set, REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// The number of the present template: one more than all others.
fn next_revision(old: &[&Value]) -> i64 {
    old.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1
}

enum Made {
    Set(Box<Value>),
    Adopted(Box<Value>),
    Collision,
}

/// The set for the present template: a new one, or one of the same name that nobody controls.
fn found_or_made(seen: &Snapshot<'_>, old: &[&Value]) -> Made {
    let deployment = seen.deployment;
    if let Some(found) = seen.namesake {
        if controller(found).is_some() || !same_template(found, deployment) {
            return Made::Collision;
        }
        let mut found = found.clone();
        let mut owners = found["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        owners.push(owner_reference(deployment));
        found["metadata"]["ownerReferences"] = json!(owners);
        return Made::Adopted(Box::new(found));
    }
    let hash = hash(deployment);
    let spec = &deployment["spec"];
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH_LABEL] = json!(hash);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH_LABEL] = json!(hash);
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": set_name(deployment),
            "namespace": namespace(deployment),
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": rollout::first_size(deployment, old),
            "selector": selector,
            "template": template,
        },
    });
    if int(&spec["minReadySeconds"]) != 0 {
        set["spec"]["minReadySeconds"] = spec["minReadySeconds"].clone();
    }
    annotate(deployment, &mut set, Some(next_revision(old)));
    Made::Set(Box::new(set))
}

/// A set with another size and the annotations that it should have; none if it has them.
fn resized(deployment: &Value, set: &Value, size: i64, revision: Option<i64>) -> Option<Value> {
    let mut wanted = set.clone();
    wanted["spec"]["replicas"] = json!(size);
    if revision.is_some()
        && int(&set["spec"]["minReadySeconds"]) != int(&deployment["spec"]["minReadySeconds"])
    {
        wanted["spec"]["minReadySeconds"] = deployment["spec"]["minReadySeconds"].clone();
    }
    // A set that is empty and stays so is history: what it says about itself is left alone.
    if revision.is_some() || size > 0 {
        annotate(deployment, &mut wanted, revision);
    }
    (wanted != *set).then_some(wanted)
}

fn annotate(deployment: &Value, set: &mut Value, revision: Option<i64>) {
    let wanted = crate::object::replicas(deployment);
    let (surge, _) = limits(deployment);
    set_annotation(set, DESIRED, Some(&wanted.to_string()));
    set_annotation(set, MAXIMUM, Some(&(wanted + surge).to_string()));
    behaviour::hand_down(deployment, set);
    let Some(revision) = revision else { return };
    for (key, value) in fields(&deployment["metadata"]["annotations"]) {
        if !OWN.contains(&key.as_str()) {
            set_annotation(set, key, value.as_str());
        }
    }
    let before = revision_of(set);
    if before < revision {
        if before > 0 {
            let history =
                annotation(set, HISTORY).map_or(before.to_string(), |old| format!("{old},{before}"));
            set_annotation(set, HISTORY, Some(&history));
        }
        set_annotation(set, REVISION, Some(&revision.to_string()));
    }
}

/// Old sets beyond the limit of history, the oldest first.
fn expired(deployment: &Value, old: &[&Value]) -> Vec<Action> {
    let Some(limit) = deployment["spec"]["revisionHistoryLimit"].as_i64() else {
        return Vec::new();
    };
    let mut empty: Vec<&Value> = old
        .iter()
        .copied()
        .filter(|set| {
            int(&set["spec"]["replicas"]) == 0 && int(&set["status"]["replicas"]) == 0 && !is_deleting(set)
        })
        .collect();
    empty.sort_by_key(|set| revision_of(set));
    let surplus = empty.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    let delete = |set: &&Value| {
        Some(Action::Delete {
            key: key(set)?,
            uid: uid(set).to_owned(),
        })
    };
    empty.iter().take(surplus).filter_map(delete).collect()
}

/// The time at which the last condition of progress was renewed.
fn progressed_at(status: &Value) -> Option<Timestamp> {
    crate::object::time(&condition(status, "Progressing")?["lastUpdateTime"])
}

/// `maxSurge` or `maxUnavailable` of a rolling update.
fn rolling_share(deployment: &Value, field: &str, round_up: bool) -> i64 {
    let total = crate::object::replicas(deployment);
    share(
        &deployment["spec"]["strategy"]["rollingUpdate"][field],
        total,
        round_up,
    )
}
