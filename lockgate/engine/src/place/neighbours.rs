//! Which workloads go together, and which apart (`workloadAffinity`).
//!
//! Workloads of one namespace that share the value of a label are a group. The first of a group that goes together may go
//! anywhere; the others go where one of it is. Those that stay apart never meet on a cluster.

use std::collections::BTreeSet;

use lockgate_api::Placement;
use lockgate_api::binding::WorkloadAffinityGroups;
use serde_json::Value;

use super::RejectionReason;
use super::filter::Refusal;
use crate::object;

/// The groups that a template belongs to by its labels; none if the placement asks for none.
pub fn affinity_groups(placement: &Placement, template: &Value) -> Option<WorkloadAffinityGroups> {
    let wanted = placement.workload_affinity.as_ref()?;
    let group = |term: Option<&lockgate_api::placement::WorkloadAffinityTerm>| {
        let key = &term?.group_by_label_key;
        Some(format!("{key}={}", object::label(template, key)?))
    };
    let groups = WorkloadAffinityGroups {
        affinity_group: group(wanted.affinity.as_ref()).unwrap_or_default(),
        anti_affinity_group: group(wanted.anti_affinity.as_ref()).unwrap_or_default(),
    };
    (groups != WorkloadAffinityGroups::default()).then_some(groups)
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
    /// Of a workload of these groups: the others of its namespace, each with its groups and where it is.
    pub fn among<'a, C>(
        groups: &WorkloadAffinityGroups,
        others: impl IntoIterator<Item = (&'a WorkloadAffinityGroups, C)>,
    ) -> Self
    where
        C: IntoIterator<Item = &'a String>,
    {
        let same = |one: &str, other: &str| !one.is_empty() && one == other;
        let mut found = Self {
            groups: groups.clone(),
            ..Self::default()
        };
        for (theirs, clusters) in others {
            let together = same(&groups.affinity_group, &theirs.affinity_group);
            let apart = same(&groups.anti_affinity_group, &theirs.anti_affinity_group);
            for cluster in clusters {
                if together {
                    found.together.insert(cluster.clone());
                }
                if apart {
                    found.apart.insert(cluster.clone());
                }
            }
        }
        found
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
