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
use super::{DECIDE_AFTER, TELL_AFTER, policy_intake};
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
    let (is_there, appears, measured, touched) = {
        let mut fleet = state.ocm.fleet.write();
        let cluster: Option<ManagedCluster> = current(&state.ocm.caches.managed_clusters, key);
        let is_there = cluster.is_some();
        let appears = is_there && fleet.cluster(&key.name).is_none();
        let unmeasured = !fleet.knows_room(&key.name);
        let touched = fleet.put_cluster(&key.name, cluster);
        let measured = unmeasured && fleet.knows_room(&key.name);
        (is_there, appears, measured, touched)
    };
    if !is_there
        && let Some(clusters) = state.cluster_reconciler.get().and_then(Weak::upgrade)
        && clusters.leaving(&key.name).is_some()
    {
        // It waited for this.
        clusters.poke(&key.name);
    }
    if let Some(touched) = touched {
        changed(state, &key.name, appears, &touched);
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
fn changed(state: &State, name: &str, appears: bool, touched: &Touched) {
    if appears && policy_intake::has_replicas(state, name) {
        // It was gone for a moment: who decided meanwhile did without it.
        let mut fleet = state.ocm.fleet.write();
        for (key, _) in fleet.choosing_from(&touched.sets) {
            fleet.undecide(&key);
            state.ocm.placements.add_soon(key, 1, DECIDE_AFTER);
        }
    }
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
    let said = |placement: &Option<Placement>| {
        let status = placement.as_ref().and_then(|placement| placement.status.as_ref());
        let said = status.map(|status| (status.number_of_selected_clusters, status.decision_groups.clone()));
        said.unzip()
    };
    let (gone, (count, groups)) = {
        let mut fleet = state.ocm.fleet.write();
        let placement: Option<Placement> = current(&state.ocm.caches.placements, key);
        let (gone, now) = (placement.is_none(), said(&placement));
        fleet.put_placement(key, placement);
        (gone, now)
    };
    let (count_before, groups_before) = said(&parsed(change.old.clone()));
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
        state.ocm.fleet.write().undecide(key);
        state.ocm.placements.add(key.clone(), 1);
    }
}

/// A decision changed.
pub(crate) fn decision(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let placement = |decision: &PlacementDecision| {
        let name = decision.metadata.label(PLACEMENT)?;
        Some(Key::new(&key.namespace, name))
    };
    let (known, is) = {
        let mut fleet = state.ocm.fleet.write();
        let new: Option<PlacementDecision> = current(&state.ocm.caches.decisions, key);
        let new = new.and_then(|decision| Some((placement(&decision)?, decision)));
        let is = new.as_ref().map(|(placement, _)| placement.clone());
        (fleet.put_decision(key, new), is)
    };
    for key in concerned(known, || placement(&parsed(change.old.clone())?), is) {
        if !change.own {
            state.ocm.fleet.write().undecide(&key);
            state.ocm.placements.add_soon(key.clone(), 1, DECIDE_AFTER);
        }
        policy_intake::placement(state, &key);
        wake_following(state, &key);
    }
}

/// The placements that a change of a decision concerns: whose it was, as far as anybody knew or else by what it `said`, and
/// whose it is. One that is deleted before it was looked at is known to nobody, and its placement is to be decided all the same.
fn concerned(
    known: Option<Key>,
    said: impl FnOnce() -> Option<Key>,
    is: Option<Key>,
) -> impl Iterator<Item = Key> {
    let was = known.or_else(said).filter(|was| is.as_ref() != Some(was));
    was.into_iter().chain(is)
}

/// A placement decided anew: whoever follows its groups is looked at again.
fn wake_following(state: &State, placement: &Key) {
    let follows =
        |policy: &&Arc<RolloutPolicy>| policy.placement() == Some((&*placement.namespace, &*placement.name));
    let following: Vec<Arc<RolloutPolicy>> = state.rollouts.read().iter().filter(follows).cloned().collect();
    for policy in following {
        for selector in &policy.spec.resource_selectors {
            intake::wake_selected(state, selector, &policy.metadata.namespace, |_| true);
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
    use super::{Key, concerned};

    #[test]
    fn a_change_of_a_decision_concerns_whose_it_was_and_whose_it_is() {
        let key = |name: &str| (!name.is_empty()).then(|| Key::new("ns", name));
        // Known as, said to be before, is: whom it concerns.
        for (known, said, is, whom) in [
            ("", "", "a", "a"),
            ("a", "a", "a", "a"),
            ("a", "a", "b", "a b"),
            ("a", "a", "", "a"),
            // Deleted, or given to another, before anybody looked.
            ("", "a", "", "a"),
            ("", "a", "b", "a b"),
            ("", "", "", ""),
        ] {
            let all: Vec<String> = concerned(key(known), || key(said), key(is))
                .map(|key| key.name.to_string())
                .collect();
            assert_eq!(all.join(" "), whom, "{known:?} {said:?} {is:?}");
        }
    }
}
