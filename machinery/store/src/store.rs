//! The store itself: what its users call, and the parts that it is made of.
//!
//! Locks are taken in the order intake, state, registry, queue, and none is held while something is awaited.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Notify, oneshot};

use crate::entry::{ByKey, Change, Entry, Event, Expect, Page, Range, Record, Written};
use crate::error::{JournalFailure, OpenError, ReadError, WriteError};
use crate::history::History;
use crate::intake::{Ack, Attempt, Halt, Intake, Writer, meets};
use crate::journal::{Journal, Loaded};
use crate::registry::{Queue, Registry};
use crate::state::State;
use crate::watch::{From, Watch};
use crate::writer;

#[cfg(test)]
mod tests;

/// The revision of a store that was never written to. Clients of an API read 0 as "any", so it is 1.
pub(crate) const FIRST_REVISION: u64 = 1;

/// The bounds of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many events the history holds at most.
    pub history_events: usize,
    /// How much memory the history alone may keep alive.
    pub history_bytes: usize,
    /// How much memory the storage engine of a durable store may use for pages.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            history_events: 10_000,
            history_bytes: 64 << 20,
            cache_bytes: 4 << 20,
        }
    }
}

/// An ordered, versioned, watchable key-value store. Clones are the same store.
pub struct Store<V: Record> {
    pub(crate) handle: Arc<Handle<V>>,
}

impl<V: Record> Clone for Store<V> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
        }
    }
}

/// What the clones of a store share; when the last of them goes, the store closes.
pub(crate) struct Handle<V: Record> {
    pub(crate) shared: Arc<Shared<V>>,
}

impl<V: Record> Drop for Handle<V> {
    fn drop(&mut self) {
        self.shared.begin_close();
    }
}

/// What the store, its writer thread and its watches share.
pub(crate) struct Shared<V: Record> {
    pub(crate) intake: Mutex<Intake<V>>,
    /// Tells the writer thread that there is something to do.
    pub(crate) work: Condvar,
    /// Tells waiting writers that something was published, or that nothing will be.
    pub(crate) advanced: Notify,
    state: RwLock<State<V>>,
    registry: Mutex<Registry<V>>,
    /// The revision of the state, for reads without the lock.
    published: AtomicU64,
}

impl<V: Record> Store<V> {
    /// An empty store in memory. It has no thread and no file, and a write is done when it returns.
    pub fn memory() -> Self {
        Self::memory_with(&Options::default())
    }

    /// An empty store in memory with its own bounds.
    pub fn memory_with(options: &Options) -> Self {
        let intake = Intake::new(FIRST_REVISION, u64::MAX, Writer::None);
        Self::assemble(intake, BTreeSet::new(), FIRST_REVISION, 0, options)
    }

    /// Opens the durable store in this file, or creates it. Reads and checks all of it, so it blocks.
    ///
    /// # Errors
    /// Any doubt about the file is an error, and then its content is left as it was.
    pub fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let (journal, loaded) = Journal::open(path, options.cache_bytes)?;
        Self::with_journal(journal, loaded, &options).map_err(|source| OpenError::Io {
            path: path.into(),
            source,
        })
    }

    pub(crate) fn with_journal(
        journal: Journal,
        loaded: Loaded<V>,
        options: &Options,
    ) -> Result<Self, std::io::Error> {
        let Loaded {
            entries,
            revision,
            last_write,
            ..
        } = loaded;
        // No revision is free yet: the first thing that the writer thread does is to reserve some.
        let intake = Intake::new(revision, revision, Writer::Running);
        // What happened up to the last write is not known; after it nothing happened.
        let floor = if last_write == FIRST_REVISION {
            0
        } else {
            last_write
        };
        let store = Self::assemble(intake, entries, revision, floor, options);
        writer::spawn(store.handle.shared.clone(), journal)?;
        Ok(store)
    }

    fn assemble(
        intake: Intake<V>,
        entries: BTreeSet<ByKey<V>>,
        revision: u64,
        floor: u64,
        options: &Options,
    ) -> Self {
        let history = History::new(floor, options.history_events, options.history_bytes);
        let shared = Shared {
            intake: Mutex::new(intake),
            work: Condvar::new(),
            advanced: Notify::new(),
            state: RwLock::new(State::new(entries, revision, history)),
            registry: Mutex::new(Registry::new()),
            published: AtomicU64::new(revision),
        };
        Self {
            handle: Arc::new(Handle {
                shared: Arc::new(shared),
            }),
        }
    }

    /// The newest published revision.
    pub fn revision(&self) -> u64 {
        self.handle.shared.published()
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<Arc<Entry<V>>> {
        self.handle.shared.state.read().get(key).cloned()
    }

    /// The entries of a range, as of one revision.
    ///
    /// # Errors
    /// If the revision is not known any more, or not yet.
    pub fn range(&self, query: Range<'_>) -> Result<Page<V>, ReadError> {
        self.handle.shared.state.read().range(&query)
    }

    /// Changes one key, if it is as expected, and returns when the change is published.
    ///
    /// A write whose future is dropped while it waits may or may not happen.
    ///
    /// # Errors
    /// See [`WriteError`]. After a conflict the store shows the entry that was in the way, or a newer one.
    pub async fn write(
        &self,
        key: &str,
        expect: Expect,
        mut change: Change<V>,
    ) -> Result<Written<V>, WriteError<V>> {
        let shared = &*self.handle.shared;
        loop {
            // Made before the attempt, so that no notice after it is missed.
            let advanced = shared.advanced.notified();
            match shared.enter(key, expect, change) {
                Entered::Published(event) => return Ok(written(&event)),
                Entered::Waits(event, acked) => {
                    return match acked.await {
                        Ok(Ok(())) => Ok(written(&event)),
                        Ok(Err(failure)) => Err(WriteError::Io(failure)),
                        Err(_) => Err(WriteError::Io(JournalFailure("its thread ended".into()))),
                    };
                }
                Entered::Refused(error) => return Err(error),
                Entered::ConflictsWith(revision, unused) => {
                    shared.wait_until_published(revision).await?;
                    // Even newer writes may be visible by now. Whoever is told of a conflict must be able to see it.
                    let current = self.get(key);
                    if !meets(current.as_deref(), expect, unused.kind()) {
                        return Err(WriteError::Conflict(current));
                    }
                    change = unused;
                }
                Entered::Full(unused) => {
                    change = unused;
                    advanced.await;
                }
            }
        }
    }

    /// Watches the keys that start with `prefix`. A watch that leaves more than `buffer` events lying is ended.
    ///
    /// # Errors
    /// If the events after the revision are not known any more, or the revision has not happened yet.
    pub fn watch(&self, prefix: &str, from: From, buffer: usize) -> Result<Watch<V>, ReadError> {
        let shared = &self.handle.shared;
        // Nothing is published while the state is read, so that replay and queue meet without gap or overlap.
        let state = shared.state.read();
        let (replay, returned) = match from {
            From::Now => (VecDeque::new(), state.revision()),
            From::After(revision) => (state.events(prefix, revision)?.cloned().collect(), revision),
        };
        Ok(shared.start_watch(prefix, buffer, replay, returned))
    }

    /// The entries of a prefix, and a watch of what happens to them from then on.
    pub fn list_and_watch(&self, prefix: &str, buffer: usize) -> (Page<V>, Watch<V>) {
        let shared = &self.handle.shared;
        let state = shared.state.read();
        let page = state.list(prefix);
        let watch = shared.start_watch(prefix, buffer, VecDeque::new(), page.revision);
        (page, watch)
    }

    /// Forgets the history up to a revision.
    pub fn compact(&self, revision: u64) {
        self.handle.shared.state.write().trim(revision);
    }

    /// Takes no more writes, waits until the accepted ones are on disk and the file is closed, and ends all watches.
    /// Other clones can still read. A store that is dropped instead does the same, without waiting.
    pub async fn close(self) {
        let shared = &*self.handle.shared;
        shared.begin_close();
        loop {
            let advanced = shared.advanced.notified();
            if shared.intake.lock().writer != Writer::Running {
                return;
            }
            advanced.await;
        }
    }
}

impl<V: Record> fmt::Debug for Store<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

fn written<V>(event: &Event<V>) -> Written<V> {
    Written {
        revision: event.revision,
        entry: event.entry.clone(),
        previous: event.previous.clone(),
    }
}

/// How the first step of a write ended.
enum Entered<V: Record> {
    Published(Arc<Event<V>>),
    Waits(Arc<Event<V>>, oneshot::Receiver<Ack>),
    Refused(WriteError<V>),
    ConflictsWith(u64, Change<V>),
    Full(Change<V>),
}

impl<V: Record> Shared<V> {
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    fn enter(&self, key: &str, expect: Expect, change: Change<V>) -> Entered<V> {
        let mut intake = self.intake.lock();
        match intake.attempt(key, expect, change, |key| self.state.read().get(key).cloned()) {
            Attempt::Accepted(event) if intake.writer == Writer::None => {
                self.publish(std::iter::once(&event));
                Entered::Published(event)
            }
            Attempt::Accepted(event) => {
                let acked = intake.enqueue(event.clone());
                if intake.batch.len() == intake.expected {
                    self.work.notify_one();
                }
                Entered::Waits(event, acked)
            }
            Attempt::Refused(error) => Entered::Refused(error),
            Attempt::ConflictsWith(revision, change) => Entered::ConflictsWith(revision, change),
            Attempt::Full(change) => {
                self.work.notify_one();
                Entered::Full(change)
            }
        }
    }

    /// Makes events visible, in their order, and hands them to the watches.
    pub(crate) fn publish<'a>(&self, events: impl Iterator<Item = &'a Arc<Event<V>>>) {
        let mut wake = Vec::new();
        {
            let mut state = self.state.write();
            let mut registry = self.registry.lock();
            for event in events {
                state.apply(event);
                registry.deliver(event, &mut wake);
            }
            self.published.store(state.revision(), Ordering::Release);
        }
        for queue in wake {
            queue.ready.notify_one();
        }
    }

    async fn wait_until_published(&self, revision: u64) -> Result<(), WriteError<V>> {
        loop {
            let advanced = self.advanced.notified();
            if self.published() >= revision {
                return Ok(());
            }
            {
                let intake = self.intake.lock();
                match &intake.halt {
                    Some(halt @ Halt::Failed(_)) => return Err(halt.error()),
                    Some(halt) if intake.writer == Writer::Gone => return Err(halt.error()),
                    _ => {}
                }
            }
            advanced.await;
        }
    }

    /// Starts a watch; the caller holds the state.
    fn start_watch(
        self: &Arc<Self>,
        prefix: &str,
        buffer: usize,
        replay: VecDeque<Arc<Event<V>>>,
        returned: u64,
    ) -> Watch<V> {
        let queue = Arc::new(Queue::new(buffer));
        let id = self.registry.lock().add(prefix, queue.clone());
        Watch::new(Arc::downgrade(self), prefix, id, replay, queue, returned)
    }

    pub(crate) fn forget_watch(&self, prefix: &str, id: u64) {
        self.registry.lock().remove(prefix, id);
    }

    fn begin_close(&self) {
        let mut intake = self.intake.lock();
        intake.closing = true;
        intake.halt.get_or_insert(Halt::Closed);
        self.work.notify_one();
        // A writer thread that still runs does this after the last writes are published.
        if intake.writer != Writer::Running {
            self.registry.lock().close();
        }
    }

    /// The journal cannot go on: fails everything that waits for it, and everything that comes.
    pub(crate) fn fail(&self, failure: &JournalFailure) {
        let abandoned = {
            let mut intake = self.intake.lock();
            intake.halt = Some(Halt::Failed(failure.clone()));
            intake.unpublished = HashMap::new();
            std::mem::take(&mut intake.batch)
        };
        for write in abandoned {
            // Whoever waited for it may have gone away.
            let _ = write.ack.send(Err(failure.clone()));
        }
        self.advanced.notify_waiters();
    }

    /// The writer thread has closed the file.
    pub(crate) fn writer_gone(&self) {
        {
            let mut intake = self.intake.lock();
            intake.writer = Writer::Gone;
            if intake.closing {
                self.registry.lock().close();
            }
        }
        self.advanced.notify_waiters();
    }

    #[cfg(test)]
    pub(crate) fn has_no_watches(&self) -> bool {
        self.registry.lock().is_empty()
    }
}
