//! Disruption budgets: how many Pods are there, how many should be, and how many may go.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinery_value::labels::LabelSelector;
use serde_json::{Map, Value, json};

use crate::action::Action;
use crate::object::{
    Says, after, fields, int, is_deleting, name, set_condition, share, status_of, time, with_status,
};
use crate::replicaset::is_ready;

/// How long an evicted Pod counts as gone while it is still there. After that it was not deleted after all.
const DELETION_TIMEOUT: i64 = 120;

/// How many Pods there should be of those that a Pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nobody controls the Pod.
    Unmanaged,
    /// A controller says how many.
    Of {
        /// The uid of the controller.
        controller: String,
        /// How many it wants.
        replicas: i64,
    },
    /// Its controller cannot be asked, for this reason.
    Unknown(String),
}

/// A Pod that a budget selects.
#[derive(Clone, Debug)]
pub struct Covered {
    /// The Pod.
    pub pod: Value,
    /// How many there should be of its kind.
    pub scale: Scale,
}

/// Whether a budget selects a Pod. One without a selector selects none, an empty selector all.
pub fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = Some(&budget["spec"]["selector"]).filter(|selector| !selector.is_null());
    LabelSelector::from_object(selector)
        .is_ok_and(|selector| selector.matches_labels(pod["metadata"]["labels"].as_object()))
}

/// What is to be done about a budget that selects these Pods.
pub fn decide(budget: &Value, pods: &[Covered], now: Timestamp) -> Vec<Action> {
    if is_deleting(budget) {
        return Vec::new();
    }
    let mut status = status_of(budget);
    let (disrupted, again) = disrupted(&status["disruptedPods"], pods, now);
    let generation = int(&budget["metadata"]["generation"]);
    let says = match counted(&budget["spec"], pods, &disrupted) {
        Err(problem) => {
            status["disruptionsAllowed"] = json!(0);
            Err(problem)
        }
        Ok(counts) => {
            for (field, count) in [
                ("disruptionsAllowed", counts.allowed),
                ("currentHealthy", counts.healthy),
                ("desiredHealthy", counts.desired),
                ("expectedPods", counts.expected),
                ("observedGeneration", generation),
            ] {
                status[field] = json!(count);
            }
            if let Some(fields) = status.as_object_mut() {
                fields.remove("disruptedPods");
            }
            if !disrupted.is_empty() {
                status["disruptedPods"] = Value::Object(disrupted);
            }
            Ok(counts.allowed > 0)
        }
    };
    let says = match &says {
        Ok(true) => Says::new(true, "SufficientPods", ""),
        Ok(false) => Says::new(false, "InsufficientPods", ""),
        Err(problem) => Says::new(false, "SyncFailed", problem),
    };
    let extra = json!({"observedGeneration": generation, "message": says.message});
    set_condition(&mut status, "DisruptionAllowed", &says, extra, now);
    let mut actions: Vec<Action> = with_status(budget, status)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect();
    actions.extend(again.map(Action::WakeAt));
    actions
}

/// The Pods that were evicted and are still there, with the time of it; and when the first of them counts again.
fn disrupted(noted: &Value, pods: &[Covered], now: Timestamp) -> (Map<String, Value>, Option<Timestamp>) {
    let is_there = |wanted: &str| {
        pods.iter()
            .any(|covered| name(&covered.pod) == wanted && !is_deleting(&covered.pod))
    };
    let mut kept = Map::new();
    let mut again: Option<Timestamp> = None;
    for (pod, noted_at) in fields(noted) {
        let until = time(noted_at).map(|noted_at| after(noted_at, DELETION_TIMEOUT));
        if let Some(until) = until.filter(|until| *until > now && is_there(pod)) {
            kept.insert(pod.clone(), noted_at.clone());
            again = Some(again.map_or(until, |again| again.min(until)));
        }
    }
    (kept, again)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    expected: i64,
    healthy: i64,
    desired: i64,
    allowed: i64,
}

fn counted(spec: &Value, pods: &[Covered], disrupted: &Map<String, Value>) -> Result<Counts, String> {
    let (expected, desired) = expectations(spec, pods)?;
    let is_healthy = |covered: &&Covered| {
        let pod = &covered.pod;
        !is_deleting(pod) && !disrupted.contains_key(name(pod)) && is_ready(pod)
    };
    let healthy = count(pods.iter().filter(is_healthy).count());
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    Ok(Counts {
        expected,
        healthy,
        desired,
        allowed,
    })
}

/// How many Pods there should be, and how many of them must be healthy.
fn expectations(spec: &Value, pods: &[Covered]) -> Result<(i64, i64), String> {
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !most.is_null() {
        let expected = wanted(pods)?;
        return Ok((expected, (expected - share(most, expected, true)).max(0)));
    }
    match least {
        Value::Null => Ok((0, 0)),
        Value::Number(_) => Ok((count(pods.len()), int(least))),
        percent => {
            let expected = wanted(pods)?;
            Ok((expected, share(percent, expected, true)))
        }
    }
}

/// How many Pods the controllers of these want together. Pods that nobody controls have no number.
fn wanted(pods: &[Covered]) -> Result<i64, String> {
    let mut scales = BTreeMap::new();
    for covered in pods {
        match &covered.scale {
            Scale::Unmanaged => {}
            Scale::Of { controller, replicas } => {
                scales.insert(controller, *replicas);
            }
            Scale::Unknown(why) => return Err(why.clone()),
        }
    }
    Ok(scales.values().sum())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
