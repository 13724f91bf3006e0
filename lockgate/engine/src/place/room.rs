//! How many replicas a cluster has room for, from what it says of its resources (`status.resourceSummary`).
//!
//! What is free is what pods may have, less what they have and what those that wait ask for. A cluster that says nothing
//! has no room; nor has one for a resource that it does not name. An amount that is none, or less than none, is none.
//!
//! Sums do not say whether a replica fits on any one node. Where somebody gave the cluster grades of nodes, so many replicas
//! fit on a node as fit into what its grade begins with, and no more than the sums allow. The usual grades are so wide that
//! they hide most of what is free, and count for nothing.

mod needs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use lockgate_api::Cluster;
use serde_json::Value;

pub(super) use self::needs::Needs;
use crate::cluster::{Models, counted};

/// No cluster is taken to have room for more.
const MOST: i64 = i32::MAX as i64;
/// The resource that every replica takes one of.
const PODS: &str = "pods";
/// What runs out where there are amounts enough, and no node has enough of them.
const LARGE_NODES: &str = "nodes that are large enough";

/// What is free in each of some clusters, in their order. Made once for many decisions.
#[derive(Clone, Debug, Default)]
pub struct Rooms(Vec<Arc<Room>>);

impl Rooms {
    /// What is free in these clusters.
    pub fn of(clusters: &[Arc<Cluster>]) -> Self {
        let room = |cluster: &Arc<Cluster>| Arc::new(Room::of(cluster));
        Self(clusters.iter().map(room).collect())
    }

    /// Of how many clusters this is known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cluster at this place in the order changed.
    pub fn replace(&mut self, at: usize, cluster: &Cluster) {
        self.0[at] = Arc::new(Room::of(cluster));
    }

    /// A cluster came, at this place in the order.
    pub fn insert(&mut self, at: usize, cluster: &Cluster) {
        self.0.insert(at, Arc::new(Room::of(cluster)));
    }

    /// The cluster at this place in the order went.
    pub fn remove(&mut self, at: usize) {
        self.0.remove(at);
    }

    /// What is free in the cluster of this place in the order.
    pub(super) fn at(&self, index: usize) -> Option<&Room> {
        self.0.get(index).map(|room| &**room)
    }
}

/// What is free in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// By name: thousandths of CPUs, whole units of everything else. `None` if the cluster has not said.
    free: Option<Vec<(String, i64)>>,
    /// What nodes have at least, and how many there are of them; if somebody asked for grades.
    grades: Vec<(Vec<(String, i64)>, i64)>,
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
            grades: grades(cluster, summary),
        }
    }

    /// Whether the cluster has said what it has.
    pub(super) fn is_known(&self) -> bool {
        self.free.is_some()
    }

    /// How many more replicas fit.
    pub(super) fn replicas(&self, needs: &Needs) -> i64 {
        let by_sums = self.by_sums(needs);
        self.by_grades(needs).map_or(by_sums, |most| most.min(by_sums))
    }

    fn by_sums(&self, needs: &Needs) -> i64 {
        let Some(free) = &self.free else { return 0 };
        let of = |name: &str| {
            free.iter()
                .find(|(known, _)| known == name)
                .map_or(0, |(_, amount)| *amount)
        };
        let amounts = needs.amounts.iter();
        let fewest = amounts.map(|(name, each)| of(name) / each.max(&1)).min();
        let pods = of(PODS) / needs.pods.max(1);
        fewest.unwrap_or(MOST).min(pods).min(MOST)
    }

    /// How many fit on nodes one by one; none if the grades do not speak of everything that is needed, or if several parts
    /// need not be on one node.
    fn by_grades(&self, needs: &Needs) -> Option<i64> {
        if self.grades.is_empty() || needs.amounts.is_empty() || needs.is_set() {
            return None;
        }
        let mut most = 0_i64;
        for (least, nodes) in &self.grades {
            let mut fewest = MOST;
            for (name, each) in &needs.amounts {
                let (_, amount) = least.iter().find(|(known, _)| known == name)?;
                fewest = fewest.min(amount / each.max(&1));
            }
            most = most.saturating_add(fewest.saturating_mul(*nodes));
        }
        Some(most.min(MOST))
    }

    /// The resource that runs out first, for people.
    pub(super) fn scarcest<'a>(&self, needs: &'a Needs) -> &'a str {
        let Some(free) = &self.free else { return PODS };
        let most = self.by_sums(needs);
        if self.by_grades(needs).is_some_and(|fit| fit < most) {
            return LARGE_NODES;
        }
        let short = |name: &str, each: i64| {
            let amount = free.iter().find(|(known, _)| known == name);
            amount.map_or(0, |(_, amount)| *amount) / each.max(1) <= most
        };
        let found = needs.amounts.iter().find(|(name, each)| short(name, *each));
        found.map_or(PODS, |(name, _)| name)
    }
}

/// How many nodes of each grade a cluster has, if its grades are not the usual ones.
fn grades(cluster: &Cluster, summary: &Value) -> Vec<(Vec<(String, i64)>, i64)> {
    let Some(counts) = summary["allocatableModelings"].as_array() else {
        return Vec::new();
    };
    let Some(models) = Models::of(cluster).filter(|models| !models.are_usual()) else {
        return Vec::new();
    };
    let nodes = |grade: usize| {
        let count = counts.iter().find(|count| count["grade"] == grade);
        count
            .and_then(|count| count["count"].as_i64())
            .unwrap_or(0)
            .max(0)
    };
    let grades = models.grades().iter().enumerate();
    grades
        .map(|(grade, least)| (least.clone(), nodes(grade)))
        .collect()
}
