//! What wakes what, of policies. What members report of replicas wakes their root, whoever wrote it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_api::ocm::policy::PolicyStatus;
use lockgate_api::ocm::{PlacementBinding, PlacementRule, Policy, PolicySet};

use super::governance::root_key;
use super::intake::{current, parsed};
use crate::cache::{Change, Key};
use crate::state::State;

/// How long a root waits for more reports, bindings and decisions.
const HEAR_AFTER: Duration = Duration::from_millis(10);
/// How long a set waits for more to tell.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// A policy changed: a root, or a replica.
pub(crate) fn policy(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    wake_members(state, key, change.own);
    let old: Option<Policy> = parsed(change.old.clone());
    let was = old.as_ref().and_then(root_key);
    let mut governance = state.ocm.governance.write();
    let new: Option<Policy> = current(&state.ocm.caches.policies, key);
    let is = new.as_ref().and_then(root_key);
    if was.is_none() && is.is_none() {
        governance.put_root(key, new.as_ref());
        drop(governance);
        if !change.own {
            state.ocm.policies.add(key.clone(), 1);
        }
        let told = |policy: &Option<Policy>| {
            let policy = policy.as_ref()?;
            let compliant = policy.status.as_ref().map(|status| status.compliant.clone());
            Some((policy.spec.disabled, compliant))
        };
        if told(&old) != told(&new) {
            tell_sets(state, key);
        }
        return;
    }
    let reported = |policy: &Option<Policy>| -> Option<PolicyStatus> {
        let status = policy.as_ref()?.status.as_ref()?;
        Some(PolicyStatus {
            compliant: status.compliant.clone(),
            details: status.details.clone(),
            evaluated_revision: status.evaluated_revision.clone(),
            ..PolicyStatus::default()
        })
    };
    let wakes = !change.own || reported(&old) != reported(&new);
    let new = new.map(Arc::new);
    let roots: BTreeSet<Key> = [was, is.clone()].into_iter().flatten().collect();
    for root in &roots {
        let replica = new.clone().filter(|_| is.as_ref() == Some(root));
        governance.put_replica(root, &key.namespace, replica);
    }
    drop(governance);
    for root in roots.into_iter().filter(|_| wakes) {
        wake(state, root);
    }
}

/// A replica concerns its member, a root the members that it was on.
fn wake_members(state: &State, key: &Key, own: bool) {
    if state.members.lane(&key.namespace).is_some() {
        // Whoever wrote it on the hub is not who keeps it on the member.
        state.members.wake_policy(key);
    } else if !own {
        let replica = format!("{}.{}", key.namespace, key.name);
        state.members.wake_policy_everywhere(&replica);
    }
}

/// A binding changed.
pub(crate) fn binding(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let old: Option<PlacementBinding> = parsed(change.old.clone());
    let touched = {
        let mut governance = state.ocm.governance.write();
        let new: Option<PlacementBinding> = current(&state.ocm.caches.placement_bindings, key);
        let mut touched = BTreeSet::new();
        for binding in old.iter().chain(&new) {
            touched.extend(governance.subjects(&key.namespace, binding));
            for subject in binding
                .subjects
                .iter()
                .filter(|subject| subject.kind == "PolicySet")
            {
                tell(state, Key::new(&key.namespace, &subject.name));
            }
        }
        governance.put_binding(key, new);
        touched
    };
    for root in touched {
        wake(state, root);
    }
}

/// A set of policies changed.
pub(crate) fn set(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let old: Option<PolicySet> = parsed(change.old.clone());
    let mut touched = BTreeSet::new();
    {
        let mut governance = state.ocm.governance.write();
        let new: Option<PolicySet> = current(&state.ocm.caches.policy_sets, key);
        if old.as_ref().map(|set| &set.spec) != new.as_ref().map(|set| &set.spec) {
            let policies = old.iter().chain(&new).flat_map(|set| &set.spec.policies);
            touched.extend(policies.map(|policy| Key::new(&key.namespace, policy)));
            // Policies that depend on the set have other dependencies now.
            touched.extend(governance.needing(key));
        }
        governance.put_set(key, new);
    }
    for root in touched {
        wake(state, root);
    }
    if !change.own {
        tell(state, key.clone());
    }
}

/// A placement rule changed.
pub(crate) fn rule(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    {
        let mut governance = state.ocm.governance.write();
        let new: Option<PlacementRule> = current(&state.ocm.caches.placement_rules, key);
        governance.put_rule(key, new);
    }
    placed_by(state, key, "PlacementRule");
}

/// A placement came or went, or decided.
pub(crate) fn placement(state: &State, key: &Key) {
    placed_by(state, key, "Placement");
}

fn placed_by(state: &State, key: &Key, kind: &str) {
    let touched: BTreeSet<Key> = {
        let governance = state.ocm.governance.read();
        governance
            .bindings_in(&key.namespace)
            .iter()
            .filter(|binding| binding.placement_ref.kind == kind && *binding.placement_ref.name == *key.name)
            .flat_map(|binding| governance.subjects(&key.namespace, binding))
            .collect()
    };
    for root in touched {
        wake(state, root);
    }
}

/// A cluster changed: whether it can be reached decides whose time runs.
pub(crate) fn cluster(state: &State, name: &str) {
    for root in state.ocm.governance.read().roots_on(name) {
        wake(state, root);
    }
}

/// Wakes a root.
pub(crate) fn wake(state: &State, root: Key) {
    state.ocm.policies.add_soon(root, 1, HEAR_AFTER);
}

/// Whether some policy has a replica on a cluster.
pub(super) fn has_replicas(state: &State, cluster: &str) -> bool {
    !state.ocm.governance.read().roots_on(cluster).is_empty()
}

fn tell_sets(state: &State, policy: &Key) {
    let governance = state.ocm.governance.read();
    for set in governance.sets_in(&policy.namespace) {
        if set.spec.policies.iter().any(|name| **name == *policy.name) {
            tell(state, Key::new(&policy.namespace, &set.metadata.name));
        }
    }
}

fn tell(state: &State, set: Key) {
    state.ocm.policy_sets.add_soon(set, 1, TELL_AFTER);
}
