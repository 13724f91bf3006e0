//! What wakes what, of placements. Unlike elsewhere our own writes wake too: what the pass over a ManagedCluster writes is
//! what placements wait for.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use lockgate_api::RolloutPolicy;
use lockgate_api::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, PLACEMENT, Placement, PlacementDecision,
};
use serde::de::DeserializeOwned;

use super::fleet::{Reading, Touched};
use super::{DECIDE_AFTER, Ocm, TELL_AFTER, policy_intake};
use crate::cache::{Cache, Cached, Change, Key};
use crate::intake;
use crate::state::{self, State};

pub(super) fn parsed<T: DeserializeOwned>(cached: Option<Arc<Cached>>) -> Option<T> {
    cached.and_then(|cached| state::parse(&cached))
}

/// An object as it is by now: what is told at the start may be older than what was told since. It is read under the lock under
/// which it is put where others look, so that what is newer is never replaced by what is older.
pub(super) fn current<T: DeserializeOwned>(cache: &Cache, key: &Key) -> Option<T> {
    parsed(cache.get(key))
}

/// A ManagedCluster changed.
pub(crate) fn cluster(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let has_replicas = policy_intake::has_replicas(state, &key.name);
    let (is_there, measured, touched) = {
        let mut fleet = state.ocm.fleet.write();
        let cluster: Option<ManagedCluster> = current(&state.ocm.caches.managed_clusters, key);
        let is_there = cluster.is_some();
        let returns = has_replicas && is_there && fleet.cluster(&key.name).is_none();
        let unmeasured = !fleet.knows_room(&key.name);
        let touched = fleet.put_cluster(&key.name, cluster);
        if let Some(touched) = touched.as_ref().filter(|_| returns) {
            // It was gone for a moment: who decided meanwhile did without it.
            for (placement, _) in fleet.choosing_from(&touched.sets) {
                fleet.undecide(&placement);
            }
        }
        let measured = unmeasured && fleet.knows_room(&key.name);
        (is_there, measured, touched)
    };
    if !is_there
        && let Some(clusters) = state.cluster_reconciler.get().and_then(Weak::upgrade)
        && clusters.leaving(&key.name).is_some()
    {
        // It waited for this.
        clusters.poke(&key.name);
    }
    if let Some(touched) = touched {
        changed(state, &key.name, &touched);
    }
    if measured {
        // Whoever asks for room waits until all have said what they have, also those that it does not match.
        state.ocm.wake_unmeasured();
    }
    if !change.own {
        state.ocm.clusters.add(key.name.to_string(), 1);
    }
}

/// Wakes whoever looks at a cluster. It may be in no set and concern placements all the same: those for which nobody can tell.
fn changed(state: &State, name: &str, touched: &Touched) {
    wake(state, &touched.sets, |reading| touched.concerns(reading));
    policy_intake::cluster(state, name);
    for set in &touched.sets {
        tell(state, &Key::new("", set));
    }
}

/// A set changed.
pub(crate) fn set(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let old: Option<ManagedClusterSet> = parsed(change.old.clone());
    let same = |old: &ManagedClusterSet, new: &ManagedClusterSet| old.spec == new.spec;
    if !change.own {
        tell(state, key);
    }
    let (namespaces, naming) = {
        let mut fleet = state.ocm.fleet.write();
        let set: Option<ManagedClusterSet> = current(&state.ocm.caches.sets, key);
        if fleet.has_set(&key.name)
            && old
                .as_ref()
                .zip(set.as_ref())
                .is_some_and(|(old, new)| same(old, new))
        {
            return;
        }
        fleet.put_set(&key.name, set.as_ref());
        (fleet.binding(&key.name), fleet.naming(&key.name))
    };
    for placement in naming {
        // Also where it is not bound: a name of no set may be a misspelling of another.
        state.ocm.placements.add_soon(placement, 1, DECIDE_AFTER);
    }
    for namespace in namespaces {
        tell(state, &Key::new(&namespace, &key.name));
        wake_namespace(state, &namespace);
    }
}

/// A binding of a set changed.
pub(crate) fn set_binding(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    // The name is the set's; the schema says so.
    {
        let mut fleet = state.ocm.fleet.write();
        let binding = state.ocm.caches.set_bindings.get(key);
        let bound = binding.is_some_and(|cached| !cached.terminating);
        fleet.put_binding(&key.namespace, &key.name, bound);
    }
    if change.own {
        return;
    }
    tell(state, key);
    wake_namespace(state, &key.namespace);
}

/// A placement changed.
pub(crate) fn placement(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let said = |placement: Option<&Placement>| {
        let status = placement.and_then(|placement| placement.status.as_ref());
        let said = status.map(|status| (status.number_of_selected_clusters, status.decision_groups.clone()));
        said.unzip()
    };
    let reading = know_placement(&state.ocm, key, !change.own);
    let gone = reading.is_none();
    let (count, groups) = said(reading.as_ref().map(|reading| &reading.placement));
    let (count_before, groups_before) = said(parsed(change.old.clone()).as_ref());
    if gone || change.old.is_none() || count != count_before {
        // Fewer decisions than it says it has are not all of them.
        policy_intake::placement(state, key);
    }
    if gone {
        state.ocm.memories.lock().forget(key);
    }
    if gone || groups != groups_before {
        // What it says of its decisions is what others wait for.
        wake_following(state, key);
    }
    if !change.own {
        state.ocm.placements.add(key.clone(), 1);
    }
}

/// Brings what the fleet knows of a placement up to what its cache knows. A pass does so with what it wrote: a cache tells one
/// thing at a time, so that the next pass might come before the telling, and take what was there before for what is there.
///
/// What others changed is undecided from the very moment at which it can be read: a policy that came in between would take
/// replicas away from whoever is not chosen for that moment.
pub(super) fn know_placement(ocm: &Ocm, key: &Key, by_others: bool) -> Option<Arc<Reading>> {
    let mut fleet = ocm.fleet.write();
    if by_others {
        fleet.undecide(key);
    }
    let cached = ocm.caches.placements.get(key);
    let known = fleet.placement(key);
    let version = |reading: &Arc<Reading>| reading.placement.metadata.resource_version.clone();
    if known.as_ref().map(version) != cached.as_ref().map(|cached| cached.resource_version.clone()) {
        fleet.put_placement(key, parsed(cached));
    }
    fleet.placement(key)
}

/// A decision changed. Those that a pass writes wake nobody here: it says so itself, once for all of them.
pub(crate) fn decision(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let [was, is] = know_decision(&state.ocm, key, !change.own);
    if change.own {
        return;
    }
    // One that is deleted, or written by a pass, before it was looked at is known to nobody as what it was.
    let said = parsed(change.old.clone()).and_then(|old| whose(key, &old));
    let concerned: BTreeSet<Key> = [was, said, is].into_iter().flatten().collect();
    for key in concerned {
        state.ocm.fleet.write().undecide(&key);
        state.ocm.placements.add_soon(key.clone(), 1, DECIDE_AFTER);
        decided(state, &key);
    }
}

/// The same of a decision as [`know_placement`]; gives whose it was, and whose it is.
pub(super) fn know_decision(ocm: &Ocm, key: &Key, by_others: bool) -> [Option<Key>; 2] {
    let cache = &ocm.caches.decisions;
    loop {
        let cached = cache.get(key);
        let version = cached.as_ref().map(|cached| &*cached.resource_version);
        if let Some(placement) = ocm.fleet.read().knows_decision(key, version) {
            return [placement.clone(), placement];
        }
        // Not under the lock, by which all decisions of all placements come.
        let new: Option<PlacementDecision> = parsed(cached.clone());
        let new = new.and_then(|decision| Some((whose(key, &decision)?, decision)));
        let is = new.as_ref().map(|(placement, _)| placement.clone());
        let mut fleet = ocm.fleet.write();
        // Under it, so that what is newer is never replaced by what is older.
        if cache.get(key).as_ref().map(Arc::as_ptr) == cached.as_ref().map(Arc::as_ptr) {
            let both = [fleet.put_decision(key, new), is];
            for placement in both.iter().flatten().filter(|_| by_others) {
                fleet.undecide(placement);
            }
            return both;
        }
    }
}

/// The placement of a decision.
fn whose(key: &Key, decision: &PlacementDecision) -> Option<Key> {
    let name = decision.metadata.label(PLACEMENT)?;
    Some(Key::new(&key.namespace, name))
}

/// The decisions of a placement changed: whoever follows them is looked at again.
pub(super) fn decided(state: &State, placement: &Key) {
    policy_intake::placement(state, placement);
    wake_following(state, placement);
}

/// Wakes the rollouts that follow the groups of a placement.
fn wake_following(state: &State, placement: &Key) {
    let follows =
        |policy: &&Arc<RolloutPolicy>| policy.placement() == Some((&*placement.namespace, &*placement.name));
    let following: Vec<Arc<RolloutPolicy>> = state.rollouts.read().iter().filter(follows).cloned().collect();
    for policy in following {
        for selector in &policy.spec.resource_selectors {
            intake::wake_selected(state, selector, &policy.metadata.namespace);
        }
    }
}

/// What an add-on thinks of a cluster changed.
pub(crate) fn score(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let sets = {
        let mut fleet = state.ocm.fleet.write();
        let score: Option<AddOnPlacementScore> = current(&state.ocm.caches.scores, key);
        fleet.put_score(&key.namespace, &key.name, score);
        fleet.sets_of(&key.namespace)
    };
    wake(state, &sets, Reading::uses_scores);
}

/// Wakes the placements that could choose from these sets and that are concerned.
fn wake(state: &State, sets: &BTreeSet<String>, is_concerned: impl Fn(&Reading) -> bool) {
    let placements = state.ocm.fleet.read().choosing_from(sets);
    for (key, _) in placements.iter().filter(|(_, reading)| is_concerned(reading)) {
        state.ocm.placements.add_soon(key.clone(), 1, DECIDE_AFTER);
    }
}

fn wake_namespace(state: &State, namespace: &str) {
    for key in state.ocm.fleet.read().placements_in(namespace) {
        state.ocm.placements.add_soon(key, 1, DECIDE_AFTER);
    }
}

fn tell(state: &State, key: &Key) {
    state.ocm.sets.add_soon(key.clone(), 1, TELL_AFTER);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Clock;
    use crate::metrics::Metrics;
    use crate::ocm::OcmCaches;

    /// Caches that tell nobody anything, as when somebody else is telling and has not come so far.
    fn untold() -> Ocm {
        let caches = OcmCaches::follow(|resource, _| Arc::new(Cache::detached(&resource)));
        Ocm::new(caches, &Clock::real(), &Metrics::default())
    }

    fn decision(version: u32, placement: &str, clusters: &[&str]) -> Value {
        let clusters: Value = clusters.iter().map(|name| json!({"clusterName": name})).collect();
        json!({
            "metadata": {"name": "web-decision-1", "namespace": "shop", "uid": "u", "resourceVersion": version.to_string(),
                "labels": {PLACEMENT: placement}},
            "status": {"decisions": clusters},
        })
    }

    #[test]
    fn what_a_pass_wrote_is_known_before_it_is_told() {
        let (ocm, key) = (untold(), Key::new("shop", "web-decision-1"));
        let of = |placement: &str| Some(Key::new("shop", placement));
        let named = |placement: &str| -> Vec<String> {
            let (fleet, key) = (ocm.fleet.read(), Key::new("shop", placement));
            let decisions = fleet.decisions(&key);
            decisions
                .flat_map(|decision| decision.clusters().map(str::to_owned).collect::<Vec<_>>())
                .collect()
        };
        let learn = |object: Value| ocm.caches.decisions.learn(object.to_string().as_bytes()).unwrap();
        learn(decision(1, "web", &["one", "two"]));
        assert!(named("web").is_empty());
        assert_eq!(know_decision(&ocm, &key, false), [None, of("web")]);
        assert_eq!(named("web"), ["one", "two"]);
        // Told later, it is nothing new.
        assert_eq!(know_decision(&ocm, &key, false), [of("web"), of("web")]);
        learn(decision(2, "web", &["two"]));
        know_decision(&ocm, &key, false);
        assert_eq!(named("web"), ["two"]);
        assert_eq!(ocm.fleet.read().used("one"), 0);
        learn(decision(3, "other", &["two"]));
        assert_eq!(know_decision(&ocm, &key, false), [of("web"), of("other")]);
        ocm.caches.decisions.forget(&key, "u");
        assert_eq!(know_decision(&ocm, &key, false), [of("other"), None]);
        assert!(named("other").is_empty());
        assert_eq!(know_decision(&ocm, &key, false), [None, None]);
    }

    #[test]
    fn what_others_changed_is_undecided_from_the_moment_at_which_it_can_be_read() {
        let (ocm, key) = (untold(), Key::new("shop", "web-decision-1"));
        let [web, other, root] = ["web", "other", "root"].map(|name| Key::new("shop", name));
        let waits = |placement: &Key| {
            let waits = ocm.fleet.read().awaits(placement, &root);
            let mut fleet = ocm.fleet.write();
            let upto = fleet.undecided(placement);
            fleet.decide(placement, upto);
            waits
        };
        let learn = |object: Value| ocm.caches.decisions.learn(object.to_string().as_bytes()).unwrap();
        learn(decision(1, "web", &["one"]));
        know_decision(&ocm, &key, false);
        assert!(!waits(&web), "a pass decided so");
        learn(decision(2, "other", &["one"]));
        know_decision(&ocm, &key, true);
        assert_eq!([&web, &other].map(waits), [true, true]);
        ocm.caches.decisions.forget(&key, "u");
        know_decision(&ocm, &key, true);
        assert_eq!([&web, &other].map(waits), [false, true]);
        know_placement(&ocm, &web, true);
        assert!(waits(&web));
    }

    #[test]
    fn what_a_pass_said_of_a_placement_is_known_before_it_is_told() {
        let (ocm, key) = (untold(), Key::new("shop", "web"));
        let placement = |version: u32, count: u32| {
            let object = json!({
                "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version.to_string()},
                "spec": {}, "status": {"numberOfSelectedClusters": count},
            });
            ocm.caches
                .placements
                .learn(object.to_string().as_bytes())
                .unwrap();
            let reading = know_placement(&ocm, &key, false).unwrap();
            reading
                .placement
                .status
                .as_ref()
                .unwrap()
                .number_of_selected_clusters
        };
        assert_eq!((placement(1, 3), placement(2, 5)), (3, 5));
        ocm.caches.placements.forget(&key, "u");
        assert!(know_placement(&ocm, &key, false).is_none());
    }
}
