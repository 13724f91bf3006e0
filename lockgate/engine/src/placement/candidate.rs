//! A ManagedCluster in the form that is looked at often.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use lockgate_api::ocm::ManagedCluster;
use machinery_value::quantity::Quantity;
use serde_json::{Value, json};

use super::Verdict;
use crate::gate::grouping::Member;

/// A cluster that placements may select.
#[derive(Debug, Default)]
pub struct Candidate {
    /// The cluster.
    pub cluster: ManagedCluster,
    /// What it says about itself.
    pub claims: BTreeMap<String, String>,
    /// Why no placement selects it, if none does.
    pub(super) unfit: Option<Verdict>,
    /// Since when each of its taints is there, in their order.
    pub(super) tainted: Vec<Option<Timestamp>>,
    /// As expressions see it.
    object: OnceLock<Value>,
}

impl Candidate {
    /// A cluster, read.
    pub fn new(cluster: ManagedCluster) -> Self {
        let claims = cluster
            .status
            .cluster_claims
            .iter()
            .map(|claim| (claim.name.clone(), claim.value.clone()))
            .collect();
        let tainted = cluster
            .spec
            .taints
            .iter()
            .map(|taint| taint.time_added.as_deref().and_then(|time| time.parse().ok()))
            .collect();
        let unfit = if cluster.metadata.deleting() {
            Some(Verdict::Leaving)
        } else if !cluster.joined() {
            Some(Verdict::NotJoined)
        } else if !cluster.spec.hub_accepts_client {
            Some(Verdict::NotAccepted)
        } else {
            None
        };
        Self {
            claims,
            unfit,
            tainted,
            cluster,
            object: OnceLock::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.cluster.metadata.name
    }

    /// The whole object, as expressions see it.
    pub(super) fn object(&self) -> &Value {
        self.object.get_or_init(|| {
            // Encoding strings, numbers, lists and maps cannot fail.
            let mut object = serde_json::to_value(&self.cluster).unwrap_or_default();
            object["apiVersion"] = json!("cluster.open-cluster-management.io/v1");
            object["kind"] = json!("ManagedCluster");
            for part in ["labels", "annotations"] {
                // A cluster without labels has none, which is no mistake of whoever asks for one.
                if object["metadata"][part].is_null() {
                    object["metadata"][part] = json!({});
                }
            }
            object
        })
    }

    /// What pods there may have of a resource, in thousandths; absent if it does not say.
    pub(super) fn allocatable(&self, resource: &str) -> Option<i128> {
        let amount = match self.cluster.status.allocatable.get(resource)? {
            Value::String(text) => Quantity::parse(text).ok()?,
            other => Quantity::parse(&other.to_string()).ok()?,
        };
        match amount.milli() {
            i64::MAX => Some(i128::from(amount.units()) * 1000),
            milli => Some(milli.into()),
        }
    }
}

impl Member for Candidate {
    fn name(&self) -> &str {
        Candidate::name(self)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.cluster.metadata.label(key)
    }

    fn claim(&self, name: &str) -> Option<&str> {
        self.claims.get(name).map(String::as_str)
    }
}
