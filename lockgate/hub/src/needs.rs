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
    /// What each binding follows, as it says itself.
    following: HashMap<Key, Following>,
    /// The templates that follow each binding: the same the other way round.
    dependents: HashMap<Key, BTreeSet<TemplateId>>,
}

impl Needs {
    /// The bindings that need a template.
    pub(crate) fn referrers(&self, id: &TemplateId, template: &Value) -> BTreeSet<Key> {
        let inner = self.inner.read();
        if inner.by_referrer.is_empty() {
            return BTreeSet::new();
        }
        let mut found = inner.named.get(id).cloned().unwrap_or_default();
        let selecting = inner.selecting.get(&place_of(id)).into_iter().flatten();
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

    /// The templates that follow a binding: what holds it back may hold them back.
    pub(crate) fn dependents(&self, binding: &Key) -> BTreeSet<TemplateId> {
        let inner = self.inner.read();
        inner.dependents.get(binding).cloned().unwrap_or_default()
    }

    /// The way from a template over what it needs back to itself, if there is one. No object is read for it: what a selector
    /// means is among those that follow.
    pub(crate) fn cycle(&self, id: &TemplateId) -> Option<Vec<TemplateId>> {
        let inner = self.inner.read();
        dependencies::cycle(id, |id| {
            let key = template::binding_key(id);
            let Some(needed) = inner.by_referrer.get(&key) else {
                return Vec::new();
            };
            let selected: BTreeSet<Place> = needed
                .iter()
                .filter(|needed| needed.id().is_none())
                .map(place)
                .collect();
            let all = inner.dependents.get(&key).filter(|_| !selected.is_empty());
            let found = all
                .into_iter()
                .flatten()
                .filter(|id| selected.contains(&place_of(id)));
            let named = needed.iter().filter_map(Dependency::id);
            named.chain(found.cloned()).collect()
        })
    }

    /// A binding is of another version of its template, or is needed by others than it was. It is compared with what is known here:
    /// at a start what there is now may be told before what was there when it was listed.
    fn follow(&self, binding: &Key, after: &Following) {
        let is_known = |inner: &Inner| match inner.following.get(binding) {
            Some(known) => known == after,
            None => after.referrers.is_empty(),
        };
        if is_known(&self.inner.read()) {
            return;
        }
        let mut inner = self.inner.write();
        let before = inner.following.remove(binding).unwrap_or_default();
        for referrer in &before.referrers {
            remove(&mut inner.dependents, referrer, &before.id);
        }
        for referrer in &after.referrers {
            let ids = inner.dependents.entry(referrer.clone()).or_default();
            ids.insert(after.id.clone());
        }
        if !after.referrers.is_empty() {
            inner.following.insert(binding.clone(), after.clone());
        }
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

fn place_of(id: &TemplateId) -> Place {
    ((id.api_version.clone(), id.kind.clone()), id.namespace.clone())
}

fn remove<K: std::hash::Hash + Eq, V: Ord>(index: &mut HashMap<K, BTreeSet<V>>, at: &K, value: &V) {
    if let Some(values) = index.get_mut(at) {
        values.remove(value);
        if values.is_empty() {
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

/// A template that goes where others need it.
#[derive(Clone, Default, PartialEq)]
struct Following {
    id: TemplateId,
    /// The bindings that need it.
    referrers: BTreeSet<Key>,
}

impl Following {
    fn of(binding: Option<&Binding>) -> Self {
        let Some(binding) = binding.filter(|binding| !binding.spec.required_by.is_empty()) else {
            return Self::default();
        };
        let snapshots = binding.spec.required_by.iter();
        Self {
            id: template::template_of(binding),
            referrers: snapshots
                .map(|snapshot| Key::new(&snapshot.namespace, &snapshot.name))
                .collect(),
        }
    }
}

/// A binding changed: what it needs, or needed, is looked at again if that matters there.
pub(crate) fn binding(state: &State, key: &Key, old: Option<&Binding>, new: Option<&Binding>) {
    let (before, after) = (Following::of(old), Following::of(new));
    let (old, new) = (Referring::of(old), Referring::of(new));
    if old == new && before == after {
        return;
    }
    let on_the_way = || {
        let ids = [&old.id, &new.id].into_iter();
        ids.filter_map(|id| state.needs.cycle(id)).flatten()
    };
    let mut told: BTreeSet<TemplateId> = on_the_way().collect();
    state.needs.follow(key, &after);
    if old != new {
        state.needs.put(key, new.needed.clone());
    }
    told.extend(on_the_way());
    for id in told {
        // Whether there is a cycle is said by everyone in it.
        state.reports.add_soon(id, 1, template::REPORT_AFTER);
    }
    if old == new {
        return;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cycle_leads_through_names_and_selectors() {
        let id = |name: &str| TemplateId {
            api_version: "example.com/v1".to_owned(),
            kind: "Boat".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let key = |name: &str| template::binding_key(&id(name));
        let named = |name: &str| Dependency::named("example.com/v1", "Boat", "shop", name);
        let selected = |kind: &str| Dependency {
            label_selector: Some(json!({"matchLabels": {"a": "b"}})),
            ..Dependency::named("example.com/v1", kind, "shop", "")
        };
        let needs = Needs::default();
        let way = || {
            let way = needs.cycle(&id("ark"))?.into_iter();
            Some(way.map(|id| id.name).collect::<Vec<_>>().join(" "))
        };
        needs.put(&key("ark"), vec![selected("Boat")]);
        needs.put(&key("raft"), vec![named("ark")]);
        assert_eq!(way(), None);
        // The selector means the raft.
        let nobody = Following::default();
        let by = Following {
            id: id("raft"),
            referrers: BTreeSet::from([key("ark")]),
        };
        let raft = key("raft");
        needs.follow(&raft, &by);
        assert_eq!(way().as_deref(), Some("raft ark"));
        // What lingers because it was needed before is not needed now.
        for other in [named("other"), selected("Raft")] {
            needs.put(&key("ark"), vec![other]);
            assert_eq!(way(), None);
        }
        needs.put(&key("ark"), vec![selected("Boat")]);
        needs.follow(&raft, &nobody);
        assert_eq!(way(), None);
        assert_eq!(needs.dependents(&key("ark")), BTreeSet::new());
        // A binding that goes over to another version follows as that.
        let newer = |version: &str| Following {
            id: TemplateId {
                api_version: format!("example.com/{version}"),
                ..id("raft")
            },
            referrers: by.referrers.clone(),
        };
        for version in ["v1", "v2"] {
            needs.follow(&raft, &newer(version));
        }
        assert_eq!(needs.dependents(&key("ark")), BTreeSet::from([newer("v2").id]));
        needs.follow(&raft, &nobody);
        assert_eq!(needs.dependents(&key("ark")), BTreeSet::new());
        assert_eq!(needs.inner.read().following.len(), 0);
    }
}
