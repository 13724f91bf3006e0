//! The fleet as placements look at it: clusters and sets, who belongs where, and what is decided. It follows the caches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use lockgate_api::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, Placement, PlacementDecision,
};
use lockgate_engine::placement::prioritize::{Scores, end};
use lockgate_engine::placement::sets::choose;
use lockgate_engine::placement::{Candidate, Choice, Membership, Misconfigured, Rules};
use parking_lot::Mutex;

use crate::cache::Key;

/// A cluster, and a number that no other state of any cluster had.
#[derive(Clone)]
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
    /// The root policies that wait for the decision. They enter while they read the fleet.
    roots: Mutex<BTreeSet<Key>>,
}

/// What a change of a cluster touches.
pub(crate) struct Touched {
    /// The sets that it was in or is in.
    pub(crate) sets: BTreeSet<String>,
    /// The cluster before and now, if it is in the sets that it was in.
    stays: Option<(Arc<Candidate>, Arc<Candidate>)>,
}

impl Touched {
    /// Whether a placement that chooses from these sets may decide otherwise now. A cluster that it does not match, and did
    /// not before, is nothing to it.
    pub(crate) fn concerns(&self, reading: &Reading) -> bool {
        let Some((before, now)) = &self.stays else {
            return true;
        };
        let rules = reading.rules().as_ref();
        rules.map_or(true, |rules| rules.may_match(before) || rules.may_match(now))
    }
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
    /// The placement of each decision.
    deciding: HashMap<Key, Key>,
    /// How many decisions name each cluster.
    used: HashMap<String, usize>,
    /// Placements whose decisions may be wrong until they are decided again.
    undecided: HashMap<Key, Undecided>,
    /// By cluster and name.
    scores: BTreeMap<String, BTreeMap<String, Arc<AddOnPlacementScore>>>,
    versions: u64,
}

impl Fleet {
    /// A cluster changed; gives the sets that it was in or is in, or nothing if nothing changed that placements look at.
    pub(crate) fn put_cluster(&mut self, name: &str, cluster: Option<ManagedCluster>) -> Option<Touched> {
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
            return None;
        }
        let mut sets: BTreeSet<String> = BTreeSet::new();
        for (set, members) in &mut self.members {
            if members.remove(name) {
                sets.insert(set.clone());
            }
        }
        let Some(cluster) = cluster else {
            let known = self.clusters.remove(name);
            return known.map(|_| Touched { sets, stays: None });
        };
        let before = sets.clone();
        let candidate = Arc::new(Candidate::new(cluster));
        for (set, membership) in &self.sets {
            if membership.includes(&candidate) {
                let members = self.members.entry(set.clone()).or_default();
                members.insert(name.to_owned());
                sets.insert(set.clone());
            }
        }
        self.versions += 1;
        let known = Known {
            candidate: candidate.clone(),
            version: self.versions,
        };
        let old = self.clusters.insert(name.to_owned(), known);
        let stays = old
            .filter(|_| self.sets_of(name) == before)
            .map(|old| (old.candidate, candidate));
        Some(Touched { sets, stays })
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

    /// Whose a decision is, if it is known in the state of this version, or rightly known to nobody.
    pub(crate) fn knows_decision(&self, key: &Key, version: Option<&str>) -> Option<Option<Key>> {
        let placement = self.deciding.get(key);
        let decision = placement.and_then(|placement| self.decisions.get(placement)?.get(&*key.name));
        let known = decision.map(|decision| decision.metadata.resource_version.as_str());
        (known == version).then(|| placement.cloned())
    }

    /// A decision changed; gives the placement whose it was.
    pub(crate) fn put_decision(&mut self, key: &Key, new: Option<(Key, PlacementDecision)>) -> Option<Key> {
        let was = self.deciding.remove(key);
        if let Some(placement) = &was {
            self.take_decision(placement, &key.name);
        }
        if let Some((placement, decision)) = new {
            for cluster in decision.clusters() {
                match self.used.get_mut(cluster) {
                    Some(count) => *count += 1,
                    None => drop(self.used.insert(cluster.to_owned(), 1)),
                }
            }
            let decisions = self.decisions.entry(placement.clone()).or_default();
            decisions.insert(key.name.to_string(), Arc::new(decision));
            self.deciding.insert(key.clone(), placement);
        }
        was
    }

    fn take_decision(&mut self, placement: &Key, name: &str) {
        let Some(decisions) = self.decisions.get_mut(placement) else {
            return;
        };
        let old = decisions.remove(name);
        if decisions.is_empty() {
            self.decisions.remove(placement);
        }
        for cluster in old.iter().flat_map(|old| old.clusters()) {
            if let Some(count) = self.used.get_mut(cluster) {
                *count -= 1;
                if *count == 0 {
                    self.used.remove(cluster);
                }
            }
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
        decided
            .map(|decided| decided.roots.into_inner())
            .unwrap_or_default()
    }

    /// Whether a root policy has to wait until a placement is decided; then it is woken when that is done.
    pub(crate) fn awaits(&self, key: &Key, root: &Key) -> bool {
        self.undecided.get(key).is_some_and(|undecided| {
            undecided.roots.lock().insert(root.clone());
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

    /// How many clusters a set has, or why nobody can tell.
    pub(crate) fn members(&self, set: &str) -> Result<usize, &str> {
        match self.sets.get(set).and_then(Membership::trouble) {
            Some(trouble) => Err(trouble),
            None => Ok(self.members.get(set).map_or(0, BTreeSet::len)),
        }
    }

    /// Whether nobody can tell who belongs to a set.
    fn is_unknown(&self, set: &str) -> bool {
        self.sets.get(set).is_none_or(|set| set.trouble().is_some())
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

    /// The placements that could choose from one of these sets. What was chosen from a set of which nobody can tell who belongs
    /// to it may be in any.
    pub(crate) fn choosing_from(&self, sets: &BTreeSet<String>) -> Vec<(Key, Arc<Reading>)> {
        let mut found = Vec::new();
        let mut namespace: Option<(&str, bool)> = None;
        for (key, reading) in &self.placements {
            let binds = match namespace {
                Some((known, binds)) if known == &*key.namespace => binds,
                _ => {
                    let bound = self.bound.get(&*key.namespace);
                    let concerned = |set: &String| sets.contains(set) || self.is_unknown(set);
                    bound.is_some_and(|bound| bound.iter().any(concerned))
                }
            };
            namespace = Some((&key.namespace, binds));
            let wanted = &reading.placement.spec.cluster_sets;
            if binds
                && (wanted.is_empty()
                    || wanted
                        .iter()
                        .any(|set| sets.contains(set) || self.is_unknown(set)))
            {
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

    /// The placements that name a set.
    pub(crate) fn naming(&self, set: &str) -> Vec<Key> {
        let names = |(_, reading): &(&Key, &Arc<Reading>)| {
            reading.placement.spec.cluster_sets.iter().any(|s| s == set)
        };
        let naming = self.placements.iter().filter(names);
        naming.map(|(key, _)| key.clone()).collect()
    }

    /// The namespaces in which a set is bound.
    pub(crate) fn binding(&self, set: &str) -> Vec<String> {
        let bound = self.bound.iter().filter(|(_, sets)| sets.contains(set));
        bound.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The sets that a placement chooses from.
    pub(crate) fn choice(&self, key: &Key, wanted: &[String]) -> Choice {
        let bound = self.bound.get(&*key.namespace).into_iter().flatten();
        let decided = self.decisions(key).flat_map(|decision| decision.clusters());
        let decided = decided.filter_map(|cluster| self.clusters.get(cluster));
        let find = |set: &str| self.sets.get(set);
        choose(
            bound.map(String::as_str),
            wanted,
            find,
            decided.map(|known| &*known.candidate),
        )
    }

    /// Whether a ManagedCluster says what the cluster has room for, or there is none.
    pub(crate) fn knows_room(&self, name: &str) -> bool {
        self.clusters
            .get(name)
            .is_none_or(|known| !known.candidate.cluster.status.allocatable.is_empty())
    }

    /// The clusters of the sets that a placement chooses from, by name; with those that it decided, where they may belong to
    /// sets of which nobody can tell.
    pub(crate) fn candidates(&self, key: &Key, choice: &Choice) -> Vec<&Known> {
        let Choice::Sets { sets, .. } = choice else {
            return Vec::new();
        };
        let find = |name: &str| self.clusters.get(name);
        let mut lists = sets.iter().filter_map(|set| self.members.get(set));
        match (lists.next(), sets.len()) {
            // Whoever is in such a set is in the fleet, so that none is missing.
            (Some(all), 1) if all.len() == self.clusters.len() => self.clusters.values().collect(),
            (Some(only), 1) if !choice.keeps_decided() => only.iter().filter_map(|name| find(name)).collect(),
            (first, _) => {
                let members = first.into_iter().chain(lists).flatten().map(String::as_str);
                let mut all: BTreeSet<&str> = members.collect();
                if choice.keeps_decided() {
                    all.extend(self.decisions(key).flat_map(|decision| decision.clusters()));
                }
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
}

/// The scores of add-ons that count at a time.
pub(crate) struct ScoresAt<'a> {
    fleet: Option<&'a Fleet>,
    now: Timestamp,
}

impl<'a> ScoresAt<'a> {
    /// The scores of a fleet, or none: for whoever does not look at any.
    pub(crate) fn new(fleet: Option<&'a Fleet>, now: Timestamp) -> Self {
        Self { fleet, now }
    }

    fn find(&self, cluster: &str, resource: &str) -> Option<&AddOnPlacementScore> {
        let scores = self.fleet?.scores.get(cluster)?;
        scores.get(resource).map(|score| &**score)
    }

    /// When the first score that counts now runs out.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        let all = self.fleet.into_iter().flat_map(|fleet| fleet.scores.values());
        all.flat_map(BTreeMap::values)
            .filter_map(|score| end(score))
            .filter(|end| *end > self.now)
            .min()
    }
}

impl Scores for ScoresAt<'_> {
    fn all(&self, cluster: &str, resource: &str) -> Vec<(String, i64)> {
        let score = self.find(cluster, resource);
        let valid = score.filter(|score| end(score).is_none_or(|end| self.now < end));
        let scores = valid.into_iter().flat_map(|score| &score.status.scores);
        scores
            .map(|score| (score.name.clone(), i64::from(score.value)))
            .collect()
    }

    fn ended(&self, cluster: &str, resource: &str) -> Option<Timestamp> {
        end(self.find(cluster, resource)?).filter(|end| *end <= self.now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(labels: Value) -> Option<ManagedCluster> {
        serde_json::from_value(json!({"metadata": {"name": "one", "labels": labels}})).ok()
    }

    #[test]
    fn a_cluster_in_no_set_concerns_whoever_chooses_from_sets_that_nobody_can_tell() {
        let mut fleet = Fleet::default();
        let placement = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {}});
        let key = Key::new("shop", "web");
        fleet.put_placement(&key, serde_json::from_value(placement).ok());
        fleet.put_binding("shop", "gone", true);
        let touched = fleet.put_cluster("one", cluster(json!({"a": "b"})));
        let sets = touched.map(|touched| touched.sets);
        assert_eq!(sets, Some(BTreeSet::new()), "it is new");
        let concerned = fleet.choosing_from(&BTreeSet::new());
        assert_eq!(concerned.len(), 1);
        assert!(fleet.put_cluster("one", cluster(json!({"a": "b"}))).is_none());
        assert!(fleet.put_cluster("one", cluster(json!({"a": "c"}))).is_some());
        assert!(fleet.put_cluster("one", None).is_some());
        assert!(fleet.put_cluster("one", None).is_none());
    }
}
