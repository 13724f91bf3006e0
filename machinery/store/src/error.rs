//! Everything that can go wrong, each with its own name and a text that says what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::{Entry, Record};

/// Why a read or a watch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The history no longer reaches back to the revision.
    #[error(
        "revision {requested} is no longer known: history starts at {oldest} and the store is at {current}; list again"
    )]
    Compacted {
        /// The revision that was asked for.
        requested: u64,
        /// The oldest revision that can still be read or watched from.
        oldest: u64,
        /// The newest published revision.
        current: u64,
    },
    /// The revision has not happened yet.
    #[error("revision {requested} has not happened yet: the store is at {current}")]
    Future {
        /// The revision that was asked for.
        requested: u64,
        /// The newest published revision.
        current: u64,
    },
}

/// Why the journal of a durable store stopped. From then on every write fails with it; reads go on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the journal failed and the store takes no more writes until it is opened again: {0}")]
pub struct JournalFailure(pub(crate) Arc<str>);

/// Why a write was not made.
#[derive(thiserror::Error)]
pub enum WriteError<V: Record> {
    /// The key is not as expected. Holds what it is now.
    #[error("the key was changed meanwhile: {}", described(.0.as_deref()))]
    Conflict(Option<Arc<Entry<V>>>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The disk failed. Whether the write reached it shows when the store is opened again; it was never visible.
    #[error(transparent)]
    Io(JournalFailure),
    /// The key or the value is too large to be kept.
    #[error("the {what} has {bytes} bytes, more than the {limit} that the store keeps")]
    TooLarge {
        /// `key` or `value`.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
}

// By hand, because values need not be `Debug`.
impl<V: Record> fmt::Debug for WriteError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(current) => f.debug_tuple("Conflict").field(current).finish(),
            Self::Closed => f.write_str("Closed"),
            Self::Io(failure) => f.debug_tuple("Io").field(failure).finish(),
            Self::TooLarge { what, bytes, limit } => f
                .debug_struct("TooLarge")
                .field("what", what)
                .field("bytes", bytes)
                .field("limit", limit)
                .finish(),
        }
    }
}

fn described<V>(current: Option<&Entry<V>>) -> String {
    match current {
        None => "it does not exist".to_owned(),
        Some(entry) => format!("it is at revision {}", entry.revision),
    }
}

/// Why a durable store could not be opened. Nothing is ever repaired by guessing, and nothing is left out.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store in this one, has the file open.
    #[error("{} is in use by another process: stop that one, or choose another file", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "{} has store format {found}, and this version reads up to {supported}: \
         use the version that wrote it, or a newer one", path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// The file is in a format of the storage engine that this version does not read.
    #[error(
        "{} has engine format {found}, which this version does not read: use the version that wrote it", path.display()
    )]
    EngineFormat {
        /// The file.
        path: PathBuf,
        /// The engine's format of the file.
        found: u8,
    },
    /// The file as a whole is damaged.
    #[error("{} is damaged ({detail}): it was left alone; restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// One record is damaged.
    #[error("{} is damaged at key {key:?} ({detail}): it was left alone; restore it from a backup", path.display())]
    DamagedRecord {
        /// The file.
        path: PathBuf,
        /// The key of the record.
        key: String,
        /// What does not fit.
        detail: String,
    },
    /// A record is intact but its owner cannot read it.
    #[error(
        "{} holds a value at key {key:?} that this version cannot read ({detail}): use the version that wrote it",
        path.display()
    )]
    UnreadableValue {
        /// The file.
        path: PathBuf,
        /// The key of the record.
        key: String,
        /// What [`Record::decode`] said.
        detail: String,
    },
    /// The path names something else.
    #[error("{} is not a store ({detail}): choose another path, or move it away", path.display())]
    NotAStore {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },
    /// The file may not be read and written.
    #[error("no permission to read and write {}: give this user both, also on its directory", path.display())]
    PermissionDenied {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left for {}: free some and try again", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("failed to open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
