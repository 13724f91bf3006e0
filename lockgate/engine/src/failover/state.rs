//! What an application takes along when it moves (`statePreservation`): values of its status on the cluster that it leaves
//! become labels of the copy that starts elsewhere.
//!
//! It is for applications of one copy that go on where they stopped: from one cluster to one other, the old copy first gone.
//! What was taken along stays on the new copy for as long as it is there.

use std::collections::BTreeMap;

use lockgate_api::binding::{EvictionTask, TargetCluster};
use lockgate_api::{Binding, keys};
use machinery_value::jsonpath::JsonPath;
use machinery_value::names;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::is_direct;

/// Where a task keeps what is taken along.
const IN_TASK: &str = "preservedLabelState";

/// What was taken along, and to which cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The cluster of the new copy.
    pub cluster: String,
    /// The labels of the new copy.
    pub labels: BTreeMap<String, String>,
}

impl Carried {
    /// What is taken along when a binding leaves clusters for others; nothing unless it moves from one to one other, and
    /// nothing is left of the old copy when the new one starts.
    pub fn by(tasks: &[EvictionTask], before: &[TargetCluster], after: &[TargetCluster]) -> Option<Self> {
        let ([task], [old], [new]) = (tasks, before, after) else {
            return None;
        };
        if !is_direct(task) || task.from_cluster != old.name || old.name == new.name {
            return None;
        }
        let labels: BTreeMap<String, String> =
            serde_json::from_value(task.rest.get(IN_TASK)?.clone()).ok()?;
        Some(Self {
            cluster: new.name.clone(),
            labels,
        })
    }

    /// What a binding's copy has taken along.
    pub fn on(binding: &Binding) -> Option<Self> {
        let text = binding.metadata.annotation(keys::CARRIED_STATE)?;
        serde_json::from_str(text).ok()
    }

    /// Writes it to the binding.
    pub fn put(&self, binding: &mut Binding) {
        // Names and labels always encode.
        let text = serde_json::to_string(self).unwrap_or_default();
        let annotations = &mut binding.metadata.annotations;
        annotations.insert(keys::CARRIED_STATE.to_owned(), text);
    }
}

/// The labels that the rules of a `statePreservation` make of a status.
pub(super) fn labels(wanted: &Value, status: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
    let status = status.ok_or("its status has not come from there yet")?;
    let rules = wanted["rules"].as_array().map_or(&[][..], Vec::as_slice);
    let mut labels = BTreeMap::new();
    for rule in rules {
        let text = |field: &str| rule[field].as_str().unwrap_or_default();
        let (label, path) = (text("aliasLabelName"), text("jsonPath"));
        let found = JsonPath::parse(path).map_err(|error| error.to_string())?;
        let found = found
            .first(status)
            .ok_or_else(|| format!("its status has nothing at {path}"))?;
        let value = match found {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => found.to_string(),
            _ => return Err(format!("what its status has at {path} is no single value")),
        };
        if let Some(problem) = names::label_value(&value).into_iter().next() {
            return Err(format!(
                "what its status has at {path} cannot be the label {label}: {problem}"
            ));
        }
        labels.insert(label.to_owned(), value);
    }
    Ok(labels)
}

/// Keeps them in the task.
pub(super) fn put_in(task: &mut EvictionTask, labels: &BTreeMap<String, String>) {
    task.rest.insert(IN_TASK.to_owned(), json!(labels));
}
