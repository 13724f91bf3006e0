//! Who refers to what: an index over the bindings that say what they need. It follows the bindings, which are all known
//! before anything is decided, and never the templates: nothing looks unneeded because it was not read yet.

use std::collections::{BTreeSet, HashMap};

use lockgate_api::{Binding, keys};
use lockgate_engine::TemplateId;
use lockgate_engine::dependencies::{self, Dependency};
use parking_lot::RwLock;
use serde_json::Value;

use crate::cache::Key;
use crate::kinds::KindId;
use crate::state::{self, State, WALK};
use crate::template;

/// A kind in a namespace.
type Place = (KindId, String);

/// What every binding needs.
#[derive(Default)]
pub(crate) struct Needs {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    by_referrer: HashMap<Key, Vec<Dependency>>,
    named: HashMap<TemplateId, BTreeSet<Key>>,
    /// Those who mean all objects that a selector matches.
    selecting: HashMap<Place, BTreeSet<Key>>,
}

impl Needs {
    /// The bindings that need a template.
    pub(crate) fn referrers(&self, id: &TemplateId, template: &Value) -> BTreeSet<Key> {
        let inner = self.inner.read();
        if inner.by_referrer.is_empty() {
            return BTreeSet::new();
        }
        let mut found = inner.named.get(id).cloned().unwrap_or_default();
        let place = ((id.api_version.clone(), id.kind.clone()), id.namespace.clone());
        let selecting = inner.selecting.get(&place).into_iter().flatten();
        found.extend(
            selecting
                .filter(|key| {
                    inner.by_referrer[*key]
                        .iter()
                        .any(|needed| needed.means(template))
                })
                .cloned(),
        );
        found
    }

    /// The way from a template over what it needs back to itself, if there is one. What is meant by a selector is not
    /// followed.
    pub(crate) fn cycle(&self, id: &TemplateId) -> Option<Vec<TemplateId>> {
        let inner = self.inner.read();
        dependencies::cycle(id, |id| {
            let needed = inner.by_referrer.get(&template::binding_key(id));
            needed.into_iter().flatten().filter_map(Dependency::id).collect()
        })
    }

    fn put(&self, referrer: &Key, needed: Vec<Dependency>) {
        let mut inner = self.inner.write();
        for old in inner.by_referrer.remove(referrer).unwrap_or_default() {
            match old.id() {
                Some(id) => remove(&mut inner.named, &id, referrer),
                None => remove(&mut inner.selecting, &place(&old), referrer),
            }
        }
        for new in &needed {
            match new.id() {
                Some(id) => inner.named.entry(id).or_default().insert(referrer.clone()),
                None => inner
                    .selecting
                    .entry(place(new))
                    .or_default()
                    .insert(referrer.clone()),
            };
        }
        if !needed.is_empty() {
            inner.by_referrer.insert(referrer.clone(), needed);
        }
    }
}

fn place(needed: &Dependency) -> Place {
    (
        (needed.api_version.clone(), needed.kind.clone()),
        needed.namespace.clone(),
    )
}

fn remove<K: std::hash::Hash + Eq>(index: &mut HashMap<K, BTreeSet<Key>>, at: &K, referrer: &Key) {
    if let Some(referrers) = index.get_mut(at) {
        referrers.remove(referrer);
        if referrers.is_empty() {
            index.remove(at);
        }
    }
}

/// What of a binding matters to those that it needs.
#[derive(Default, PartialEq)]
struct Referring {
    id: TemplateId,
    needed: Vec<Dependency>,
    clusters: BTreeSet<String>,
    rest: (String, Option<bool>, bool, String),
}

impl Referring {
    fn of(binding: Option<&Binding>) -> Self {
        let Some(binding) = binding.filter(|binding| {
            binding.metadata.annotation(keys::DEPENDENCIES).is_some()
                && !binding.metadata.namespace.is_empty()
        }) else {
            return Self::default();
        };
        let placed = template::placed(binding).into_iter();
        Self {
            id: template::template_of(binding),
            needed: needed_by(binding),
            clusters: placed.map(str::to_owned).collect(),
            rest: (
                binding.spec.conflict_resolution.clone(),
                binding.spec.preserve_resources_on_deletion,
                binding.metadata.deletion_timestamp.is_some(),
                binding.metadata.uid.clone(),
            ),
        }
    }
}

/// What a binding says that it needs.
pub(crate) fn needed_by(binding: &Binding) -> Vec<Dependency> {
    binding
        .metadata
        .annotation(keys::DEPENDENCIES)
        .filter(|_| binding.spec.propagate_deps)
        .and_then(dependencies::decode)
        .unwrap_or_default()
}

/// A binding changed: what it needs, or needed, is looked at again if that matters there.
pub(crate) fn binding(state: &State, key: &Key, old: Option<&Binding>, new: Option<&Binding>) {
    let (old, new) = (Referring::of(old), Referring::of(new));
    if old == new {
        return;
    }
    let on_the_way = || {
        let ids = [&old.id, &new.id].into_iter();
        ids.filter_map(|id| state.needs.cycle(id)).flatten()
    };
    let mut told: BTreeSet<TemplateId> = on_the_way().collect();
    state.needs.put(key, new.needed.clone());
    told.extend(on_the_way());
    for id in told {
        // Whether there is a cycle is said by everyone in it.
        state.reports.add_soon(id, 1, template::REPORT_AFTER);
    }
    let mut look = false;
    for needed in old.needed.iter().chain(&new.needed) {
        let kind = (needed.api_version.clone(), needed.kind.clone());
        look |= state.bound_kinds.lock().insert(kind);
        wake(state, needed);
    }
    if look {
        state.kinds.look();
    }
}

/// Looks again at what a binding needs.
fn wake(state: &State, needed: &Dependency) {
    if let Some(id) = needed.id() {
        state.templates.add(id, WALK);
        return;
    }
    let Some(kind) = state.kinds.served(&needed.api_version, &needed.kind) else {
        // All of its objects are looked at as soon as they are known.
        return;
    };
    for cached in kind.cache.list_in(&needed.namespace) {
        if state::parse::<Value>(&cached).is_some_and(|object| needed.means(&object)) {
            let id = TemplateId {
                api_version: needed.api_version.clone(),
                kind: needed.kind.clone(),
                namespace: cached.key.namespace.to_string(),
                name: cached.key.name.to_string(),
            };
            state.templates.add(id, WALK);
        }
    }
}
