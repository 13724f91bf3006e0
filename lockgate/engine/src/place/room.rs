//! How many replicas a cluster has room for, from what it says of its resources (`status.resourceSummary`).
//!
//! What is free is what pods may have, less what they have and what those that wait ask for. A cluster that says nothing
//! has no room; nor has one for a resource that it does not name. An amount that is none, or less than none, is none.

use std::sync::Arc;

use lockgate_api::{BindingSpec, Cluster};
use machinery_value::quantity::Quantity;
use serde_json::Value;

/// No cluster is taken to have room for more.
const MOST: i64 = i32::MAX as i64;
/// The resource that every replica takes one of.
const PODS: &str = "pods";

/// What is free in each of some clusters, in their order. Made once for many decisions.
#[derive(Clone, Debug, Default)]
pub struct Rooms(Vec<(Arc<Cluster>, Arc<Room>)>);

impl Rooms {
    /// What is free in these clusters.
    pub fn of(clusters: &[Arc<Cluster>]) -> Self {
        Self::default().after(clusters)
    }

    /// What is free in these clusters, where those that are the same as before are not read again. Both are sorted by name.
    pub fn after(&self, clusters: &[Arc<Cluster>]) -> Self {
        let known = |cluster: &Arc<Cluster>| {
            let name = &cluster.metadata.name;
            let at = self
                .0
                .binary_search_by(|(other, _)| other.metadata.name.cmp(name))
                .ok()?;
            let (same, room) = &self.0[at];
            Arc::ptr_eq(same, cluster).then(|| room.clone())
        };
        let room = |cluster: &Arc<Cluster>| {
            let room = known(cluster).unwrap_or_else(|| Arc::new(Room::of(cluster)));
            (cluster.clone(), room)
        };
        Self(clusters.iter().map(room).collect())
    }

    /// What is free in the cluster of this place in the order.
    pub(super) fn at(&self, index: usize) -> Option<&Room> {
        self.0.get(index).map(|(_, room)| &**room)
    }
}

/// What is free in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// By name: thousandths of CPUs, whole units of everything else. `None` if the cluster has not said.
    free: Option<Vec<(String, i64)>>,
}

impl Room {
    /// What is free in a cluster.
    pub(super) fn of(cluster: &Cluster) -> Self {
        let Some(summary) = cluster.status.rest.get("resourceSummary") else {
            return Self::default();
        };
        let amount = |part: &str, name: &str| {
            let amount = summary[part].get(name).and_then(|value| counted(name, value));
            amount.unwrap_or(0).max(0)
        };
        let names = summary["allocatable"].as_object().into_iter().flatten();
        let free = names.map(|(name, _)| {
            let used = amount("allocated", name).saturating_add(amount("allocating", name));
            (
                name.clone(),
                amount("allocatable", name).saturating_sub(used).max(0),
            )
        });
        Self {
            free: Some(free.collect()),
        }
    }

    /// Whether the cluster has said what it has.
    pub(super) fn is_known(&self) -> bool {
        self.free.is_some()
    }

    /// How many more replicas fit.
    pub(super) fn replicas(&self, needs: &Needs) -> i64 {
        let Some(free) = &self.free else { return 0 };
        let of = |name: &str| {
            free.iter()
                .find(|(known, _)| known == name)
                .map_or(0, |(_, amount)| *amount)
        };
        let fewest = needs.0.iter().map(|(name, each)| of(name) / each.max(&1)).min();
        fewest.unwrap_or(MOST).min(of(PODS)).min(MOST)
    }

    /// The resource that runs out first, for people.
    pub(super) fn scarcest<'a>(&self, needs: &'a Needs) -> &'a str {
        let Some(free) = &self.free else { return PODS };
        let most = self.replicas(needs);
        let short = |name: &str, each: i64| {
            let amount = free.iter().find(|(known, _)| known == name);
            amount.map_or(0, |(_, amount)| *amount) / each.max(1) <= most
        };
        let found = needs.0.iter().find(|(name, each)| short(name, *each));
        found.map_or(PODS, |(name, _)| name)
    }
}

/// What one replica needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs(Vec<(String, i64)>);

impl Needs {
    /// What one replica of a binding needs, or what about that cannot be read.
    pub(super) fn of(spec: &BindingSpec) -> Result<Self, String> {
        let requirements = spec.replica_requirements.as_ref();
        let request = requirements
            .and_then(|all| all.get("resourceRequest"))
            .and_then(Value::as_object);
        let mut needs = Vec::new();
        for (name, amount) in request.into_iter().flatten() {
            match counted(name, amount) {
                Some(each) if each > 0 => needs.push((name.clone(), each)),
                Some(0) => {}
                _ => {
                    return Err(format!(
                        "resourceRequest.{name} of one replica is {amount}, which is no amount: correct the template"
                    ));
                }
            }
        }
        Ok(Self(needs))
    }
}

/// An amount: thousandths of CPUs, whole units of everything else.
fn counted(name: &str, amount: &Value) -> Option<i64> {
    let quantity = match amount {
        Value::String(text) => Quantity::parse(text).ok()?,
        Value::Number(number) => Quantity::parse(&number.to_string()).ok()?,
        _ => return None,
    };
    Some(if name == "cpu" {
        quantity.milli()
    } else {
        quantity.units()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room(summary: Value) -> Room {
        let mut cluster = Cluster::default();
        if !summary.is_null() {
            cluster.status.rest.insert("resourceSummary".into(), summary);
        }
        Room::of(&cluster)
    }

    fn needs(request: Value) -> Result<Needs, String> {
        Needs::of(&BindingSpec {
            replica_requirements: Some(json!({ "resourceRequest": request })),
            ..BindingSpec::default()
        })
    }

    #[test]
    fn estimates() {
        // What the cluster says, what one replica needs, how many fit, what runs out.
        let table = [
            (json!(null), json!({}), 0, "pods"),
            (json!({}), json!({}), 0, "pods"),
            (json!({"allocatable": {"pods": "10"}}), json!({}), 10, "pods"),
            (
                json!({"allocatable": {"pods": "10"}, "allocated": {"pods": "4"}, "allocating": {"pods": 1}}),
                json!({}),
                5,
                "pods",
            ),
            (
                json!({"allocatable": {"pods": "110", "cpu": "4"}, "allocated": {"cpu": "1500m"}}),
                json!({"cpu": "500m"}),
                5,
                "cpu",
            ),
            (
                json!({"allocatable": {"pods": "110", "cpu": "4", "memory": "1Gi"}}),
                json!({"cpu": "500m", "memory": "512Mi"}),
                2,
                "memory",
            ),
            (
                json!({"allocatable": {"pods": "110", "cpu": "4"}}),
                json!({"example.com/gpu": 1}),
                0,
                "example.com/gpu",
            ),
            // More is used than there is; an amount that is none; less than none; more than anybody has.
            (
                json!({"allocatable": {"pods": "5"}, "allocated": {"pods": "9"}}),
                json!({}),
                0,
                "pods",
            ),
            (
                json!({"allocatable": {"pods": "5", "cpu": "much"}}),
                json!({"cpu": "1"}),
                0,
                "cpu",
            ),
            (
                json!({"allocatable": {"pods": "5", "cpu": "-4"}}),
                json!({"cpu": "1"}),
                0,
                "cpu",
            ),
            (
                json!({"allocatable": {"pods": "9e18"}}),
                json!({}),
                i64::from(i32::MAX),
                "pods",
            ),
            (
                json!({"allocatable": {"pods": "5"}, "allocated": {"pods": "-7"}}),
                json!({}),
                5,
                "pods",
            ),
        ];
        for (summary, request, expected, scarce) in table {
            let (room, needs) = (room(summary.clone()), needs(request.clone()).unwrap());
            assert_eq!(room.replicas(&needs), expected, "{summary} for {request}");
            assert_eq!(room.scarcest(&needs), scarce, "{summary} for {request}");
        }
    }

    #[test]
    fn a_need_that_is_no_amount_is_told() {
        for bad in [json!("much"), json!("-1"), json!([])] {
            let error = needs(json!({ "cpu": bad })).unwrap_err();
            assert!(
                error.starts_with("resourceRequest.cpu of one replica is "),
                "{error}"
            );
        }
        assert_eq!(
            needs(json!({"cpu": 0})).unwrap(),
            Needs::default(),
            "nothing is no need"
        );
    }
}
