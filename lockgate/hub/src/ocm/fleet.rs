//! The fleet as placements look at it: clusters and sets, who belongs where, and what is decided. It follows the caches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use lockgate_api::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, Placement, PlacementDecision,
};
use lockgate_engine::placement::prioritize::Scores;
use lockgate_engine::placement::sets::choose;
use lockgate_engine::placement::{Candidate, Choice, Membership, Misconfigured, Rules};

use crate::cache::Key;

/// A cluster, and a number that no other state of any cluster had.
pub(crate) struct Known {
    pub(crate) candidate: Arc<Candidate>,
    pub(crate) version: u64,
}

/// A placement, read when it is first decided.
pub(crate) struct Reading {
    pub(crate) placement: Placement,
    /// Shared by all states of the placement that say the same.
    pub(crate) rules: SharedRules,
}

/// What a placement says, once it was read.
pub(crate) type SharedRules = Arc<OnceLock<Result<Rules, Misconfigured>>>;

impl Reading {
    /// What it says.
    pub(crate) fn rules(&self) -> &Result<Rules, Misconfigured> {
        self.rules.get_or_init(|| Rules::read(&self.placement))
    }

    /// Whether it looks at scores of add-ons.
    pub(crate) fn uses_scores(&self) -> bool {
        let spec = &self.placement.spec;
        let coordinates = spec.prioritizer_policy.configurations.iter();
        let cel = spec.predicates.iter();
        coordinates
            .filter_map(|configuration| configuration.score_coordinate.as_ref())
            .any(|coordinate| coordinate.kind == "AddOn")
            || cel
                .filter_map(|predicate| predicate.required_cluster_selector.cel_selector.as_ref())
                .flat_map(|cel| &cel.cel_expressions)
                .any(|expression| expression.contains("scores("))
    }
}

/// A placement whose decisions may be wrong: somebody else changed them, it was never decided by this process, or they are
/// being written.
#[derive(Default)]
struct Undecided {
    /// Which change it was, of all; 0: only those of ours.
    change: u64,
    /// The root policies that wait for the decision.
    roots: BTreeSet<Key>,
}

/// The fleet.
#[derive(Default)]
pub(crate) struct Fleet {
    clusters: BTreeMap<String, Known>,
    sets: BTreeMap<String, Membership>,
    /// The clusters of each set.
    members: BTreeMap<String, BTreeSet<String>>,
    /// The sets that are bound in each namespace.
    bound: BTreeMap<String, BTreeSet<String>>,
    placements: BTreeMap<Key, Arc<Reading>>,
    /// The decisions of each placement, by name.
    decisions: BTreeMap<Key, BTreeMap<String, Arc<PlacementDecision>>>,
    /// How many decisions name each cluster.
    used: HashMap<String, usize>,
    /// Placements whose decisions may be wrong until they are decided again.
    undecided: HashMap<Key, Undecided>,
    /// By cluster and name.
    scores: BTreeMap<String, BTreeMap<String, Arc<AddOnPlacementScore>>>,
    versions: u64,
}

impl Fleet {
    /// A cluster changed; gives the sets that it was in or is in, or none if nothing changed that placements look at.
    pub(crate) fn put_cluster(&mut self, name: &str, cluster: Option<ManagedCluster>) -> BTreeSet<String> {
        let before = self.clusters.get(name).map(|known| &known.candidate.cluster);
        let same = |old: &ManagedCluster, new: &ManagedCluster| {
            old.spec == new.spec
                && old.status == new.status
                && old.metadata.labels == new.metadata.labels
                && old.metadata.annotations == new.metadata.annotations
                && old.metadata.deleting() == new.metadata.deleting()
        };
        if before
            .zip(cluster.as_ref())
            .is_some_and(|(old, new)| same(old, new))
        {
            return BTreeSet::new();
        }
        let mut touched: BTreeSet<String> = BTreeSet::new();
        for (set, members) in &mut self.members {
            if members.remove(name) {
                touched.insert(set.clone());
            }
        }
        let Some(cluster) = cluster else {
            self.clusters.remove(name);
            return touched;
        };
        let candidate = Candidate::new(cluster);
        for (set, membership) in &self.sets {
            if membership.includes(&candidate) {
                let members = self.members.entry(set.clone()).or_default();
                members.insert(name.to_owned());
                touched.insert(set.clone());
            }
        }
        self.versions += 1;
        let known = Known {
            candidate: Arc::new(candidate),
            version: self.versions,
        };
        self.clusters.insert(name.to_owned(), known);
        touched
    }

    /// A set changed.
    pub(crate) fn put_set(&mut self, name: &str, set: Option<&ManagedClusterSet>) {
        let Some(set) = set else {
            self.sets.remove(name);
            self.members.remove(name);
            return;
        };
        let membership = Membership::of(set);
        let of =
            |(name, known): (&String, &Known)| membership.includes(&known.candidate).then(|| name.clone());
        let members = self.clusters.iter().filter_map(of).collect();
        self.members.insert(name.to_owned(), members);
        self.sets.insert(name.to_owned(), membership);
    }

    /// A set was bound in a namespace, or is no longer.
    pub(crate) fn put_binding(&mut self, namespace: &str, set: &str, bound: bool) {
        let sets = self.bound.entry(namespace.to_owned()).or_default();
        if bound {
            sets.insert(set.to_owned());
        } else {
            sets.remove(set);
        }
    }

    /// A placement changed.
    pub(crate) fn put_placement(&mut self, key: &Key, placement: Option<Placement>) {
        match placement {
            None => drop(self.placements.remove(key)),
            Some(placement) => {
                // What was read once is not read again because a status changed.
                let old = self.placements.get(key);
                let rules = old
                    .filter(|old| old.placement.spec == placement.spec)
                    .map(|old| old.rules.clone())
                    .unwrap_or_default();
                let reading = Reading { placement, rules };
                self.placements.insert(key.clone(), Arc::new(reading));
            }
        }
    }

    /// A decision changed.
    pub(crate) fn put_decision(&mut self, key: &Key, name: &str, decision: Option<PlacementDecision>) {
        let decisions = self.decisions.entry(key.clone()).or_default();
        if let Some(old) = decisions.remove(name) {
            for cluster in old.clusters() {
                if let Some(count) = self.used.get_mut(cluster) {
                    *count -= 1;
                    if *count == 0 {
                        self.used.remove(cluster);
                    }
                }
            }
        }
        match decision {
            Some(decision) => {
                for cluster in decision.clusters() {
                    *self.used.entry(cluster.to_owned()).or_insert(0) += 1;
                }
                decisions.insert(name.to_owned(), Arc::new(decision));
            }
            None if decisions.is_empty() => drop(self.decisions.remove(key)),
            None => {}
        }
    }

    /// A placement has to be decided: until then its decisions may be those of something that is no longer so.
    pub(crate) fn undecide(&mut self, key: &Key) {
        self.versions += 1;
        let change = self.versions;
        self.undecided.entry(key.clone()).or_default().change = change;
    }

    /// Which change a decision that begins now takes in.
    pub(crate) fn undecided(&self, key: &Key) -> u64 {
        self.undecided.get(key).map_or(0, |undecided| undecided.change)
    }

    /// The decisions of a placement, and what it says of them, are being written.
    pub(crate) fn begin_to_write(&mut self, key: &Key) {
        self.undecided.entry(key.clone()).or_default();
    }

    /// A placement was decided up to some change; gives the root policies that waited for that.
    pub(crate) fn decide(&mut self, key: &Key, upto: u64) -> BTreeSet<Key> {
        if self.undecided(key) != upto {
            return BTreeSet::new();
        }
        let decided = self.undecided.remove(key);
        decided.map(|decided| decided.roots).unwrap_or_default()
    }

    /// Whether a root policy has to wait until a placement is decided; then it is woken when that is done.
    pub(crate) fn awaits(&mut self, key: &Key, root: &Key) -> bool {
        let undecided = self.undecided.get_mut(key);
        undecided.is_some_and(|undecided| {
            undecided.roots.insert(root.clone());
            true
        })
    }

    /// A score changed: what placements think of the cluster may change.
    pub(crate) fn put_score(&mut self, cluster: &str, name: &str, score: Option<AddOnPlacementScore>) {
        let scores = self.scores.entry(cluster.to_owned()).or_default();
        match score {
            Some(score) => drop(scores.insert(name.to_owned(), Arc::new(score))),
            None => drop(scores.remove(name)),
        }
        self.versions += 1;
        let version = self.versions;
        if let Some(known) = self.clusters.get_mut(cluster) {
            known.version = version;
        }
    }

    /// A cluster.
    pub(crate) fn cluster(&self, name: &str) -> Option<&ManagedCluster> {
        self.clusters.get(name).map(|known| &known.candidate.cluster)
    }

    /// What a cluster says about itself.
    pub(crate) fn claims(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.clusters.get(name).map(|known| &known.candidate.claims)
    }

    pub(crate) fn has_set(&self, set: &str) -> bool {
        self.sets.contains_key(set)
    }

    /// How many clusters a set has.
    pub(crate) fn members(&self, set: &str) -> usize {
        self.members.get(set).map_or(0, BTreeSet::len)
    }

    /// The sets that a cluster is in.
    pub(crate) fn sets_of(&self, cluster: &str) -> BTreeSet<String> {
        let of =
            |(set, members): (&String, &BTreeSet<String>)| members.contains(cluster).then(|| set.clone());
        self.members.iter().filter_map(of).collect()
    }

    pub(crate) fn placement(&self, key: &Key) -> Option<Arc<Reading>> {
        self.placements.get(key).cloned()
    }

    /// The placements that could choose from one of these sets.
    pub(crate) fn choosing_from(&self, sets: &BTreeSet<String>) -> Vec<(Key, Arc<Reading>)> {
        let mut found = Vec::new();
        let mut namespace: Option<(&str, bool)> = None;
        for (key, reading) in &self.placements {
            let binds = match namespace {
                Some((known, binds)) if known == &*key.namespace => binds,
                _ => {
                    let bound = self.bound.get(&*key.namespace);
                    bound.is_some_and(|bound| !bound.is_disjoint(sets))
                }
            };
            namespace = Some((&key.namespace, binds));
            let wanted = &reading.placement.spec.cluster_sets;
            if binds && (wanted.is_empty() || wanted.iter().any(|set| sets.contains(set))) {
                found.push((key.clone(), reading.clone()));
            }
        }
        found
    }

    /// The placements of a namespace.
    pub(crate) fn placements_in(&self, namespace: &str) -> Vec<Key> {
        let keys = self.placements.keys();
        keys.filter(|key| &*key.namespace == namespace).cloned().collect()
    }

    /// The namespaces in which a set is bound.
    pub(crate) fn binding(&self, set: &str) -> Vec<String> {
        let bound = self.bound.iter().filter(|(_, sets)| sets.contains(set));
        bound.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The sets that a placement chooses from.
    pub(crate) fn choice(&self, namespace: &str, wanted: &[String]) -> Choice {
        let bound = self.bound.get(namespace).into_iter().flatten();
        choose(bound.map(String::as_str), wanted, |set| self.has_set(set))
    }

    /// Whether a ManagedCluster says what the cluster has room for, or there is none.
    pub(crate) fn knows_room(&self, name: &str) -> bool {
        self.clusters
            .get(name)
            .is_none_or(|known| !known.candidate.cluster.status.allocatable.is_empty())
    }

    /// The clusters of these sets, by name.
    pub(crate) fn candidates(&self, choice: &Choice) -> Vec<(&str, &Known)> {
        let Choice::Sets(sets) = choice else {
            return Vec::new();
        };
        let find = |name: &String| {
            let (name, known) = self.clusters.get_key_value(name)?;
            Some((name.as_str(), known))
        };
        let mut lists = sets.iter().filter_map(|set| self.members.get(set));
        match (lists.next(), sets.len()) {
            (None, _) => Vec::new(),
            (Some(only), 1) => only.iter().filter_map(find).collect(),
            (Some(first), _) => {
                let all: BTreeSet<&String> = first.iter().chain(lists.flatten()).collect();
                all.into_iter().filter_map(find).collect()
            }
        }
    }

    /// The decisions of a placement.
    pub(crate) fn decisions(&self, key: &Key) -> impl Iterator<Item = &Arc<PlacementDecision>> {
        self.decisions.get(key).into_iter().flat_map(BTreeMap::values)
    }

    /// How many decisions name a cluster.
    pub(crate) fn used(&self, cluster: &str) -> usize {
        self.used.get(cluster).copied().unwrap_or(0)
    }

    /// The clusters that decisions name, and how often.
    pub(crate) fn all_used(&self) -> impl Iterator<Item = (&str, usize)> {
        self.used
            .iter()
            .map(|(cluster, count)| (cluster.as_str(), *count))
    }

    /// The scores of add-ons that count at a time.
    pub(crate) fn scores_at(&self, now: Timestamp) -> ScoresAt<'_> {
        ScoresAt { fleet: self, now }
    }
}

/// The scores of add-ons that count at a time.
pub(crate) struct ScoresAt<'a> {
    fleet: &'a Fleet,
    now: Timestamp,
}

impl ScoresAt<'_> {
    /// When the first score that counts now runs out.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        let all = self.fleet.scores.values().flat_map(BTreeMap::values);
        all.filter_map(|score| end(score))
            .filter(|end| *end > self.now)
            .min()
    }
}

fn end(score: &AddOnPlacementScore) -> Option<Timestamp> {
    score
        .status
        .valid_until
        .as_deref()
        .and_then(|time| time.parse().ok())
}

impl Scores for ScoresAt<'_> {
    fn all(&self, cluster: &str, resource: &str) -> Vec<(String, i64)> {
        let score = self
            .fleet
            .scores
            .get(cluster)
            .and_then(|scores| scores.get(resource));
        let valid = score.filter(|score| end(score).is_none_or(|end| self.now < end));
        let scores = valid.into_iter().flat_map(|score| &score.status.scores);
        scores
            .map(|score| (score.name.clone(), i64::from(score.value)))
            .collect()
    }
}
