//! What a cache holds, and which of two tellings wins. Pure: it is given ranks, resource versions as numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cached, Change, Key};

/// Namespace and name.
type Id<'a> = (&'a str, &'a str);

#[derive(Default)]
pub(super) struct State {
    /// Ordered, so that everything that follows from an iteration is the same in every run.
    namespaces: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Entry>>,
    len: usize,
    /// The uids that our own deletions removed while the watch may still speak of them.
    buried: BTreeMap<String, Grave>,
    /// How many lists have begun.
    lists: u64,
    /// Whether the list that began last is older than what was told before it: the server's history was put back, as when
    /// a backup is restored. Then the list alone is true.
    rewound: bool,
    /// Lists and watches have told everything up to here.
    streamed: u64,
}

struct Entry {
    cached: Arc<Cached>,
    /// The last list that held it.
    listed: u64,
}

struct Grave {
    /// The list that had begun last.
    lists: u64,
    /// Whether the object was on its way out already when we forgot it.
    terminating: bool,
}

impl State {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn streamed(&self) -> u64 {
        self.streamed
    }

    pub(super) fn stream_to(&mut self, rank: u64) {
        // What is no number says nothing about where the stream is.
        if rank != u64::MAX {
            self.streamed = self.streamed.max(rank);
        }
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Cached>> {
        Some(&self.namespaces.get(namespace)?.get(name)?.cached)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Cached>> {
        self.namespaces
            .values()
            .flat_map(|names| names.values().map(|entry| &entry.cached))
    }

    pub(super) fn iter_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Cached>> {
        self.namespaces
            .get(namespace)
            .into_iter()
            .flat_map(|names| names.values().map(|entry| &entry.cached))
    }

    /// The answer to a write. What the stream has passed already is in the cache, or was deleted since.
    pub(super) fn learn(
        &mut self,
        id: Id<'_>,
        uid: &str,
        rank: u64,
        cached: impl FnOnce(Key) -> Cached,
    ) -> Option<Change> {
        if rank <= self.streamed || self.buried.contains_key(uid) {
            return None;
        }
        self.put(id, rank, cached)
    }

    /// The answer to a write that removed the object.
    pub(super) fn learn_over(&mut self, id: Id<'_>, uid: &str, rank: u64) -> Option<Change> {
        let newer = self.get(id.0, id.1).is_some_and(|old| old.version() > rank);
        if newer { None } else { self.forget(id, uid) }
    }

    pub(super) fn forget(&mut self, id: Id<'_>, uid: &str) -> Option<Change> {
        let terminating = self
            .get(id.0, id.1)
            .filter(|cached| cached.uid == uid)?
            .terminating;
        let grave = Grave {
            lists: self.lists,
            terminating,
        };
        self.buried.insert(uid.to_owned(), grave);
        self.remove(id)
    }

    /// A list is about to be asked for.
    pub(super) fn list_begins(&mut self) {
        self.lists += 1;
        self.rewound = false;
    }

    /// The list's first answer came, and says how new it is.
    pub(super) fn list_is_at(&mut self, rank: u64) {
        self.rewound = rank < self.streamed;
    }

    pub(super) fn list_item(
        &mut self,
        id: Id<'_>,
        uid: &str,
        rank: u64,
        cached: impl FnOnce(Key) -> Cached,
    ) -> Option<Change> {
        // The list is as new as its beginning. What was buried before that and is listed still exists; what was buried since
        // may have been listed before.
        if self
            .buried
            .get(uid)
            .is_some_and(|grave| grave.lists == self.lists)
        {
            return None;
        }
        let change = self.put(id, rank, cached);
        let lists = self.lists;
        if let Some(entry) = self.entry(id) {
            entry.listed = lists;
        }
        change
    }

    /// Ends the list, and gives what it did not hold.
    pub(super) fn list_ends(&mut self, rank: u64) -> Vec<Change> {
        let (lists, rewound) = (self.lists, self.rewound);
        let mut gone = Vec::new();
        for names in self.namespaces.values_mut() {
            names.retain(|_, entry| {
                let keep = entry.listed == lists || (entry.cached.version() > rank && !rewound);
                if !keep {
                    gone.push(Change {
                        old: Some(entry.cached.clone()),
                        new: None,
                        own: false,
                    });
                }
                keep
            });
        }
        self.namespaces.retain(|_, names| !names.is_empty());
        self.len -= gone.len();
        self.buried.retain(|_, grave| grave.lists == lists);
        if rank != u64::MAX {
            self.streamed = rank;
        }
        self.rewound = false;
        gone
    }

    pub(super) fn watch_item(
        &mut self,
        id: Id<'_>,
        uid: &str,
        rank: u64,
        terminating: bool,
        cached: impl FnOnce(Key) -> Cached,
    ) -> Option<Change> {
        if let Some(grave) = self.buried.get(uid) {
            if grave.terminating || !terminating {
                return None;
            }
            // Its deletion has begun and not ended: it was forgotten too early.
            self.buried.remove(uid);
        }
        self.put(id, rank, cached)
    }

    pub(super) fn watch_deleted(&mut self, id: Id<'_>, uid: &str, rank: u64) -> Option<Change> {
        self.buried.remove(uid);
        let old = self.get(id.0, id.1)?;
        // Another object of that name may have been made and learned since.
        if old.uid != uid && old.version() > rank {
            return None;
        }
        self.remove(id)
    }

    fn entry(&mut self, id: Id<'_>) -> Option<&mut Entry> {
        self.namespaces.get_mut(id.0)?.get_mut(id.1)
    }

    /// Puts an object in unless what is there is as new.
    fn put(&mut self, id: Id<'_>, rank: u64, cached: impl FnOnce(Key) -> Cached) -> Option<Change> {
        let rewound = self.rewound;
        if let Some(entry) = self.entry(id) {
            let current = entry.cached.version() >= rank && rank != u64::MAX;
            if current && !rewound {
                return None;
            }
            let new = Arc::new(cached(entry.cached.key.clone()));
            if new == entry.cached {
                return None;
            }
            let old = std::mem::replace(&mut entry.cached, new.clone());
            return Some(Change {
                old: Some(old),
                new: Some(new),
                own: false,
            });
        }
        let namespace = match self.namespaces.get_key_value(id.0) {
            Some((namespace, _)) => namespace.clone(),
            None => id.0.into(),
        };
        let key = Key {
            namespace: namespace.clone(),
            name: id.1.into(),
        };
        let name = key.name.clone();
        let new = Arc::new(cached(key));
        let entry = Entry {
            cached: new.clone(),
            listed: 0,
        };
        self.namespaces.entry(namespace).or_default().insert(name, entry);
        self.len += 1;
        Some(Change {
            old: None,
            new: Some(new),
            own: false,
        })
    }

    fn remove(&mut self, id: Id<'_>) -> Option<Change> {
        let names = self.namespaces.get_mut(id.0)?;
        let entry = names.remove(id.1)?;
        if names.is_empty() {
            self.namespaces.remove(id.0);
        }
        self.len -= 1;
        Some(Change {
            old: Some(entry.cached),
            new: None,
            own: false,
        })
    }
}
