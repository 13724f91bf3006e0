//! What wakes what: a change of any object becomes the keys of the passes that must look again. Changes that we wrote
//! ourselves only enter the indexes: the pass that wrote them knows.

mod waking;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use lockgate_api::{ClusterTaintPolicy, OverridePolicy, PropagationPolicy, RolloutPolicy, keys, names};
use lockgate_engine::{TemplateId, claim, dispatch};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::bound::bound;
use crate::cache::{Cached, Change, Key};
use crate::chores::Chore;
use crate::head::{Head, head};
use crate::kinds::{self, KindId};
use crate::needs;
use crate::neighbours;
use crate::rollouts;
use crate::state::{self, State, WALK};
use crate::template::{self, REPORT_AFTER, disputes, owning, priority};
use crate::vanished;

use self::waking::{tell_rollout, wake_waiting_for_override};
pub(crate) use self::waking::{
    wake_bound, wake_fleet, wake_inside, wake_kind, wake_lane, wake_mentioned, wake_namespaces,
    wake_selected, wake_unplaced, wake_wanted,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a> {
    #[serde(borrow)]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
}

/// The id of any cached object.
pub(crate) fn id_of(cached: &Cached) -> Option<TemplateId> {
    let text = cached.text();
    let typed: Typed<'_> = serde_json::from_slice(&text).ok()?;
    Some(TemplateId {
        api_version: typed.api_version.into_owned(),
        kind: typed.kind.into_owned(),
        namespace: cached.key.namespace.to_string(),
        name: cached.key.name.to_string(),
    })
}

/// A template changed.
pub(crate) fn template(state: &State, change: &Change) {
    if change.own {
        return;
    }
    let Some(id) = change
        .new
        .as_ref()
        .or(change.old.as_ref())
        .and_then(|cached| id_of(cached))
    else {
        return;
    };
    if id.kind == "Namespace" && id.api_version == "v1" {
        state.namespaces.add(id.name.clone(), 1);
        if state.cluster(&id.name).is_some() {
            state.ocm.clusters.add(id.name.clone(), 1);
        }
    }
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && disputes::is_status_only(old, new)
    {
        disputes::touched(state, id);
        return;
    }
    priority::foresee_new(state, &id, change);
    state.templates.add(id, WALK);
}

/// A policy changed: everything that it could own, now or before, is looked at again.
pub(crate) fn policy(state: &State, change: &Change) {
    let old: Option<PropagationPolicy> = change.old.as_ref().and_then(|cached| state::parse(cached));
    let new = change.new.as_ref().and_then(|cached| state::policy(cached));
    {
        let mut policies = state.policies.write();
        match (&new, change.key()) {
            (Some(new), _) => policies.insert(new.clone()),
            (None, Some(key)) => drop(policies.remove(&key.namespace, &key.name)),
            (None, None) => {}
        }
    }
    if change.own {
        return;
    }
    if let Some(key) = change.key() {
        state.tally.look(key);
    }
    // A status or a label of a policy moves nothing.
    let unchanged = old
        .as_ref()
        .zip(new.as_ref())
        .is_some_and(|(old, new)| old.spec == new.spec && old.metadata.deleting() == new.metadata.deleting());
    if unchanged {
        return;
    }
    // An edit of a Lazy policy neither: its templates wait, and only their number is told.
    let only_waits = old
        .as_ref()
        .zip(new.as_deref())
        .is_some_and(|(old, new)| claim::only_waits(old, new));
    state.kinds.look();
    let rank = new.as_deref().and_then(|policy| priority::rank_by(state, policy));
    for policy in [old.as_ref(), new.as_deref()].into_iter().flatten() {
        let metadata = &policy.metadata;
        let key = Key::new(&metadata.namespace, &metadata.name);
        for selector in &policy.spec.resource_selectors {
            wake_wanted(state, selector, &metadata.namespace, |id, template| {
                let wanted = !only_waits || !state.tally.owns(&key, id);
                if wanted {
                    priority::foresee(state, &key, rank, id, template);
                }
                wanted
            });
        }
    }
    if let Some(policy) = &new
        && policy.metadata.deleting()
    {
        let chore = Chore::Policy {
            namespace: policy.metadata.namespace.clone(),
            name: policy.metadata.name.clone(),
        };
        state.chores.add(chore, 1);
    }
}

/// An object as it was and as it is, in one of our types.
fn before_and_after<T: DeserializeOwned>(change: &Change) -> (Option<Arc<T>>, Option<Arc<T>>) {
    let parse = |cached: &Option<Arc<Cached>>| {
        cached
            .as_ref()
            .and_then(|cached| state::parse(cached))
            .map(Arc::new)
    };
    (parse(&change.old), parse(&change.new))
}

/// An override changed: what it is about is rendered again where its inputs moved. One that is gone is in force until it is
/// known that somebody deleted it.
pub(crate) fn override_policy(state: &State, change: &Change) {
    let (old, new) = before_and_after::<OverridePolicy>(change);
    let Some(key) = change.key() else { return };
    if new.is_none() {
        state.vanished.add((vanished::Kind::Override, key.clone()), 1);
        return;
    }
    let is_new = old.is_none();
    let key = (key.namespace.to_string(), key.name.to_string());
    // What was in force last, also if it was gone meanwhile.
    let old = old.or_else(|| state.overrides.read().get(&key.0, &key.1));
    state.overrides.write().put(key.clone(), new.clone());
    if is_new {
        wake_waiting_for_override(state, &key.0, &key.1);
    }
    wake_overridden(state, [old, new].into_iter().flatten());
}

/// Wakes what overrides are about.
pub(crate) fn wake_overridden(state: &State, policies: impl Iterator<Item = Arc<OverridePolicy>>) {
    for policy in policies {
        let namespace = &policy.metadata.namespace;
        if policy.spec.resource_selectors.is_empty() {
            wake_bound(state, |id| namespace.is_empty() || id.namespace == *namespace);
        } else {
            for selector in &policy.spec.resource_selectors {
                wake_selected(state, selector, namespace);
            }
        }
    }
    wake_namespaces(state);
}

/// A rollout policy changed: what it holds back, or held back before, is looked at again. One that is gone is in force until
/// it is known that somebody deleted it.
pub(crate) fn rollout(state: &State, change: &Change) {
    let (old, new) = before_and_after::<RolloutPolicy>(change);
    let Some(key) = change.key() else { return };
    let Some(new) = new else {
        state.vanished.add((vanished::Kind::Rollout, key.clone()), 1);
        return;
    };
    // What was in force last, also if it was gone meanwhile.
    let old = old.or_else(|| state.rollouts.read().get(&key.namespace, &key.name).cloned());
    state.rollouts.write().insert(new.clone());
    if change.own {
        return;
    }
    tell_rollout(state, &new);
    let unchanged = old
        .as_ref()
        .is_some_and(|old| old.spec == new.spec && old.metadata.deleting() == new.metadata.deleting());
    if !unchanged {
        wake_held(state, old.into_iter().chain([new]));
    }
}

/// Wakes what rollout policies hold back.
pub(crate) fn wake_held(state: &State, policies: impl Iterator<Item = Arc<RolloutPolicy>>) {
    let mut namespaces = false;
    for policy in policies {
        for selector in &policy.spec.resource_selectors {
            namespaces |= selector.kind == "Namespace" && selector.api_version == "v1";
            wake_selected(state, selector, &policy.metadata.namespace);
        }
    }
    if namespaces {
        wake_namespaces(state);
    }
}

/// A policy that puts taints on clusters changed.
pub(crate) fn taint_policy(state: &State, change: &Change) {
    let (_, new) = before_and_after::<ClusterTaintPolicy>(change);
    let Some(key) = change.key() else { return };
    {
        let mut policies = state.taint_policies.write();
        match new {
            Some(new) => drop(policies.insert(key.name.to_string(), new)),
            None => drop(policies.remove(&*key.name)),
        }
    }
    if let Some(clusters) = state.cluster_reconciler.get().and_then(Weak::upgrade) {
        for cluster in state.clusters().iter() {
            clusters.poke(&cluster.metadata.name);
        }
    }
}

/// A binding changed.
pub(crate) fn binding(state: &State, change: &Change) {
    let read = |cached: &Option<Arc<Cached>>| state.bindings_read.parse(cached.as_ref()?);
    let (old, new) = (read(&change.old), read(&change.new));
    let (old, new) = (old.as_deref(), new.as_deref());
    let (Some(key), Some(id)) = (change.key(), new.or(old).map(template::template_of)) else {
        return;
    };
    needs::binding(state, key, old, new);
    neighbours::binding(state, old, new, &id);
    priority::note(state, &id, old, new);
    let kind = (id.api_version.clone(), id.kind.clone());
    if change.new.is_some() && state.bound_kinds.lock().insert(kind) {
        state.kinds.look();
    }
    if change.new.is_none() {
        state.bound.forget(key);
    }
    match (&change.new, change.own) {
        (Some(_), _) => {}
        // Its template is gone, and let it go.
        (None, true) => owning::wake_namesakes(state, key),
        // Its template may be there, and need it again: that is looked at before anybody else has its name.
        (None, false) => state.keepsakes.hold_name(key, &id),
    }
    if !change.own {
        state.reports.add_soon(id.clone(), 1, REPORT_AFTER);
        state.templates.add(id, WALK);
    }
}

/// Whether a Work carries the older mark of suspension. Hardly any does, and most need not be read to tell.
fn is_marked(cached: &Cached) -> bool {
    cached.mentions(keys::INSTRUCTION) && head(cached).is_some_and(|head| head.work.is_marked())
}

/// Follows the kind of a Work whose binding is not there: whoever deletes the template wants the copies gone all the same.
fn want_kind(state: &State, head: &Head) {
    let Some(id) = &head.id else { return };
    let (bindings, _) = state.bindings(&id.namespace);
    if bindings.get(&template::binding_key(id)).is_none()
        && state
            .bound_kinds
            .lock()
            .insert((id.api_version.clone(), id.kind.clone()))
    {
        state.kinds.look();
    }
}

/// A Work changed.
pub(crate) fn work(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    {
        let mut works = state.works_by_name.lock();
        if change.new.is_some() {
            works
                .entry(key.name.to_string())
                .or_default()
                .insert(key.namespace.to_string());
        } else if let Some(namespaces) = works.get_mut(&*key.name) {
            namespaces.remove(&*key.namespace);
            if namespaces.is_empty() {
                works.remove(&*key.name);
            }
        }
    }
    if change.new.as_ref().is_some_and(|cached| is_marked(cached)) {
        state.works_marked.lock().insert(key.clone());
    } else {
        state.works_marked.lock().remove(key);
    }
    match &change.new {
        None => owning::wake_waiting(state, &key.name),
        Some(cached) if !cached.terminating => state.keepsakes.returned(key),
        Some(_) => {}
    }
    if change.new.is_none()
        && let Some(cluster) = names::cluster_of(&key.namespace)
        && let Some(clusters) = state.cluster_reconciler.get().and_then(Weak::upgrade)
        && clusters.leaving(cluster).is_some()
    {
        clusters.poke(cluster);
    }
    let told = |cached: &Option<Arc<Cached>>| {
        let mut head = cached.as_ref().and_then(|cached| head(cached))?;
        head.id = head
            .id
            .map(|id| template::of_work(state, &head.work.metadata, id));
        Some(head)
    };
    if change.new.is_none()
        && let Some(id) = told(&change.old).and_then(|head| head.id)
    {
        // Where nothing may run twice, somebody waits for this.
        rollouts::heard(state, &id);
    }
    if change.own {
        if change.new.is_none()
            && !state.purging.lock().is_empty()
            && let Some(id) = told(&change.old).and_then(|head| head.id)
            && state.purging.lock().contains(&id)
        {
            // What had to be gone first is gone.
            state.templates.add(id, WALK);
        }
        return;
    }
    let (old, new) = (told(&change.old), told(&change.new));
    if let Some(head) = new.as_ref().filter(|head| !dispatch::is_stranger(&head.work)) {
        want_kind(state, head);
    }
    let spec_moved = match (&old, &new) {
        (Some(old), Some(new)) => {
            let (old, new) = (&old.work.metadata, &new.work.metadata);
            old.generation != new.generation
                || old.deleting() != new.deleting()
                || old.labels != new.labels
                || old.annotations != new.annotations
        }
        _ => true,
    };
    if spec_moved {
        state.members.wake(key);
    }
    let is_marked = |head: &Option<Head>| head.as_ref().is_some_and(|head| head.work.is_marked());
    let turned = is_marked(&old) != is_marked(&new);
    let Some(id) = new.or(old).and_then(|head| head.id) else {
        return;
    };
    if turned {
        // What it needs is held back with it.
        template::wake_after(state, &id);
    }
    if id.kind == "Namespace" && id.api_version == "v1" && spec_moved {
        state.namespaces.add(id.name.clone(), 1);
    }
    if spec_moved {
        state.templates.add(id.clone(), WALK);
    } else {
        rollouts::heard(state, &id);
    }
    state.reports.add_soon(id, 1, REPORT_AFTER);
}

/// A definition changed.
pub(crate) fn definition(state: &State, change: &Change) {
    state.kinds.look();
    let Some(key) = change.key() else { return };
    if change.new.is_none() {
        state.chores.add(Chore::Definition(key.name.to_string()), 1);
    }
    for cached in [&change.old, &change.new].into_iter().flatten() {
        if let Some(definition) = state::parse(cached) {
            kinds::look_at_defined(state, &definition);
        }
    }
    let established = |cached: &Option<Arc<Cached>>| {
        let definition = cached
            .as_ref()
            .and_then(|cached| state::parse::<serde_json::Value>(cached));
        definition.is_some_and(|definition| kinds::is_established(&definition))
    };
    if key.name.ends_with(".work.karmada.io") && !established(&change.old) && established(&change.new) {
        // One of ours is served again: what could not be written while it was not, can be now.
        for key in state.untold.lock().keys() {
            state.tellings.add(key.clone(), 1);
        }
        wake_bound(state, |_| true);
        wake_namespaces(state);
        for (kind, _) in state.kinds.all() {
            wake_kind(state, &kind);
        }
    }
}

/// Has the status of every template of some kinds told again.
pub(crate) fn report_kinds(state: &State, kinds: &BTreeSet<KindId>) {
    for cache in [
        &state.caches.resource_bindings,
        &state.caches.cluster_resource_bindings,
    ] {
        cache.for_each(|cached| {
            let id = bound(cached).filter(|id| kinds.contains(&(id.api_version.clone(), id.kind.clone())));
            if let Some(id) = id {
                state.reports.add_soon(id, 1, REPORT_AFTER);
            }
        });
    }
}
