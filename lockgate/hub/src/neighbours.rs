//! Where the workloads of each group are (`workloadAffinity`): an index over the bindings that belong to one. It follows the
//! bindings, which are all known before anything is placed.
//!
//! Two workloads of a group may be placed at the same moment. Each decision is made and noted under one lock, so that the
//! second sees where the first goes before that is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lockgate_api::Binding;
use lockgate_api::binding::{TargetCluster, WorkloadAffinityGroups};
use lockgate_engine::TemplateId;
use lockgate_engine::place::{self, Placed, Verdict};
use parking_lot::Mutex;

use crate::cache::{Cached, Change};
use crate::state::{self, State, WALK};

/// The workloads that belong to groups.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// By namespace, in which groups are.
    namespaces: Mutex<HashMap<String, BTreeMap<TemplateId, Standing>>>,
}

/// What is known of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    groups: WorkloadAffinityGroups,
    clusters: BTreeSet<String>,
    /// Where it was decided to go, until its binding says so.
    decided: BTreeSet<String>,
}

impl Standing {
    fn of(cached: Option<&Arc<Cached>>) -> Option<Self> {
        // Few bindings belong to groups, so that few are read for it.
        let cached = cached.filter(|cached| {
            std::str::from_utf8(&cached.body).is_ok_and(|text| text.contains("workloadAffinityGroups"))
        })?;
        let binding: Binding = state::parse(cached)?;
        Some(Self {
            groups: binding.spec.workload_affinity_groups?,
            clusters: names(&binding.spec.clusters),
            decided: BTreeSet::new(),
        })
    }
}

fn names(targets: &[TargetCluster]) -> BTreeSet<String> {
    targets.iter().map(|target| target.name.clone()).collect()
}

impl Neighbours {
    /// Decides where a workload goes, who its neighbours are being known, and notes it.
    pub(crate) fn decide(
        &self,
        id: &TemplateId,
        groups: &WorkloadAffinityGroups,
        decide: impl FnOnce(&place::Neighbours) -> Placed,
    ) -> Placed {
        let mut namespaces = self.namespaces.lock();
        let here = namespaces.entry(id.namespace.clone()).or_default();
        let others = here
            .iter()
            .filter(|(other, _)| *other != id)
            .map(|(_, standing)| {
                let clusters = standing.clusters.union(&standing.decided);
                (&standing.groups, clusters)
            });
        let placed = decide(&place::Neighbours::among(groups, others));
        let standing = here.entry(id.clone()).or_default();
        standing.groups.clone_from(groups);
        standing.decided = match &placed.verdict {
            Verdict::Clusters(targets) => names(targets),
            _ => BTreeSet::new(),
        };
        placed
    }

    /// Takes in what a binding says; whoever shares a group with it, as it was or as it is, if that changes anything.
    fn put(&self, id: &TemplateId, new: Option<Standing>) -> Vec<TemplateId> {
        let mut namespaces = self.namespaces.lock();
        let here = namespaces.entry(id.namespace.clone()).or_default();
        let old = here.remove(id);
        let mut of_groups: Vec<WorkloadAffinityGroups> = Vec::new();
        let same = old
            .as_ref()
            .zip(new.as_ref())
            .is_some_and(|(old, new)| old.groups == new.groups && old.clusters == new.clusters);
        if !same {
            of_groups.extend([&old, &new].into_iter().flatten().map(|one| one.groups.clone()));
        }
        if let Some(mut new) = new {
            // What was decided and is not written yet still counts.
            new.decided = old.map(|old| old.decided).unwrap_or_default();
            if new.decided == new.clusters {
                new.decided.clear();
            }
            here.insert(id.clone(), new);
        }
        let shares = |groups: &WorkloadAffinityGroups| {
            let same = |one: &str, other: &str| !one.is_empty() && one == other;
            of_groups.iter().any(|of| {
                same(&of.affinity_group, &groups.affinity_group)
                    || same(&of.anti_affinity_group, &groups.anti_affinity_group)
            })
        };
        let others = here.iter().filter(|(_, standing)| shares(&standing.groups));
        let others = others
            .map(|(other, _)| other.clone())
            .filter(|other| other != id)
            .collect();
        if here.is_empty() {
            namespaces.remove(&id.namespace);
        }
        others
    }
}

/// A binding changed: who shares its groups is looked at again.
pub(crate) fn binding(state: &State, change: &Change, id: &TemplateId) {
    let (old, new) = (
        Standing::of(change.old.as_ref()),
        Standing::of(change.new.as_ref()),
    );
    if old.is_none() && new.is_none() {
        return;
    }
    for other in state.neighbours.put(id, new) {
        state.templates.add_bulk(other, WALK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> TemplateId {
        TemplateId {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "n".into(),
            name: name.into(),
        }
    }

    fn apart() -> WorkloadAffinityGroups {
        WorkloadAffinityGroups {
            anti_affinity_group: "app=it".into(),
            ..WorkloadAffinityGroups::default()
        }
    }

    fn standing(cluster: &str) -> Standing {
        Standing {
            groups: apart(),
            clusters: [cluster.to_owned()].into(),
            decided: BTreeSet::new(),
        }
    }

    fn goes_to(cluster: &str) -> Placed {
        let target = TargetCluster {
            name: cluster.to_owned(),
            ..TargetCluster::default()
        };
        Placed {
            verdict: Verdict::Clusters(vec![target]),
            rejected: Vec::new(),
            affinity_name: None,
        }
    }

    #[test]
    fn a_decision_counts_before_it_is_written() {
        let neighbours = Neighbours::default();
        neighbours.decide(&id("a"), &apart(), |_| goes_to("one"));
        let others = [(&apart(), &BTreeSet::from(["one".to_owned()]))];
        let seen = place::Neighbours::among(&apart(), others);
        neighbours.decide(&id("b"), &apart(), |known| {
            assert_eq!(*known, seen);
            goes_to("two")
        });
        // What was there before is told late: the decision still counts.
        neighbours.put(&id("a"), Some(standing("zero")));
        let both = BTreeSet::from(["one".to_owned(), "zero".to_owned()]);
        let seen = place::Neighbours::among(&apart(), [(&apart(), &both)]);
        neighbours.decide(&id("b"), &apart(), |known| {
            assert_eq!(*known, seen);
            goes_to("two")
        });
    }

    #[test]
    fn those_of_the_group_are_woken_when_one_moves() {
        let neighbours = Neighbours::default();
        assert_eq!(neighbours.put(&id("a"), Some(standing("one"))), []);
        assert_eq!(neighbours.put(&id("b"), Some(standing("two"))), [id("a")]);
        assert_eq!(
            neighbours.put(&id("b"), Some(standing("two"))),
            [],
            "nothing changed"
        );
        assert_eq!(neighbours.put(&id("b"), Some(standing("three"))), [id("a")]);
        assert_eq!(neighbours.put(&id("b"), None), [id("a")]);
        neighbours.put(&id("a"), None);
        assert!(neighbours.namespaces.lock().is_empty());
    }
}
