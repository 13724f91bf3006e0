//! Where the workloads of each group are (`workloadAffinity`): an index over the bindings that belong to one. It follows the
//! bindings, which are all known before anything is placed.
//!
//! Two workloads of a group may be placed at the same moment. Each decision is made and noted under one lock, so that the
//! second sees where the first goes before that is written. A decision that comes to nothing is forgotten when its pass ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lockgate_api::Binding;
use lockgate_api::binding::{TargetCluster, WorkloadAffinityGroups};
use lockgate_engine::TemplateId;
use lockgate_engine::place::{self, Neighbour, Placed, Verdict};
use parking_lot::Mutex;

use crate::state::{State, WALK};
use crate::template::binding_key;

/// The workloads that belong to groups.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// By namespace, in which groups are, and by binding.
    namespaces: Mutex<HashMap<String, Bindings>>,
}

type Bindings = BTreeMap<Arc<str>, Standing>;

/// What is known of one workload.
#[derive(Clone, Debug)]
struct Standing {
    id: TemplateId,
    /// As its binding says; where it goes, also if that was decided and is not written yet.
    seen: Neighbour,
    /// As its binding says, alone.
    clusters: BTreeSet<String>,
    decided: BTreeSet<String>,
}

impl Standing {
    fn new(id: &TemplateId, written: Neighbour, decided: BTreeSet<String>) -> Self {
        let mut seen = written.clone();
        seen.clusters.extend(decided.iter().cloned());
        Self {
            id: id.clone(),
            seen,
            clusters: written.clusters,
            decided,
        }
    }

    /// The same with another decision; whether that leaves a cluster free.
    fn decide(&mut self, decided: BTreeSet<String>) -> bool {
        let mut clusters = self.clusters.clone();
        clusters.extend(decided.iter().cloned());
        let frees = !self.seen.clusters.is_subset(&clusters);
        (self.seen.clusters, self.decided) = (clusters, decided);
        frees
    }
}

fn names(targets: &[TargetCluster]) -> BTreeSet<String> {
    targets.iter().map(|target| target.name.clone()).collect()
}

/// Those who share a group with a workload.
fn mates(here: &Bindings, id: &TemplateId, of: &[WorkloadAffinityGroups]) -> Vec<TemplateId> {
    let others = here.values().filter(|other| other.id != *id);
    let mates = others.filter(|other| of.iter().any(|groups| other.seen.meets(groups)));
    mates.map(|other| other.id.clone()).collect()
}

impl Neighbours {
    /// Decides where a workload goes, who its neighbours are being known, and notes it. Also those who may go now where it
    /// no longer does.
    pub(crate) fn decide(
        &self,
        id: &TemplateId,
        groups: &WorkloadAffinityGroups,
        decide: impl FnOnce(&place::Neighbours) -> Placed,
    ) -> (Placed, Vec<TemplateId>) {
        let key = binding_key(id);
        let mut namespaces = self.namespaces.lock();
        let here = namespaces.entry(id.namespace.clone()).or_default();
        let others = here.iter().filter(|(name, _)| **name != key.name);
        let placed = decide(&place::Neighbours::among(
            groups,
            others.map(|(_, other)| &other.seen),
        ));
        let decided = match &placed.verdict {
            Verdict::Clusters(targets) => names(targets),
            _ => BTreeSet::new(),
        };
        let standing = here.entry(key.name).or_insert_with(|| {
            let nothing = Neighbour::default();
            Standing::new(id, nothing, BTreeSet::new())
        });
        standing.seen.groups.clone_from(groups);
        let frees = standing.decide(decided);
        let woken = if frees {
            mates(here, id, std::slice::from_ref(groups))
        } else {
            Vec::new()
        };
        (placed, woken)
    }

    /// A pass is over, and this is the binding: what was decided otherwise came to nothing. Those who may go there now.
    fn settle(&self, id: &TemplateId, binding: Option<&Binding>) -> Vec<TemplateId> {
        let mut namespaces = self.namespaces.lock();
        let Some(here) = namespaces.get_mut(&id.namespace) else {
            return Vec::new();
        };
        let key = binding_key(id);
        let Some(standing) = here.get_mut(&key.name) else {
            return Vec::new();
        };
        let groups = standing.seen.groups.clone();
        let frees = match binding {
            Some(binding) if names(&binding.spec.clusters) == standing.decided => false,
            Some(_) => standing.decide(BTreeSet::new()),
            None => here.remove(&key.name).is_some(),
        };
        if !frees {
            return Vec::new();
        }
        let mates = mates(here, id, &[groups]);
        if here.is_empty() {
            namespaces.remove(&id.namespace);
        }
        mates
    }

    /// Takes in what a binding says; whoever shares a group with it, as it was or as it is, if that changes anything.
    fn put(&self, id: &TemplateId, new: Option<Neighbour>) -> Vec<TemplateId> {
        let key = binding_key(id);
        let mut namespaces = self.namespaces.lock();
        let here = namespaces.entry(id.namespace.clone()).or_default();
        let old = here.remove(&key.name);
        let same = old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| {
            (&old.seen.groups, &old.clusters, &old.seen.leaving) == (&new.groups, &new.clusters, &new.leaving)
        });
        let mut of = Vec::new();
        if !same {
            of.extend(old.as_ref().map(|old| old.seen.groups.clone()));
            of.extend(new.as_ref().map(|new| new.groups.clone()));
        }
        if let Some(new) = new {
            // What was decided and is not written yet still counts.
            let decided = old.map(|old| old.decided).unwrap_or_default();
            let decided = if decided == new.clusters {
                BTreeSet::new()
            } else {
                decided
            };
            here.insert(key.name, Standing::new(id, new, decided));
        }
        let mates = mates(here, id, &of);
        if here.is_empty() {
            namespaces.remove(&id.namespace);
        }
        mates
    }
}

fn wake(state: &State, mates: Vec<TemplateId>) {
    for mate in mates {
        state.templates.add_bulk(mate, WALK);
    }
}

/// Decides where a workload goes that belongs to groups.
pub(crate) fn decide(
    state: &State,
    id: &TemplateId,
    groups: &WorkloadAffinityGroups,
    decide: impl FnOnce(&place::Neighbours) -> Placed,
) -> Placed {
    let (placed, mates) = state.neighbours.decide(id, groups, decide);
    wake(state, mates);
    placed
}

/// The pass over a template is over, and this is its binding.
pub(crate) fn settle(state: &State, id: &TemplateId, binding: Option<&Binding>) {
    wake(state, state.neighbours.settle(id, binding));
}

/// A binding changed: who shares its groups is looked at again.
pub(crate) fn binding(state: &State, old: Option<&Binding>, new: Option<&Binding>, id: &TemplateId) {
    let neighbour = |binding: Option<&Binding>| Neighbour::of(&binding?.spec);
    let (old, new) = (neighbour(old), neighbour(new));
    if old.is_some() || new.is_some() {
        wake(state, state.neighbours.put(id, new));
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

    fn on(clusters: &[&str]) -> Neighbour {
        Neighbour {
            groups: apart(),
            clusters: clusters.iter().map(|&name| name.to_owned()).collect(),
            leaving: BTreeSet::new(),
        }
    }

    fn target(cluster: &str) -> TargetCluster {
        TargetCluster {
            name: cluster.to_owned(),
            ..TargetCluster::default()
        }
    }

    /// Decides that a workload goes to a cluster, while the others are on these; who is woken.
    fn decide(neighbours: &Neighbours, name: &str, cluster: &str, others: &[&str]) -> Vec<TemplateId> {
        let expected = place::Neighbours::among(&apart(), &[on(others)]);
        let (_, woken) = neighbours.decide(&id(name), &apart(), |known| {
            assert_eq!(*known, expected, "{name}");
            Placed {
                verdict: Verdict::Clusters(vec![target(cluster)]),
                rejected: Vec::new(),
                affinity_name: None,
            }
        });
        woken
    }

    #[test]
    fn a_decision_counts_before_it_is_written() {
        let neighbours = Neighbours::default();
        decide(&neighbours, "a", "one", &[]);
        decide(&neighbours, "b", "two", &["one"]);
        // What was there before is told late: the decision still counts.
        neighbours.put(&id("a"), Some(on(&["zero"])));
        decide(&neighbours, "b", "two", &["one", "zero"]);
        neighbours.put(&id("a"), Some(on(&["one"])));
        decide(&neighbours, "b", "two", &["one"]);
    }

    #[test]
    fn a_decision_that_comes_to_nothing_is_forgotten() {
        let neighbours = Neighbours::default();
        neighbours.put(&id("b"), Some(on(&["two"])));
        decide(&neighbours, "a", "one", &["two"]);
        assert_eq!(neighbours.settle(&id("a"), None), [id("b")]);
        decide(&neighbours, "b", "three", &[]);
        let mut binding = Binding::default();
        binding.spec.clusters = vec![target("two")];
        decide(&neighbours, "a", "one", &["two", "three"]);
        assert_eq!(neighbours.settle(&id("b"), Some(&binding)), [id("a")]);
        let woken = decide(&neighbours, "a", "three", &["two"]);
        assert_eq!(woken, [id("b")], "it no longer goes to one");
    }

    #[test]
    fn those_of_the_group_are_woken_when_one_moves() {
        let neighbours = Neighbours::default();
        assert_eq!(neighbours.put(&id("a"), Some(on(&["one"]))), []);
        assert_eq!(neighbours.put(&id("b"), Some(on(&["two"]))), [id("a")]);
        assert_eq!(
            neighbours.put(&id("b"), Some(on(&["two"]))),
            [],
            "nothing changed"
        );
        assert_eq!(neighbours.put(&id("b"), Some(on(&["three"]))), [id("a")]);
        assert_eq!(neighbours.put(&id("b"), None), [id("a")]);
        neighbours.put(&id("a"), None);
        assert!(neighbours.namespaces.lock().is_empty());
    }
}
