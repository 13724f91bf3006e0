//! Whose a Work is. Names of Works end in a hash of what they are copies of, so that two templates may have the same one: the
//! first keeps it, and for the other there is no such Work.
//!
//! A Work says whose it is by the binding that its marks name. The manifest is asked only where they name none that is there:
//! somebody may have edited it by hand.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use lockgate_api::{Binding, ObjectMeta, keys, names};
use lockgate_engine::TemplateId;

use super::{binding_id, binding_key, is_for, is_namespace, scope_keys, template_of};
use crate::cache::{Cached, Key};
use crate::head::{Head, head};
use crate::state::{State, WALK};

/// Whose a Work is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// The template that asks: its binding made it.
    This,
    /// Another template.
    Other(TemplateId),
    /// Nobody's binding made it, or none that is known: whoever needs the name may have it.
    Nobody,
}

/// The name of a template's Works.
pub(crate) fn work_name(id: &TemplateId) -> String {
    names::work_name(&id.kind, &id.namespace, &id.name)
}

/// Whether two ids are of one object. Versions of a group are the same objects.
fn is_same(one: &TemplateId, other: &TemplateId) -> bool {
    one.kind == other.kind
        && one.group() == other.group()
        && one.namespace == other.namespace
        && one.name == other.name
}

/// The binding that a Work's marks name.
fn named_by(metadata: &ObjectMeta) -> Option<Key> {
    let said = |key| metadata.annotation(key).filter(|said| !said.is_empty());
    if metadata.label(keys::RB_ID).is_some()
        && let (Some(namespace), Some(name)) = (said(keys::RB_NAMESPACE), said(keys::RB_NAME))
    {
        return Some(Key::new(namespace, name));
    }
    metadata.label(keys::CRB_ID)?;
    Some(Key::new("", said(keys::CRB_NAME)?))
}

/// The template of a binding that is there, or was deleted and is to be there again, if it gives its Works this name.
fn template_behind(state: &State, binding: &Key, work_name: &str) -> Option<TemplateId> {
    let gives = |id: &TemplateId| self::work_name(id) == work_name;
    if let Some(id) = state.bound(binding) {
        return Some(id).filter(gives);
    }
    let lost = state.lost_bindings.lock();
    let mut lost = lost.keys().filter(|id| binding_key(id) == *binding);
    lost.find(|id| gives(id)).cloned()
}

/// Whether a Work carries the id of the binding that a template has now.
fn carries_id(state: &State, metadata: &ObjectMeta, id: &TemplateId) -> bool {
    let binding = state.binding(&binding_key(id));
    let binding = binding.filter(|binding| is_for(binding, id));
    let label = metadata.label(scope_keys(id).0);
    label.is_some() && binding.is_some_and(|binding| label == Some(binding_id(&binding, id)))
}

fn owner(state: &State, head: &Head, id: &TemplateId) -> Owner {
    let metadata = &head.work.metadata;
    let is_copy = head.id.as_ref().is_some_and(|copy| is_same(copy, id));
    let copy = head.id.as_ref().filter(|copy| work_name(copy) == metadata.name);
    let Some(named) = named_by(metadata) else {
        return unnamed_owner(metadata, copy, is_copy, id);
    };
    let own = binding_key(id);
    if named == own {
        // Names of bindings carry no group, and not every character of a name: what is left of another that had this one
        // is not ours.
        let other = copy.filter(|copy| !is_copy && binding_key(copy) == own);
        return match other {
            Some(other) if !carries_id(state, metadata, id) => Owner::Other(other.clone()),
            _ => Owner::This,
        };
    }
    if let Some(other) = template_behind(state, &named, &metadata.name) {
        return Owner::Other(other);
    }
    match copy.filter(|copy| binding_key(copy) == named) {
        // Its binding is not there, and what becomes of its copies is decided elsewhere.
        Some(other) => Owner::Other(other.clone()),
        // Somebody edited the marks by hand.
        None if is_copy => Owner::This,
        None => Owner::Nobody,
    }
}

/// The same of a Work that names no binding.
fn unnamed_owner(metadata: &ObjectMeta, copy: Option<&TemplateId>, is_copy: bool, id: &TemplateId) -> Owner {
    let is_bound = |key| metadata.label(key).is_some();
    if is_bound(scope_keys(id).0) && is_copy {
        return Owner::This;
    }
    if is_bound(keys::RB_ID) || is_bound(keys::CRB_ID) {
        return copy
            .filter(|_| !is_copy)
            .map_or(Owner::Nobody, |copy| Owner::Other(copy.clone()));
    }
    // A Namespace goes everywhere by itself.
    let namespace = metadata.controller().filter(|owner| owner.kind == "Namespace");
    let namespace = namespace.map(|owner| TemplateId {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: owner.name.clone(),
    });
    match namespace.filter(|namespace| work_name(namespace) == metadata.name) {
        Some(namespace) if !is_same(&namespace, id) => Owner::Other(namespace),
        _ => Owner::Nobody,
    }
}

/// Whether a template's binding made a Work, whatever became of that binding.
pub(crate) fn is_own(state: &State, head: &Head, id: &TemplateId) -> bool {
    owner(state, head, id) == Owner::This
}

/// The Work of a template on a cluster, if there is one and it is this template's. A Namespace that went there by itself counts.
pub(crate) fn work_on(state: &State, id: &TemplateId, cluster: &str) -> Option<(Arc<Cached>, Head)> {
    let key = Key::new(&names::execution_namespace(cluster), &work_name(id));
    let cached = state.caches.works.get(&key)?;
    let head = head(&cached).filter(|head| is_copy_of(state, head, id))?;
    Some((cached, head))
}

fn is_copy_of(state: &State, head: &Head, id: &TemplateId) -> bool {
    match owner(state, head, id) {
        Owner::This => true,
        Owner::Other(_) => false,
        Owner::Nobody => head.id.as_ref().is_some_and(|copy| is_same(copy, id)),
    }
}

/// The Works that a template's binding made, on all clusters.
pub(crate) fn works_of(state: &State, id: &TemplateId) -> Vec<(Arc<Cached>, Head)> {
    let works = state.works_named(&work_name(id)).into_iter();
    works
        .filter_map(|cached| {
            let head = head(&cached).filter(|head| is_own(state, head, id))?;
            Some((cached, head))
        })
        .collect()
}

/// The template that a Work was made from. An override may have given the copy another version, which the hub need not follow;
/// and somebody may have edited the copy by hand.
pub(crate) fn of_work(state: &State, metadata: &ObjectMeta, copy: TemplateId) -> TemplateId {
    let named = named_by(metadata);
    let is_named = named.as_ref().is_none_or(|named| *named == binding_key(&copy));
    let versions = state.kinds.versions(copy.group(), &copy.kind);
    if let [only] = versions.as_slice()
        && only.resource.api_version() == copy.api_version
        && is_named
    {
        return copy;
    }
    let template = state.bound(&named.unwrap_or_else(|| binding_key(&copy)));
    let is_it = |id: &TemplateId| {
        is_named && is_same(id, &copy) || work_name(id) == metadata.name && carries_id(state, metadata, id)
    };
    template.filter(is_it).unwrap_or(copy)
}

/// Who has the name of the Work that a template needs, if it is another: the template waits for it from now on. `known` is the
/// Work of that name.
pub(crate) fn taken_by(
    state: &State,
    id: &TemplateId,
    key: &Key,
    known: Option<&Head>,
) -> Option<TemplateId> {
    let owner = holder(state, id, key, known)?;
    let mut waiting = state.names_waited_for.lock();
    waiting
        .entry(key.name.to_string())
        .or_default()
        .insert(id.clone());
    drop(waiting);
    // It may have gone before anybody knew that somebody waits.
    let known = state.caches.works.get(key).and_then(|cached| head(&cached));
    if holder(state, id, key, known.as_ref()).is_none() {
        wake_waiting(state, &key.name);
    }
    Some(owner)
}

fn holder(state: &State, id: &TemplateId, key: &Key, known: Option<&Head>) -> Option<TemplateId> {
    match known {
        Some(known) => match owner(state, known, id) {
            Owner::Other(other) => Some(other),
            Owner::This | Owner::Nobody => None,
        },
        // It was deleted, and is about to be made again.
        None => state.keepsakes.returning(key).filter(|other| !is_same(other, id)),
    }
}

/// Looks again at who waits for the name of a Work.
pub(crate) fn wake_waiting(state: &State, work_name: &str) {
    let waiting = state.names_waited_for.lock().remove(work_name);
    for id in waiting.into_iter().flatten() {
        if is_namespace(&id) {
            state.namespaces.add(id.name.clone(), 1);
        }
        state.templates.add(id, WALK);
    }
}

/// Who has the name of the binding that a template needs, if it is another: the template waits for it from now on. `known` is
/// the binding of that name.
pub(super) fn binding_taken_by(
    state: &State,
    id: &TemplateId,
    known: Option<&Binding>,
) -> Option<TemplateId> {
    let owner = binding_holder(state, id, known)?;
    let key = binding_key(id);
    let mut waiting = state.bindings_waited_for.lock();
    waiting.entry(key.clone()).or_default().insert(id.clone());
    drop(waiting);
    // It may have gone before anybody knew that somebody waits.
    if binding_holder(state, id, state.binding(&key).as_deref()).is_none() {
        wake_namesakes(state, &key);
    }
    Some(owner)
}

fn binding_holder(state: &State, id: &TemplateId, known: Option<&Binding>) -> Option<TemplateId> {
    match known {
        Some(known) => (!is_for(known, id)).then(|| template_of(known)),
        // It went, and may be about to be made again.
        None => {
            let held = state.keepsakes.name_held(&binding_key(id));
            held.filter(|other| !is_same(other, id))
        }
    }
}

/// Looks again at who waits for the name of a binding. They are of another group than whoever had it, or their names differ in
/// what a binding's name leaves out, which only those of roles may.
pub(crate) fn wake_namesakes(state: &State, binding: &Key) {
    let waiting = state.bindings_waited_for.lock().remove(binding);
    for id in waiting.into_iter().flatten() {
        state.templates.add(id, WALK);
    }
}

/// Whether the name of a template's binding, which is gone, is kept for it.
pub(super) fn holds_name(state: &State, id: &TemplateId) -> bool {
    let held = state.keepsakes.name_held(&binding_key(id));
    held.is_some_and(|held| is_same(&held, id))
}

/// A template whose binding went was looked at. What it did not make again by now it does not need, and others may have the name:
/// nobody waits for it for ever.
pub(super) fn give_up_name(state: &State, id: &TemplateId) {
    let key = binding_key(id);
    state.keepsakes.release_name(&key);
    if state.bindings(&id.namespace).0.get(&key).is_none() {
        wake_namesakes(state, &key);
    }
}

/// The kind of a template whose binding went is not served, so that nobody looks at the template. Others may have the name,
/// unless the kind is about to be known, or the binding is kept to be made again.
pub(super) fn give_up_unserved_name(state: &State, id: &TemplateId) {
    let is_awaited =
        state.kinds.is_unread(&id.api_version, &id.kind) || state.lost_bindings.lock().contains_key(id);
    if !is_awaited && holds_name(state, id) {
        give_up_name(state, id);
    }
}

/// A template that is gone waits for nothing.
pub(super) fn stop_waiting(state: &State, id: &TemplateId) {
    leave(&mut state.names_waited_for.lock(), &work_name(id), id);
    leave(&mut state.bindings_waited_for.lock(), &binding_key(id), id);
}

fn leave<K: Hash + Eq>(waiting: &mut HashMap<K, BTreeSet<TemplateId>>, at: &K, id: &TemplateId) {
    if let Some(ids) = waiting.get_mut(at) {
        ids.remove(id);
        if ids.is_empty() {
            waiting.remove(at);
        }
    }
}

/// Takes off a Work the marks of the bindings that it had before.
pub(super) fn unmark(metadata: &mut ObjectMeta) {
    for key in [keys::RB_ID, keys::CRB_ID] {
        metadata.labels.remove(key);
    }
    for key in [keys::RB_NAMESPACE, keys::RB_NAME, keys::CRB_NAME] {
        metadata.annotations.remove(key);
    }
}
