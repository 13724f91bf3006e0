//! An ordered, versioned, watchable key-value store; durable or in memory.
//!
//! The whole state lives in memory; a durable store also keeps it in a file, which is read once, when it is opened.
//!
//! ```text
//!   write ──► intake ──► batch ──► journal (one fsync) ──► state ──► watch queues
//!             checks the           durable stores only     what readers   one for each
//!             expectation,                                 see            watch
//!             gives a revision
//! ```
//!
//! What always holds:
//!
//! 1. Every write has its own revision; revisions only grow and no revision is given twice, not even after a crash.
//! 2. Readers and watchers see published writes only, in revision order. What is published is on disk.
//! 3. A write is acknowledged after it is published.
//! 4. A watch returns exactly the events of its prefix, each once, in revision order, until it is over.
//! 5. No reader and no watcher can hold up a writer for longer than a copy of references takes.
//! 6. Memory beyond the current state is bounded: the history by [`Options`], each watch by its buffer.
//!
//! The store knows nothing of what it keeps: values are [`Record`]s, which are bytes that can be read back.
//!
//! ```
//! # use bytes::Bytes;
//! # use machinery_store::{Change, Expect, Next, Record, Store};
//! struct Text(Bytes);
//!
//! impl Record for Text {
//!     fn bytes(&self) -> &Bytes {
//!         &self.0
//!     }
//!     fn decode(bytes: Bytes) -> Result<Self, String> {
//!         Ok(Self(bytes))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::memory();
//! let (_, mut watch) = store.list_and_watch("/pods/", 100);
//! let change = Change::put(|revision| Text(format!("made at {revision}").into()));
//! let written = store.write("/pods/default/web", Expect::Absent, change).await?;
//! let Next::Event(event) = watch.next().await else { unreachable!() };
//! assert_eq!((event.revision, &*event.entry.key), (written.revision, "/pods/default/web"));
//! # Ok(())
//! # }
//! ```

mod entry;
mod error;
mod history;
mod intake;
mod journal;
mod pace;
mod registry;
mod state;
mod store;
#[cfg(test)]
mod testing;
mod watch;
mod writer;

pub use entry::{Change, Entry, Event, Expect, Kind, MakeValue, Page, Range, Record, Written};
pub use error::{JournalFailure, OpenError, ReadError, WriteError};
pub use store::{Options, Store};
pub use watch::{From, Next, Watch};

/// The longest key that a write may name, in bytes.
pub const MAX_KEY_BYTES: usize = 4096;
/// The largest value that a write may store, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
