//! Where writes enter: expectations are checked, revisions are given, and accepted writes wait for the disk.
//!
//! Owned by the store behind a lock. A write is checked against the newest *accepted* state of its key, so that two
//! writers cannot both succeed from the same expectation while the first of them is still on its way to the disk.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::entry::{ByKey, Change, Entry, Event, Expect, Kind, Record};
use crate::error::{JournalFailure, WriteError};
use crate::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// How far ahead of the newest write revisions are reserved on disk. No revision is given that is not reserved, so
/// that none is given again after a crash. It also bounds how many writes can wait for the disk.
pub(crate) const RESERVE: u64 = 8192;

/// What a writer is told when its batch is on disk, or is not.
pub(crate) type Ack = Result<(), JournalFailure>;

pub(crate) struct Accepted<V> {
    pub(crate) event: Arc<Event<V>>,
    pub(crate) ack: oneshot::Sender<Ack>,
}

/// Why no write is accepted any more.
#[derive(Clone)]
pub(crate) enum Halt {
    Closed,
    Failed(JournalFailure),
}

impl Halt {
    pub(crate) fn error<V: Record>(&self) -> WriteError<V> {
        match self {
            Self::Closed => WriteError::Closed,
            Self::Failed(failure) => WriteError::Io(failure.clone()),
        }
    }
}

pub(crate) struct Intake<V> {
    /// The newest revision that was given.
    pub(crate) last: u64,
    /// The newest revision that may be given.
    pub(crate) ceiling: u64,
    /// The newest accepted write of each key that has one which is not yet published.
    pub(crate) unpublished: HashMap<ByKey<V>, Arc<Event<V>>>,
    /// The accepted writes that the journal has not taken yet, in revision order.
    pub(crate) batch: Vec<Accepted<V>>,
    /// How many of them the journal is waiting for, while it waits.
    pub(crate) expected: usize,
    pub(crate) halt: Option<Halt>,
    /// The store is closed or about to be, whatever else went wrong.
    pub(crate) closing: bool,
    pub(crate) writer: Writer,
}

/// The thread that brings accepted writes to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The store is in memory: a write is published when it is accepted.
    None,
    Running,
    /// The file is closed.
    Gone,
}

/// How an attempt to enter a write ended.
pub(crate) enum Attempt<V: Record> {
    /// The write has its revision and event.
    Accepted(Arc<Event<V>>),
    Refused(WriteError<V>),
    /// The write conflicts with one that is not published yet, of this revision. The change was not used.
    ConflictsWith(u64, Change<V>),
    /// No revision is free until the journal has reserved more. The change was not used.
    Full(Change<V>),
}

impl<V: Record> Intake<V> {
    pub(crate) fn new(last: u64, ceiling: u64, writer: Writer) -> Self {
        Self {
            last,
            ceiling,
            unpublished: HashMap::new(),
            batch: Vec::new(),
            expected: 1,
            halt: None,
            closing: false,
            writer,
        }
    }

    /// Whether the journal should reserve more revisions although nothing waits to be written.
    pub(crate) fn runs_low(&self) -> bool {
        self.ceiling - self.last < RESERVE / 2
    }

    /// Checks a write and makes its event. `published` looks a key up among the published entries.
    pub(crate) fn attempt(
        &mut self,
        key: &str,
        expect: Expect,
        change: Change<V>,
        published: impl FnOnce(&str) -> Option<Arc<Entry<V>>>,
    ) -> Attempt<V> {
        if let Some(halt) = &self.halt {
            return Attempt::Refused(halt.error());
        }
        if key.len() > MAX_KEY_BYTES {
            return too_large("key", key.len(), MAX_KEY_BYTES);
        }
        let unpublished = self.unpublished.get(key);
        let current = match unpublished {
            Some(event) => event.after().cloned(),
            None => published(key),
        };
        let kind = change.kind();
        if !meets(current.as_deref(), expect, kind) {
            return match unpublished {
                Some(event) => Attempt::ConflictsWith(event.revision, change),
                None => Attempt::Refused(WriteError::Conflict(current)),
            };
        }
        if self.last >= self.ceiling {
            return Attempt::Full(change);
        }
        // Taken before the closure runs: a revision that a closure has seen is used up, even if it panics.
        self.last += 1;
        let revision = self.last;
        let value = change.make(revision);
        if value.bytes().len() > MAX_VALUE_BYTES {
            return too_large("value", value.bytes().len(), MAX_VALUE_BYTES);
        }
        let created = current.as_ref().map_or(revision, |entry| entry.created);
        let entry = Arc::new(Entry {
            key: key.into(),
            value,
            revision,
            created,
        });
        Attempt::Accepted(Arc::new(Event {
            revision,
            kind,
            entry,
            previous: current,
        }))
    }

    /// Queues an accepted write for the journal.
    pub(crate) fn enqueue(&mut self, event: Arc<Event<V>>) -> oneshot::Receiver<Ack> {
        let (ack, acked) = oneshot::channel();
        // The key of the map is the entry itself: replace it too, or the older entry is kept alive by it.
        self.unpublished.remove(&*event.entry.key);
        self.unpublished.insert(ByKey(event.entry.clone()), event.clone());
        self.batch.push(Accepted { event, ack });
        acked
    }

    /// Forgets a write that readers can see now.
    pub(crate) fn published(&mut self, event: &Event<V>) {
        let key: &str = &event.entry.key;
        if self
            .unpublished
            .get(key)
            .is_some_and(|newest| newest.revision == event.revision)
        {
            self.unpublished.remove(key);
        }
    }
}

/// Whether a key is as a write expects it.
pub(crate) fn meets<V>(current: Option<&Entry<V>>, expect: Expect, kind: Kind) -> bool {
    match (current, expect) {
        // There is nothing to delete.
        (None, _) if kind == Kind::Delete => false,
        (None, Expect::Absent) | (_, Expect::Any) => true,
        (Some(entry), Expect::Revision(revision)) => entry.revision == revision,
        (Some(_), Expect::Absent) | (None, Expect::Revision(_)) => false,
    }
}

fn too_large<V: Record>(what: &'static str, bytes: usize, limit: usize) -> Attempt<V> {
    Attempt::Refused(WriteError::TooLarge { what, bytes, limit })
}
