//! What is to find room: one replica, or all parts of a template together.

use std::collections::BTreeMap;

use lockgate_api::BindingSpec;
use serde_json::Value;

use crate::cluster::counted;

/// What one replica needs, or all parts of a template together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::place) struct Needs {
    /// By name: thousandths of CPUs, whole units of everything else. None is 0.
    pub(super) amounts: Vec<(String, i64)>,
    /// How many pods that are.
    pub(super) pods: i64,
    /// Whether it is several parts together.
    set: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            amounts: Vec::new(),
            pods: 1,
            set: false,
        }
    }
}

impl Needs {
    /// What one replica of a binding needs, or what about that cannot be read.
    pub(in crate::place) fn of(spec: &BindingSpec) -> Result<Self, String> {
        let amounts = requested(spec.replica_requirements.as_ref())
            .map_err(|wrong| format!("{wrong}: correct the template"))?;
        Ok(Self {
            amounts,
            ..Self::default()
        })
    }

    /// What all parts of a binding need together, or what about that cannot be read.
    pub(in crate::place) fn of_parts(spec: &BindingSpec) -> Result<Self, String> {
        let (mut sums, mut pods) = (BTreeMap::<String, i64>::new(), 0_i64);
        for part in &spec.components {
            let replicas = part["replicas"].as_i64().unwrap_or(0).max(0);
            pods = pods.saturating_add(replicas);
            let amounts = requested(part.get("replicaRequirements")).map_err(|wrong| {
                let name = part["name"].as_str().unwrap_or_default();
                format!("{wrong}: correct the component {name:?} of the template")
            })?;
            for (name, each) in amounts {
                let sum = sums.entry(name).or_default();
                *sum = sum.saturating_add(each.saturating_mul(replicas));
            }
        }
        sums.retain(|_, amount| *amount > 0);
        Ok(Self {
            amounts: sums.into_iter().collect(),
            pods,
            set: true,
        })
    }

    /// Whether it is several parts together.
    pub(in crate::place) fn is_set(&self) -> bool {
        self.set
    }
}

/// The amounts that one replica asks for.
fn requested(requirements: Option<&Value>) -> Result<Vec<(String, i64)>, String> {
    let request = requirements
        .and_then(|all| all.get("resourceRequest"))
        .and_then(Value::as_object);
    let mut amounts = Vec::new();
    for (name, amount) in request.into_iter().flatten() {
        match counted(name, amount) {
            Some(each) if each > 0 => amounts.push((name.clone(), each)),
            Some(0) => {}
            _ => {
                return Err(format!(
                    "resourceRequest.{name} of one replica is {amount}, which is no amount"
                ));
            }
        }
    }
    Ok(amounts)
}
