//! The objects of one resource as the server last told them.
//!
//! Two sources feed a cache: the watch, and the answers to our own writes ([`Cache::learn`], [`Cache::forget`]). What always
//! holds: an older object never replaces a newer one, and a deleted one does not come back, in whichever order they speak.
//! Every difference is told once, outside all locks, and in order; [`Cache::seen`] and [`Cache::synced`] move only after
//! everything that they include was told. So whoever waits for them knows that its callbacks have run.

mod item;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub(crate) use item::{Item, Lifetime};
use state::State;

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
    /// The whole object as JSON, with `apiVersion` and `kind`, without `metadata.managedFields`.
    pub body: Bytes,
}

impl Cached {
    /// The version as a number; see [`version`].
    pub fn version(&self) -> u64 {
        version(&self.resource_version)
    }

    /// The object as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, LinkError> {
        serde_json::from_slice(&self.body).map_err(|e| LinkError::BadAnswer(format!("{}: {e}", self.key)))
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

/// What is told of a cache's differences.
pub(crate) type OnChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// The watch waits while more than this is untold.
const MAX_NEWS: usize = 4096;

/// What waits to be told, in order.
enum News {
    Change(Change),
    Seen(u64),
    Synced,
}

/// The objects of one resource. Shared; everybody reads, the watch and our own writes feed it.
pub struct Cache {
    resource: Resource,
    api_version: String,
    namespace: String,
    state: RwLock<State>,
    outbox: Mutex<Outbox>,
    seen: AtomicU64,
    synced: watch::Sender<bool>,
    trouble: Mutex<Option<LinkError>>,
}

struct Outbox {
    news: std::collections::VecDeque<News>,
    /// Somebody tells right now, and will tell what comes meanwhile too.
    telling: bool,
    on_change: Option<OnChange>,
}

impl Cache {
    /// An empty cache of a resource, in one namespace or in all.
    pub(crate) fn new(resource: &Resource, namespace: &str, on_change: OnChange) -> Self {
        Self {
            resource: resource.clone(),
            api_version: resource.api_version(),
            namespace: namespace.to_owned(),
            state: RwLock::default(),
            outbox: Mutex::new(Outbox {
                news: Default::default(),
                telling: false,
                on_change: Some(on_change),
            }),
            seen: AtomicU64::new(0),
            synced: watch::Sender::new(false),
            trouble: Mutex::new(None),
        }
    }

    /// A cache that nobody feeds but its owner, by [`Cache::learn`] and [`Cache::forget`]; for tests of what reads it.
    pub fn detached(resource: &Resource) -> Self {
        let cache = Self::new(resource, "", Arc::new(|_| {}));
        cache.synced.send_replace(true);
        cache
    }

    /// Which resource it holds.
    pub fn resource(&self) -> &Resource {
        &self.resource
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
        *self.synced.borrow()
    }

    /// Returns once it is complete.
    pub async fn wait_synced(&self) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
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
        self.seen.load(Ordering::Acquire)
    }

    /// Why the watch does not work at the moment, if it does not.
    pub fn trouble(&self) -> Option<LinkError> {
        self.trouble.lock().clone()
    }

    /// Takes in the answer to our own write, so that the next pass sees it without waiting for the watch. An answer that says
    /// that the object is over removes it.
    pub fn learn(&self, body: &[u8]) -> Result<(), LinkError> {
        let text = std::str::from_utf8(body).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
        let item = Item::parse(text)?;
        if !self.namespace.is_empty() && item.namespace != self.namespace {
            return Ok(());
        }
        let over = item.lifetime.over();
        let cached = |key| self.cached(&item, key);
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.update(|state| {
            own(if over {
                state.learn_over(id, &item.uid, rank)
            } else {
                state.learn(id, &item.uid, rank, cached)
            })
        });
        Ok(())
    }

    /// Takes in that our own deletion removed the object with this uid.
    pub fn forget(&self, key: &Key, uid: &str) {
        self.update(|state| own(state.forget((&key.namespace, &key.name), uid)));
    }

    fn cached(&self, item: &Item<'_>, key: Key) -> Cached {
        Cached {
            key,
            uid: item.uid.clone().into_owned(),
            resource_version: item.resource_version.clone().into_owned(),
            generation: item.generation,
            terminating: item.lifetime.terminating(),
            body: item.body(&self.api_version, &self.resource.kind),
        }
    }

    /// Changes the state and tells the difference.
    fn update(&self, f: impl FnOnce(&mut State) -> Option<Change>) {
        {
            let mut state = self.state.write();
            if let Some(change) = f(&mut state) {
                // Under the state's lock, so that the order of telling is the order of changes.
                self.outbox.lock().news.push_back(News::Change(change));
            }
        }
        self.tell();
    }

    /// Tells what waits, unless somebody else is at it.
    fn tell(&self) {
        {
            let mut outbox = self.outbox.lock();
            if outbox.telling || outbox.news.is_empty() {
                return;
            }
            outbox.telling = true;
        }
        // A callback that panics must not silence the cache for ever.
        let telling = Telling(self);
        loop {
            let (news, on_change) = {
                let mut outbox = self.outbox.lock();
                match outbox.news.pop_front() {
                    Some(news) => (news, outbox.on_change.clone()),
                    None => {
                        outbox.telling = false;
                        std::mem::forget(telling);
                        return;
                    }
                }
            };
            match news {
                News::Change(change) => {
                    if let Some(on_change) = on_change {
                        on_change(&change);
                    }
                }
                News::Seen(version) => self.seen.store(version, Ordering::Release),
                News::Synced => {
                    self.synced
                        .send_if_modified(|synced| !std::mem::replace(synced, true));
                }
            }
        }
    }
}

fn own(change: Option<Change>) -> Option<Change> {
    change.map(|change| Change { own: true, ..change })
}

struct Telling<'a>(&'a Cache);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.outbox.lock().telling = false;
    }
}

/// What the watch feeds.
impl Cache {
    /// A list is about to be asked for.
    pub(crate) fn list_begins(&self) {
        self.state.write().list_begins();
    }

    /// The list's first page came, and says how new the list is.
    pub(crate) fn list_is_at(&self, resource_version: &str) {
        self.state.write().list_is_at(version(resource_version));
    }

    /// An object of the list that began last.
    pub(crate) fn list_item(&self, text: &str) -> Result<(), LinkError> {
        let item = Item::parse(text)?;
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.update(|state| state.list_item(id, &item.uid, rank, |key| self.cached(&item, key)));
        Ok(())
    }

    /// The list is complete: what it did not hold is gone.
    pub(crate) fn list_ends(&self, resource_version: &str) {
        {
            let mut state = self.state.write();
            let gone = state.list_ends(version(resource_version));
            let mut outbox = self.outbox.lock();
            outbox.news.extend(gone.into_iter().map(News::Change));
            outbox.news.push_back(News::Seen(state.streamed()));
            outbox.news.push_back(News::Synced);
        }
        self.tell();
    }

    /// An object of the watch was created or changed.
    pub(crate) fn watch_item(&self, text: &str) -> Result<(), LinkError> {
        let item = Item::parse(text)?;
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        let terminating = item.lifetime.terminating();
        self.step(rank, |state| {
            state.watch_item(id, &item.uid, rank, terminating, |key| self.cached(&item, key))
        });
        Ok(())
    }

    /// An object of the watch was deleted.
    pub(crate) fn watch_deleted(&self, text: &str) -> Result<(), LinkError> {
        let item = Item::parse(text)?;
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.step(rank, |state| state.watch_deleted(id, &item.uid, rank));
        Ok(())
    }

    /// The watch says that nothing else happened up to here. False when the server's history went back in time.
    pub(crate) fn watch_bookmark(&self, text: &str) -> Result<bool, LinkError> {
        let rank = version(&Item::parse(text)?.resource_version);
        if rank < self.state.read().streamed() {
            return Ok(false);
        }
        self.step(rank, |_| None);
        Ok(true)
    }

    /// Where a watch goes on.
    pub(crate) fn streamed(&self) -> u64 {
        self.state.read().streamed()
    }

    fn step(&self, rank: u64, f: impl FnOnce(&mut State) -> Option<Change>) {
        {
            let mut state = self.state.write();
            let change = f(&mut state);
            state.stream_to(rank);
            let mut outbox = self.outbox.lock();
            outbox.news.extend(change.map(News::Change));
            outbox.news.push_back(News::Seen(state.streamed()));
        }
        self.tell();
    }

    /// Waits while too much is untold, because somebody else tells it more slowly than the watch brings it.
    pub(crate) async fn breathe(&self) {
        while self.outbox.lock().news.len() > MAX_NEWS {
            tokio::task::yield_now().await;
        }
        tokio::task::consume_budget().await;
    }

    pub(crate) fn set_trouble(&self, trouble: Option<LinkError>) {
        *self.trouble.lock() = trouble;
    }

    /// Nobody wants to be told any more.
    pub(crate) fn hush(&self) {
        self.outbox.lock().on_change = None;
    }
}
