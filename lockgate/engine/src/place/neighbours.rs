//! Which workloads go together, and which apart (`workloadAffinity`).
//!
//! Workloads of one namespace that share the value of a label are a group. The first of a group that goes together may go
//! anywhere; the others go where one of it is. Those that stay apart never meet on a cluster. Clusters that are no longer there,
//! or that the workload must leave, bring nobody together: a group leaves them as it came, one after the other.

use std::collections::BTreeSet;

use lockgate_api::binding::WorkloadAffinityGroups;
use lockgate_api::placement::WorkloadAffinityTerm;
use lockgate_api::{BindingSpec, Placement};
use serde_json::Value;

use super::filter::Refusal;
use super::{PlaceInput, RejectionReason};
use crate::object;

/// The groups that a template belongs to by its labels; none if the placement asks for none.
pub fn affinity_groups(placement: &Placement, template: &Value) -> Option<WorkloadAffinityGroups> {
    let wanted = placement.workload_affinity.as_ref()?;
    let group = |term: Option<&WorkloadAffinityTerm>| {
        let key = &term?.group_by_label_key;
        Some(format!("{key}={}", object::label(template, key)?))
    };
    let groups = WorkloadAffinityGroups {
        affinity_group: group(wanted.affinity.as_ref()).unwrap_or_default(),
        anti_affinity_group: group(wanted.anti_affinity.as_ref()).unwrap_or_default(),
    };
    (groups != WorkloadAffinityGroups::default()).then_some(groups)
}

/// A workload of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbour {
    /// Its groups.
    pub groups: WorkloadAffinityGroups,
    /// Where it goes.
    pub clusters: BTreeSet<String>,
    /// What it is leaving, and where it may still run.
    pub leaving: BTreeSet<String>,
}

impl Neighbour {
    /// What a binding says; none if it belongs to no group.
    pub fn of(spec: &BindingSpec) -> Option<Self> {
        let tasks = spec.graceful_eviction_tasks.iter();
        Some(Self {
            groups: spec.workload_affinity_groups.clone()?,
            clusters: spec.clusters.iter().map(|target| target.name.clone()).collect(),
            leaving: tasks.map(|task| task.from_cluster.clone()).collect(),
        })
    }

    /// Whether it shares a group with another.
    pub fn meets(&self, groups: &WorkloadAffinityGroups) -> bool {
        same(&self.groups.affinity_group, &groups.affinity_group)
            || same(&self.groups.anti_affinity_group, &groups.anti_affinity_group)
    }
}

fn same(one: &str, other: &str) -> bool {
    !one.is_empty() && one == other
}

/// Where the other workloads of a binding's groups are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    groups: WorkloadAffinityGroups,
    /// Where those are that it goes together with; nobody is anywhere yet if it is empty.
    together: BTreeSet<String>,
    /// Where those are that it stays apart from.
    apart: BTreeSet<String>,
}

impl Neighbours {
    /// Of a workload of these groups, among the others of its namespace.
    pub fn among<'a>(
        groups: &WorkloadAffinityGroups,
        others: impl IntoIterator<Item = &'a Neighbour>,
    ) -> Self {
        let mut found = Self {
            groups: groups.clone(),
            ..Self::default()
        };
        for other in others {
            if same(&groups.affinity_group, &other.groups.affinity_group) {
                found.together.extend(other.clusters.iter().cloned());
            }
            if same(&groups.anti_affinity_group, &other.groups.anti_affinity_group) {
                found.apart.extend(other.clusters.union(&other.leaving).cloned());
            }
        }
        found
    }

    /// Without the clusters that bring nobody together.
    pub(super) fn reachable(&self, input: &PlaceInput<'_>) -> Self {
        let is_left = |name: &String| {
            let mut tasks = input.spec.graceful_eviction_tasks.iter();
            tasks.any(|task| task.from_cluster == *name)
        };
        let is_there = |name: &String| {
            let at = input
                .clusters
                .binary_search_by(|cluster| cluster.metadata.name.cmp(name));
            at.is_ok_and(|at| !input.clusters[at].metadata.deleting())
        };
        let mut neighbours = self.clone();
        neighbours
            .together
            .retain(|name| is_there(name) && !is_left(name));
        neighbours
    }

    /// Why a workload that is not on a cluster does not go there.
    pub(super) fn refuse(&self, cluster: &str) -> Option<Refusal> {
        if !self.together.is_empty() && !self.together.contains(cluster) {
            let group = &self.groups.affinity_group;
            return Some(Refusal {
                reason: RejectionReason::WorkloadAffinity,
                summary: "cluster(s) did not have a workload of the affinity group".into(),
                message: format!("no workload that it goes together with ({group}) is there"),
                help: "bring one of them there first, or take placement.workloadAffinity.affinity away",
            });
        }
        if self.apart.contains(cluster) {
            let group = &self.groups.anti_affinity_group;
            return Some(Refusal {
                reason: RejectionReason::WorkloadAntiAffinity,
                summary: "cluster(s) had a workload of the anti-affinity group".into(),
                message: format!("a workload that it stays apart from ({group}) is there"),
                help: "move that one away, or take placement.workloadAffinity.antiAffinity away",
            });
        }
        None
    }
}
