//! The words of the store: records, entries, events, and what reads and writes ask for.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

/// A value that the store can keep: bytes, and whatever the owner derives from them.
pub trait Record: Send + Sync + Sized + 'static {
    /// The bytes that are kept on disk, and that [`Record::decode`] gets back.
    fn bytes(&self) -> &Bytes;
    /// Reads a value back from its bytes, when a durable store is opened.
    ///
    /// # Errors
    /// Says in words why these bytes are no value; the store is then refused and names the key.
    fn decode(bytes: Bytes) -> Result<Self, String>;
}

/// A value under its key, as of one revision. Entries never change: a write makes a new one.
pub struct Entry<V> {
    /// The key, unique in the store.
    pub key: Box<str>,
    /// The value.
    pub value: V,
    /// The revision of the write that made this entry.
    pub revision: u64,
    /// The revision of the write that created the key, counted anew after a delete.
    pub created: u64,
}

impl<V: Record> fmt::Debug for Entry<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .field("bytes", &self.value.bytes().len())
            .field("revision", &self.revision)
            .field("created", &self.created)
            .finish()
    }
}

/// What a write did to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key was created or changed.
    Put,
    /// The key was removed.
    Delete,
}

/// One published write.
pub struct Event<V> {
    /// The revision of the write.
    pub revision: u64,
    /// Whether the key was set or removed.
    pub kind: Kind,
    /// The new state; of a delete, the final state that its writer made.
    pub entry: Arc<Entry<V>>,
    /// The state before the write; none if the key was absent.
    pub previous: Option<Arc<Entry<V>>>,
}

impl<V> Event<V> {
    /// What the key holds after the write.
    pub(crate) fn after(&self) -> Option<&Arc<Entry<V>>> {
        match self.kind {
            Kind::Put => Some(&self.entry),
            Kind::Delete => None,
        }
    }
}

impl<V: Record> fmt::Debug for Event<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("revision", &self.revision)
            .field("kind", &self.kind)
            .field("entry", &self.entry)
            .field("previous", &self.previous)
            .finish()
    }
}

/// What must be true of a key for a write to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key exists and was last changed at this revision.
    Revision(u64),
    /// Nothing.
    Any,
}

/// Makes the value of a write from the revision that the write was given.
pub type MakeValue<V> = Box<dyn FnOnce(u64) -> V + Send>;

/// What a write does. The closure runs once, while other writers wait: it should only put the revision into a value
/// that is otherwise ready. It must not write to the store.
pub enum Change<V> {
    /// Sets the key.
    Put(MakeValue<V>),
    /// Removes the key; the value is the final state that watchers see.
    Delete(MakeValue<V>),
}

impl<V> Change<V> {
    /// A change that sets the key.
    pub fn put(make: impl FnOnce(u64) -> V + Send + 'static) -> Self {
        Self::Put(Box::new(make))
    }

    /// A change that removes the key.
    pub fn delete(make: impl FnOnce(u64) -> V + Send + 'static) -> Self {
        Self::Delete(Box::new(make))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Put(_) => Kind::Put,
            Self::Delete(_) => Kind::Delete,
        }
    }

    pub(crate) fn make(self, revision: u64) -> V {
        match self {
            Self::Put(make) | Self::Delete(make) => make(revision),
        }
    }
}

/// A write that is published.
pub struct Written<V> {
    /// The revision of the write.
    pub revision: u64,
    /// The new state; of a delete, the final state.
    pub entry: Arc<Entry<V>>,
    /// The state before the write; none if the key was created.
    pub previous: Option<Arc<Entry<V>>>,
}

impl<V: Record> fmt::Debug for Written<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("entry", &self.entry)
            .field("previous", &self.previous)
            .finish()
    }
}

/// Which entries to read. The default is all of them, now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// What the keys start with.
    pub prefix: &'a str,
    /// Only keys after this one: the last key of the page before.
    pub after: Option<&'a str>,
    /// How many entries to return at most; 0 is all.
    pub limit: usize,
    /// The revision as of which to read; none is the newest.
    pub at: Option<u64>,
}

/// Entries in key order, all as of one revision.
pub struct Page<V> {
    /// The entries.
    pub entries: Vec<Arc<Entry<V>>>,
    /// The revision as of which they were read.
    pub revision: u64,
    /// How many further entries the range holds after this page.
    pub remaining: usize,
}

impl<V: Record> fmt::Debug for Page<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("entries", &self.entries)
            .field("revision", &self.revision)
            .field("remaining", &self.remaining)
            .finish()
    }
}

/// An entry that is compared, ordered and hashed by its key, so that collections hold the key only once.
pub(crate) struct ByKey<V>(pub(crate) Arc<Entry<V>>);

impl<V> Borrow<str> for ByKey<V> {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

impl<V> PartialEq for ByKey<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl<V> Eq for ByKey<V> {}

impl<V> PartialOrd for ByKey<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V> Ord for ByKey<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl<V> Hash for ByKey<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // `Borrow<str>` demands the hash of the string slice.
        str::hash(&self.0.key, state);
    }
}
