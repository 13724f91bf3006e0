//! The objects of one resource as the server last told them.
//!
//! Two sources feed a cache: the watch, and the answers to our own writes ([`Cache::learn`], [`Cache::forget`]). What always
//! holds: an older object never replaces a newer one, and a deleted one does not come back, in whichever order they speak.
//! Every difference is told once, outside all locks, and in order; [`Cache::seen`] and [`Cache::synced`] move only after
//! everything that they include was told. So whoever waits for them knows that its callbacks have run.

mod body;
mod feed;
mod item;
mod outbox;
mod state;
#[cfg(test)]
mod tests;
mod writing;

use std::sync::Arc;

use machinery_value::labels::LabelSelector;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use body::{Body, Looks};
pub(crate) use item::{Item, Lifetime};
pub(crate) use outbox::OnChange;
use outbox::{News, Outbox};
use state::State;
use writing::Writes;

use crate::link::LinkError;
use crate::resource::Resource;

/// Which object of a resource. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for objects of the cluster.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// A key of these names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Which one.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// Its generation; 0 for kinds that have none.
    pub generation: i64,
    /// Whether its deletion was asked for.
    pub terminating: bool,
    /// When a user last wrote it, in seconds since 1970 by the server's time; `None` if the server does not say.
    pub written: Option<i64>,
    body: Body,
}

impl Cached {
    /// The version as a number; see [`version`].
    pub fn version(&self) -> u64 {
        version(&self.resource_version)
    }

    /// The object as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, LinkError> {
        serde_json::from_slice(&self.text()).map_err(|e| LinkError::BadAnswer(format!("{}: {e}", self.key)))
    }

    /// The whole object as JSON, with `apiVersion` and `kind`, without `metadata.managedFields`.
    pub fn text(&self) -> Vec<u8> {
        self.body.text()
    }

    /// How long its text is.
    pub(crate) fn size(&self) -> usize {
        self.body.size()
    }

    /// Whether a word is anywhere in its text: quick to ask, before the object is read for it.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        std::str::from_utf8(&self.text()).is_ok_and(|text| text.contains(word))
    }
}

/// A resource version as a number. Servers promise that versions of one resource compare as numbers; what is no number
/// counts as the newest, so that it is never held back.
pub fn version(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

/// One difference: created (no old), deleted (no new), or changed. When the uids differ, an object was replaced by another
/// of its name.
#[derive(Clone, Debug)]
pub struct Change {
    /// What was there.
    pub old: Option<Arc<Cached>>,
    /// What is there.
    pub new: Option<Arc<Cached>>,
    /// Whether our own write made it, so that whoever wrote knows already.
    pub own: bool,
}

impl Change {
    /// Which object it is about.
    pub fn key(&self) -> Option<&Key> {
        self.new.as_ref().or(self.old.as_ref()).map(|cached| &cached.key)
    }
}

/// Makes less of an object's body: what nobody looks at needs no memory.
pub(crate) type Slim = fn(&[u8]) -> Vec<u8>;

/// The objects of one resource. Shared; everybody reads, the watch and our own writes feed it.
pub struct Cache {
    resource: Resource,
    api_version: String,
    namespace: String,
    selector: Option<LabelSelector>,
    slim: Option<Slim>,
    looks: Looks,
    state: RwLock<State>,
    outbox: Outbox,
    writes: Writes,
    trouble: watch::Sender<Option<LinkError>>,
}

impl Cache {
    /// An empty cache of a resource, in one namespace or in all, of the objects that a selector matches.
    pub(crate) fn new(
        resource: &Resource,
        namespace: &str,
        selector: Option<LabelSelector>,
        on_change: OnChange,
    ) -> Self {
        Self {
            resource: resource.clone(),
            api_version: resource.api_version(),
            namespace: namespace.to_owned(),
            selector,
            slim: None,
            looks: Looks::default(),
            state: RwLock::default(),
            outbox: Outbox::new(on_change),
            writes: Writes::default(),
            trouble: watch::Sender::new(None),
        }
    }

    /// The same, with so much of each object as somebody looks at.
    pub(crate) fn keeping(mut self, slim: Slim) -> Self {
        self.slim = Some(slim);
        self
    }

    /// A cache that nobody feeds but its owner, by [`Cache::learn`] and [`Cache::forget`]; for tests of what reads it.
    pub fn detached(resource: &Resource) -> Self {
        let cache = Self::new(resource, "", None, Arc::new(|_| {}));
        cache.outbox.push([News::Synced]);
        cache.outbox.tell();
        cache
    }

    /// Which resource it holds.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The namespace that it holds; empty for all.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Arc<Cached>> {
        self.find(&key.namespace, &key.name)
    }

    /// One object by its names.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<Cached>> {
        self.state.read().get(namespace, name).cloned()
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<Cached>> {
        let state = self.state.read();
        let mut all = Vec::with_capacity(state.len());
        all.extend(state.iter().cloned());
        all
    }

    /// The objects of one namespace, in the order of their names.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<Cached>> {
        self.state.read().iter_in(namespace).cloned().collect()
    }

    /// Calls with every object, in the order of their keys. Feeding the cache from inside would wait for ever.
    pub fn for_each(&self, mut f: impl FnMut(&Arc<Cached>)) {
        self.state.read().iter().for_each(&mut f);
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it was complete once. It stays so: a cache that lost its watch is old, not empty.
    pub fn synced(&self) -> bool {
        self.outbox.synced()
    }

    /// Returns once it is complete.
    pub async fn wait_synced(&self) {
        self.outbox.wait_synced().await;
    }

    /// The newest resource version up to which everything was told; empty before the first list. Our own writes do not move
    /// it: the changes of others that came before them may still be on their way.
    pub fn seen(&self) -> String {
        match self.seen_version() {
            0 => String::new(),
            seen => seen.to_string(),
        }
    }

    /// [`Cache::seen`] as a number; 0 before the first list.
    pub fn seen_version(&self) -> u64 {
        self.outbox.seen()
    }

    /// Why the watch does not work at the moment, if it does not.
    pub fn trouble(&self) -> Option<LinkError> {
        self.trouble.borrow().clone()
    }

    /// What becomes of the trouble, from now on.
    pub(crate) fn troubles(&self) -> watch::Receiver<Option<LinkError>> {
        self.trouble.subscribe()
    }

    /// Takes in the answer to our own write, so that the next pass sees it without waiting for the watch. An answer that says
    /// that the object is over, or no longer one that is followed, removes it.
    pub fn learn(&self, body: &[u8]) -> Result<(), LinkError> {
        self.take_in(body, true)
    }

    /// Takes in what a read of ours showed: newer than the watch, perhaps, but the work of others.
    pub fn learn_read(&self, body: &[u8]) -> Result<(), LinkError> {
        self.take_in(body, false)
    }

    /// Takes in that our own deletion removed the object with this uid.
    pub fn forget(&self, key: &Key, uid: &str) {
        self.update(|state| state.forget((&key.namespace, &key.name), uid).map(own));
    }

    /// Takes in that the object with this uid was found to be gone: others deleted it.
    pub fn forget_gone(&self, key: &Key, uid: &str) {
        self.update(|state| state.forget((&key.namespace, &key.name), uid));
    }

    fn take_in(&self, body: &[u8], ours: bool) -> Result<(), LinkError> {
        let text = std::str::from_utf8(body).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
        let item = Item::parse(text)?;
        if !self.namespace.is_empty() && item.namespace != self.namespace {
            return Ok(());
        }
        let selected = self
            .selector
            .as_ref()
            .is_none_or(|selector| item.matches(selector));
        let over = item.lifetime.over() || !selected;
        let cached = |key| self.cached(&item, key);
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.update(|state| {
            let change = if over {
                state.learn_over(id, &item.uid, rank)
            } else {
                state.learn(id, &item.uid, rank, cached)
            };
            if ours { change.map(own) } else { change }
        });
        Ok(())
    }

    fn cached(&self, item: &Item<'_>, key: Key) -> Cached {
        let whole = item.body(&self.api_version, &self.resource.kind);
        let body = match self.slim {
            Some(slim) => slim(&whole),
            None => whole,
        };
        Cached {
            key,
            uid: item.uid.clone().into_owned(),
            resource_version: item.resource_version.clone().into_owned(),
            generation: item.generation,
            terminating: item.lifetime.terminating(),
            written: item.written(),
            body: self.looks.pack(&body),
        }
    }

    /// Changes the state and tells the difference.
    fn update(&self, f: impl FnOnce(&mut State) -> Option<Change>) {
        {
            let mut state = self.state.write();
            // Under the state's lock, so that the order of telling is the order of changes.
            self.outbox.push(f(&mut state).map(News::Change));
        }
        self.outbox.tell();
    }
}

fn own(change: Change) -> Change {
    Change { own: true, ..change }
}
