//! StatefulSets: Pods with numbers, each with its own claims, one after the other.
//!
//! Pods are always made from the present template: there are no ControllerRevisions, so that a Pod below the
//! partition that was lost comes back new.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::{Action, Key, Kind};
use crate::hash::template_hash;
use crate::object::{
    int, is_controlled_by, is_deleting, items, key, name, namespace, owner_reference, pod_from_template,
    replicas, set_count, status_of, text, uid, with_status,
};
use crate::replicaset::{available_from, hand_down, is_ready};

const REVISION_LABEL: &str = "controller-revision-hash";

/// What a decision about a StatefulSet looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The StatefulSet.
    pub set: &'a Value,
    /// The Pods that it controls.
    pub pods: &'a [Value],
    /// Which of the keys that [`wanted_keys`] gives exist.
    pub existing: &'a [Key],
}

/// The name of a template's revision.
pub(crate) fn revision(set: &Value) -> String {
    format!("{}-{}", name(set), template_hash(&set["spec"]["template"], 0))
}

fn first(set: &Value) -> i64 {
    int(&set["spec"]["ordinals"]["start"])
}

fn pod_name(set: &Value, ordinal: i64) -> String {
    format!("{}-{ordinal}", name(set))
}

fn claim_key(set: &Value, template: &Value, ordinal: i64) -> Key {
    Key::new(
        Kind::Claim,
        namespace(set),
        &format!("{}-{}", name(template), pod_name(set, ordinal)),
    )
}

/// The Pods and claims that the set may make: whoever has these names is in the way.
pub fn wanted_keys(set: &Value) -> Vec<Key> {
    let start = first(set);
    (start..start + replicas(set))
        .flat_map(|ordinal| {
            let claims = items(&set["spec"]["volumeClaimTemplates"])
                .iter()
                .map(move |t| claim_key(set, t, ordinal));
            claims.chain([Key::new(Kind::Pod, namespace(set), &pod_name(set, ordinal))])
        })
        .collect()
}

/// What is to be done for a StatefulSet.
pub fn decide(seen: &Snapshot<'_>, now: Timestamp) -> Vec<Action> {
    let set = seen.set;
    if is_deleting(set) {
        return Vec::new();
    }
    let prefix = format!("{}-", name(set));
    let by_ordinal: BTreeMap<i64, &Value> = seen
        .pods
        .iter()
        .filter(|pod| is_controlled_by(pod, set))
        .filter_map(|pod| Some((name(pod).strip_prefix(&prefix)?.parse().ok()?, pod)))
        .collect();
    let mut plan = Plan {
        seen,
        by_ordinal,
        now,
        actions: Vec::new(),
        wake: None,
    };
    plan.replicas();
    let all: Vec<&Value> = plan
        .by_ordinal
        .values()
        .copied()
        .filter(|pod| !is_deleting(pod))
        .collect();
    plan.actions.extend(hand_down(set, &all));
    let status = status(set, &plan);
    plan.actions
        .extend(with_status(set, status).map(Action::UpdateStatus));
    plan.actions.extend(plan.wake.map(Action::WakeAt));
    plan.actions
}

struct Plan<'a> {
    seen: &'a Snapshot<'a>,
    by_ordinal: BTreeMap<i64, &'a Value>,
    now: Timestamp,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl Plan<'_> {
    fn delete(&mut self, pod: &Value) {
        self.actions.extend(key(pod).map(|key| Action::Delete {
            key,
            uid: uid(pod).to_owned(),
        }));
    }

    fn is_available(&mut self, pod: &Value) -> bool {
        let Some(from) = available_from(pod, int(&self.seen.set["spec"]["minReadySeconds"])) else {
            return false;
        };
        if from <= self.now || int(&self.seen.set["spec"]["minReadySeconds"]) == 0 {
            return true;
        }
        self.wake = Some(self.wake.map_or(from, |wake| wake.min(from)));
        false
    }

    /// Brings the Pods to their number, then to the present template.
    fn replicas(&mut self) {
        let set = self.seen.set;
        let ordered = set["spec"]["podManagementPolicy"] != "Parallel";
        let (start, end) = (first(set), first(set) + replicas(set));
        for ordinal in start..end {
            let healthy = match self.by_ordinal.get(&ordinal).copied() {
                None => {
                    self.create(ordinal);
                    false
                }
                Some(pod) if is_deleting(pod) => false,
                Some(pod) if crate::pod::is_finished(pod) => {
                    self.delete(pod);
                    false
                }
                Some(pod) => self.is_available(pod),
            };
            if ordered && !healthy {
                return;
            }
        }
        let surplus: Vec<&Value> = self
            .by_ordinal
            .iter()
            .rev()
            .filter(|(o, _)| !(start..end).contains(o))
            .map(|(_, pod)| *pod)
            .collect();
        for pod in &surplus {
            if !is_deleting(pod) {
                self.delete(pod);
            }
            if ordered {
                return;
            }
        }
        if !surplus.is_empty() || set["spec"]["updateStrategy"]["type"] == "OnDelete" {
            return;
        }
        let partition = int(&set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
        let revision = revision(set);
        for ordinal in (start.max(partition)..end).rev() {
            let Some(pod) = self.by_ordinal.get(&ordinal).copied() else {
                return;
            };
            if pod["metadata"]["labels"][REVISION_LABEL] != revision.as_str() {
                if !is_deleting(pod) {
                    self.delete(pod);
                }
                return;
            }
            if is_deleting(pod) || !self.is_available(pod) {
                return;
            }
        }
    }

    /// Makes a Pod, and before it the claims that it lacks.
    fn create(&mut self, ordinal: i64) {
        let set = self.seen.set;
        let pod_name = pod_name(set, ordinal);
        // A Pod of somebody else has the name: the set waits until it is gone.
        if self
            .seen
            .existing
            .contains(&Key::new(Kind::Pod, namespace(set), &pod_name))
        {
            return;
        }
        let mut pod = pod_from_template(set, &set["spec"]["template"]);
        let meta = &mut pod["metadata"];
        meta["name"] = json!(pod_name);
        meta["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
        meta["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        meta["labels"][REVISION_LABEL] = json!(revision(set));
        pod["spec"]["hostname"] = json!(pod_name);
        if !text(&set["spec"]["serviceName"]).is_empty() {
            pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
        }
        let templates = items(&set["spec"]["volumeClaimTemplates"]);
        let is_claimed = |volume: &Value| templates.iter().any(|t| t["metadata"]["name"] == volume["name"]);
        let mut volumes: Vec<Value> = items(&pod["spec"]["volumes"])
            .iter()
            .filter(|volume| !is_claimed(volume))
            .cloned()
            .collect();
        for template in templates {
            let key = claim_key(set, template, ordinal);
            volumes.push(json!({"name": name(template), "persistentVolumeClaim": {"claimName": &*key.name}}));
            if !self.seen.existing.contains(&key) {
                self.actions.push(Action::Create(claim(set, template, &key)));
            }
        }
        if !volumes.is_empty() {
            pod["spec"]["volumes"] = json!(volumes);
        }
        self.actions.push(Action::Create(pod));
    }
}

fn claim(set: &Value, template: &Value, key: &Key) -> Value {
    let mut labels = template["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (label, value) in crate::object::fields(&set["spec"]["selector"]["matchLabels"]) {
        labels.insert(label.clone(), value.clone());
    }
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "labels": labels},
        "spec": template["spec"],
    });
    if let Some(annotations) = template["metadata"].get("annotations") {
        claim["metadata"]["annotations"] = annotations.clone();
    }
    if set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete" {
        claim["metadata"]["ownerReferences"] = json!([owner_reference(set)]);
    }
    claim
}

fn status(set: &Value, plan: &Plan<'_>) -> Value {
    let update = revision(set);
    let min_ready = int(&set["spec"]["minReadySeconds"]);
    let mut status = status_of(set);
    let mut current = text(&status["currentRevision"]).to_owned();
    if current.is_empty() {
        current.clone_from(&update);
    }
    let present = || plan.by_ordinal.values().filter(|pod| !is_deleting(pod));
    let count =
        |filter: &dyn Fn(&Value) -> bool| i64::try_from(present().filter(|p| filter(p)).count()).unwrap_or(0);
    let of = |revision: &str| count(&|pod| pod["metadata"]["labels"][REVISION_LABEL] == revision);
    let is_available =
        |pod: &Value| available_from(pod, min_ready).is_some_and(|from| min_ready == 0 || from <= plan.now);
    let (all, ready, updated) = (count(&|_| true), count(&is_ready), of(&update));
    let wanted = replicas(set);
    if updated == wanted && all == wanted && ready == wanted {
        current.clone_from(&update);
    }
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    status["replicas"] = json!(all);
    status["availableReplicas"] = json!(count(&is_available));
    set_count(&mut status, "readyReplicas", ready);
    set_count(&mut status, "currentReplicas", of(&current));
    set_count(&mut status, "updatedReplicas", updated);
    status["currentRevision"] = json!(current);
    status["updateRevision"] = json!(update);
    status["collisionCount"] = json!(0);
    status
}
