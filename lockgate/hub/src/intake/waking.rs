//! Who is looked at again when something that is not theirs has changed.

use std::sync::Arc;

use lockgate_api::{Cluster, Placement, PropagationPolicy, ResourceSelector, RolloutPolicy, names};
use lockgate_engine::TemplateId;
use lockgate_engine::cluster::Difference;
use serde::Deserialize;

use crate::bound::bound;
use crate::cache::Cached;
use crate::chores::Chore;
use crate::kinds::KindId;
use crate::state::{self, State, WALK};
use crate::template::WAITING_FOR_TURN;

#[derive(Deserialize)]
struct PlacedHead {
    spec: PlacedHeadSpec,
}

#[derive(Deserialize)]
struct PlacedHeadSpec {
    placement: Option<Placement>,
}

/// Labels or fields of a cluster changed: whoever names them is looked at again, and nobody else.
pub(crate) fn wake_mentioned(state: &State, difference: &Difference) {
    wake_bound_if(state, |cached| {
        // Few bindings name a given label, so that few are read for it.
        let text = cached.text();
        let text = std::str::from_utf8(&text).unwrap_or_default();
        let named = difference.names().any(|name| text.contains(name));
        named
            && state::parse::<PlacedHead>(cached)
                .and_then(|head| head.spec.placement)
                .is_some_and(|placement| difference.is_mentioned_by(&placement))
    });
    let overrides = state.overrides.read().list();
    let mut namespaces = false;
    for policy in overrides
        .iter()
        .filter(|policy| difference.is_mentioned_by_override(policy))
    {
        let namespace = &policy.metadata.namespace;
        namespaces |= namespace.is_empty();
        if policy.spec.resource_selectors.is_empty() {
            wake_bound(state, |id| namespace.is_empty() || id.namespace == *namespace);
        } else {
            for selector in &policy.spec.resource_selectors {
                wake_selected(state, selector, namespace);
            }
        }
    }
    // Rollout policies may put clusters into groups by their labels.
    let rollouts: Vec<Arc<RolloutPolicy>> = state.rollouts.read().iter().cloned().collect();
    for policy in rollouts {
        let text = serde_json::to_string(&policy.spec).unwrap_or_default();
        if difference.names().any(|name| text.contains(name)) {
            for selector in &policy.spec.resource_selectors {
                wake_selected(state, selector, &policy.metadata.namespace);
            }
        }
    }
    if namespaces {
        wake_namespaces(state);
    }
}

/// Members have room for more, or for less: what found no room is tried again.
pub(crate) fn wake_unplaced(state: &State) {
    let verdicts = state.verdicts.lock();
    let unplaced = verdicts.iter().filter(|(_, verdict)| {
        let scheduled = verdict.scheduled.as_ref();
        let stays = verdict.staying.as_ref();
        scheduled.is_some_and(|(ok, ..)| !*ok) || stays.is_some_and(|(why, _)| *why != WAITING_FOR_TURN)
    });
    let mut ids: Vec<TemplateId> = unplaced.map(|(id, _)| id.clone()).collect();
    drop(verdicts);
    ids.extend(std::mem::take(&mut *state.unmeasured.lock()));
    for id in ids {
        state.templates.add_bulk(id, WALK);
    }
    state.ocm.wake_unmeasured();
}

/// An override is there: whoever waits for it is looked at again, also if it is about something else.
pub(super) fn wake_waiting_for_override(state: &State, namespace: &str, name: &str) {
    let policies = state.policies.read();
    let waiting: Vec<Arc<PropagationPolicy>> = policies
        .in_namespace(namespace)
        .filter(|policy| {
            policy
                .spec
                .dependent_overrides
                .iter()
                .any(|needed| needed == name)
        })
        .cloned()
        .collect();
    drop(policies);
    for policy in waiting {
        for selector in &policy.spec.resource_selectors {
            wake_selected(state, selector, namespace);
        }
    }
}

/// The clusters are otherwise than they were: wakes everybody who depends on them.
pub(crate) fn wake_fleet(state: &State) {
    for policy in state.rollouts.read().iter() {
        tell_rollout(state, policy);
    }
    wake_bound(state, |_| true);
    wake_namespaces(state);
}

pub(super) fn tell_rollout(state: &State, policy: &RolloutPolicy) {
    let chore = Chore::Rollout {
        namespace: policy.metadata.namespace.clone(),
        name: policy.metadata.name.clone(),
    };
    state.chores.add(chore, 1);
}

/// Wakes the templates that a selector could mean.
pub(crate) fn wake_selected(state: &State, selector: &ResourceSelector, policy_namespace: &str) {
    wake_wanted(state, selector, policy_namespace, |_, _| true);
}

/// Those of them that are wanted. Their cache is read meanwhile, and not to be read again.
pub(crate) fn wake_wanted(
    state: &State,
    selector: &ResourceSelector,
    policy_namespace: &str,
    wanted: impl Fn(&TemplateId, &Cached) -> bool,
) {
    let namespace = if policy_namespace.is_empty() {
        selector.namespace.as_str()
    } else {
        policy_namespace
    };
    let Some(kind) = state.kinds.served(&selector.api_version, &selector.kind) else {
        return;
    };
    let wake = |cached: &Cached| {
        let id = TemplateId {
            api_version: selector.api_version.clone(),
            kind: selector.kind.clone(),
            namespace: cached.key.namespace.to_string(),
            name: cached.key.name.to_string(),
        };
        if wanted(&id, cached) {
            state.templates.add_bulk(id, WALK);
        }
    };
    if !namespace.is_empty() && !selector.name.is_empty() {
        // A policy may name thousands.
        if let Some(cached) = kind.cache.find(namespace, &selector.name) {
            wake(&cached);
        }
        return;
    }
    kind.cache.for_each(|cached| {
        let named = selector.name.is_empty() || *selector.name == *cached.key.name;
        let inside = namespace.is_empty() || *namespace == *cached.key.namespace;
        if named && inside {
            wake(cached);
        }
    });
}

/// Wakes the templates of the bindings that are wanted.
pub(super) fn wake_bound_if(state: &State, wanted: impl Fn(&Cached) -> bool) {
    for cache in [
        &state.caches.resource_bindings,
        &state.caches.cluster_resource_bindings,
    ] {
        cache.for_each(|cached| {
            if wanted(cached)
                && let Some(id) = bound(cached)
            {
                state.templates.add_bulk(id, WALK);
            }
        });
    }
}

/// Wakes the templates that have bindings.
pub(crate) fn wake_bound(state: &State, wanted: impl Fn(&TemplateId) -> bool) {
    for cache in [
        &state.caches.resource_bindings,
        &state.caches.cluster_resource_bindings,
    ] {
        cache.for_each(|cached| {
            if let Some(id) = bound(cached).filter(&wanted) {
                state.templates.add_bulk(id, WALK);
            }
        });
    }
}

/// Wakes every namespace that members get.
pub(crate) fn wake_namespaces(state: &State) {
    let clusters = state.clusters();
    let is_cluster = |name: &str| {
        let of = |cluster: &Arc<Cluster>| cluster.metadata.name.as_str().cmp(name);
        clusters.binary_search_by(of).is_ok()
    };
    if let Some(kind) = state.kinds.served("v1", "Namespace") {
        kind.cache.for_each(|cached| {
            let name = &*cached.key.name;
            // A large fleet has two namespaces of the control plane for each cluster.
            if !names::is_reserved(name) && !is_cluster(name) {
                state.namespaces.add_bulk(name.to_owned(), 1);
            }
        });
    }
}

/// Wakes every Work of a cluster.
pub(crate) fn wake_lane(state: &State, cluster: &str) {
    for cached in state.caches.works.list_in(&names::execution_namespace(cluster)) {
        state.members.wake(&cached.key);
    }
    state.members.wake_policies(cluster);
}

/// Wakes every template in a namespace.
pub(crate) fn wake_inside(state: &State, namespace: &str) {
    for ((api_version, kind), served) in state.kinds.all() {
        for cached in served.cache.list_in(namespace) {
            let id = TemplateId {
                api_version: api_version.clone(),
                kind: kind.clone(),
                namespace: namespace.to_owned(),
                name: cached.key.name.to_string(),
            };
            state.templates.add_bulk(id, WALK);
        }
    }
}

/// Wakes every template of a kind.
pub(crate) fn wake_kind(state: &State, (api_version, kind): &KindId) {
    let Some(served) = state.kinds.served(api_version, kind) else {
        return;
    };
    served.cache.for_each(|cached| {
        let id = TemplateId {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: cached.key.namespace.to_string(),
            name: cached.key.name.to_string(),
        };
        state.templates.add_bulk(id, WALK);
    });
}
