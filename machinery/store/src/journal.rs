//! The durable side of a store: a redb file with one row for each entry, changed by one transaction for each batch.
//!
//! What always holds: a committed batch is on disk as a whole, with a summary that says how many rows there are and
//! what they add up to, so that a file which lost, kept or changed a row by accident is noticed when it is opened.
//! After a failure, or where the content is in doubt, nothing is written to the file any more.
//!
//! What it cannot notice: a file that was not closed properly *and* whose newest batch was damaged afterwards looks like
//! one whose newest batch was being written when the power went. The engine then goes back to the batch before.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, StorageBackend, Table, TableDefinition, TableHandle};

use crate::entry::{ByKey, Event, Kind, Record};
use crate::error::{JournalFailure, OpenError};
use crate::store::FIRST_REVISION;

mod backend;
mod file;
mod format;
mod held;
mod load;
mod problem;
#[cfg(test)]
mod tests;

use backend::{Guarded, Switch};
use format::{Id, Summary};
use problem::Problem;

const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");
/// The rows of `meta`. The first of them keeps its name and shape for ever.
const FORMAT: &[u8] = b"format";
const ID: &[u8] = b"id";
const SUMMARY: &[u8] = b"summary";

/// What a file held when it was opened.
pub(crate) struct Loaded<V> {
    pub(crate) entries: BTreeSet<ByKey<V>>,
    /// No revision up to this one is given again.
    pub(crate) revision: u64,
    /// The revision of the newest write.
    pub(crate) last_write: u64,
    /// The size of all keys and values.
    pub(crate) bytes: u64,
}

pub(crate) struct Journal {
    db: Database,
    switch: Switch,
    id: Id,
    summary: Summary,
    /// Where rows are put together.
    row: Vec<u8>,
}

impl Journal {
    /// Opens or creates the store in this file.
    pub(crate) fn open<V: Record>(path: &Path, cache_bytes: usize) -> Result<(Self, Loaded<V>), OpenError> {
        file::open(path, cache_bytes).map_err(|problem| problem.at(path))
    }

    /// Opens the store in a backend, or makes one there if it is empty.
    pub(crate) fn open_backend<V: Record>(
        backend: impl StorageBackend,
        cache_bytes: usize,
    ) -> Result<(Self, Loaded<V>), Problem> {
        let file: Arc<dyn StorageBackend> = Arc::new(backend);
        let (backend, switch) = Guarded::new(file.clone());
        let db = guarded(|| {
            let repairing = switch.clone();
            let mut builder = Database::builder();
            builder
                .set_cache_size(cache_bytes)
                .set_repair_callback(move |_| repairing.note_pages_checked());
            Ok(builder.create_with_backend(backend)?)
        })?;
        let inspected = guarded(|| inspect(&db));
        let (id, summary, loaded) = match inspected {
            Ok(inspected) => inspected,
            Err(problem) => {
                if problem.is_damage() {
                    switch.stop_writing();
                }
                drop_quietly(db);
                return Err(problem);
            }
        };
        if let Err(error) = switch.let_through(&*file) {
            switch.stop_writing();
            drop_quietly(db);
            return Err(error.into());
        }
        let journal = Self {
            db,
            switch,
            id,
            summary,
            row: Vec::new(),
        };
        Ok((journal, loaded))
    }

    /// Checks what opening leaves out because readers do not depend on it: whether the engine's map of free pages is
    /// right. A wrong one would let later writes overwrite records, so this comes before the first of them.
    pub(crate) fn check_pages(&mut self) -> Result<(), JournalFailure> {
        guarded(|| self.try_check_pages()).map_err(|problem| self.stop(&problem))
    }

    fn try_check_pages(&mut self) -> Result<(), Problem> {
        // The engine has made the map of a file anew that was not closed properly.
        if !self.switch.pages_are_checked() && !self.db.check_integrity()? {
            tracing::warn!("the store's map of free pages was wrong and was made anew from its pages");
        }
        // Once is enough.
        self.switch.note_pages_checked();
        Ok(())
    }

    /// Brings events to the disk, all or none of them, and reserves the revisions up to `ceiling`.
    pub(crate) fn commit<'a, V: Record>(
        &mut self,
        events: impl Iterator<Item = &'a Event<V>>,
        ceiling: u64,
    ) -> Result<(), JournalFailure> {
        self.transact_or_stop(ceiling, |objects, summary, row| {
            for event in events {
                let key = event.entry.key.as_bytes();
                let before = match event.kind {
                    Kind::Put => {
                        summary.add(format::encode_row(&event.entry, row));
                        objects.insert(key, row.as_slice())?
                    }
                    Kind::Delete => objects.remove(key)?,
                };
                if let Some(before) = before {
                    summary.subtract(format::row_checksum(before.value())?);
                }
                summary.revision = event.revision;
            }
            Ok(())
        })
    }

    /// Closes the file. Given the newest revision that was used, leaves it so that the next open skips none and has
    /// nothing to repair.
    pub(crate) fn close(mut self, last: Option<u64>) {
        if let Some(last) = last
            && let Err(failure) = self.transact_or_stop(last, |_, _, _| Ok(()))
        {
            // Every write is on disk already; the next open has more to do.
            tracing::warn!(error = %failure, "the store was not closed properly");
        }
        drop_quietly(self.db);
    }

    /// Gives room in the file back that its content does not need.
    fn compact(&mut self) -> Result<(), Problem> {
        guarded(|| {
            self.try_check_pages()?;
            Ok(self.db.compact().map(drop)?)
        })
    }

    fn transact_or_stop(
        &mut self,
        ceiling: u64,
        change: impl FnOnce(&mut Objects<'_>, &mut Summary, &mut Vec<u8>) -> Result<(), Problem>,
    ) -> Result<(), JournalFailure> {
        guarded(|| self.transact(ceiling, change)).map_err(|problem| self.stop(&problem))
    }

    fn stop(&self, problem: &Problem) -> JournalFailure {
        self.switch.stop_writing();
        JournalFailure(problem.to_string().into())
    }

    fn transact(
        &mut self,
        ceiling: u64,
        change: impl FnOnce(&mut Objects<'_>, &mut Summary, &mut Vec<u8>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut summary = Summary {
            ceiling,
            ..self.summary
        };
        let mut write = self.db.begin_write()?;
        write.set_durability(Durability::Immediate)?;
        {
            change(&mut write.open_table(OBJECTS)?, &mut summary, &mut self.row)?;
            write
                .open_table(META)?
                .insert(SUMMARY, summary.encode(&self.id).as_slice())?;
        }
        write.commit()?;
        self.summary = summary;
        Ok(())
    }
}

type Objects<'txn> = Table<'txn, &'static [u8], &'static [u8]>;

/// Reads and checks a database; makes it a store if nothing was ever written there.
fn inspect<V: Record>(db: &Database) -> Result<(Id, Summary, Loaded<V>), Problem> {
    if is_blank(db)? {
        initialise(db)?;
    }
    read_all(db)
}

/// Whether nothing was ever written here.
fn is_blank(db: &Database) -> Result<bool, Problem> {
    let read = db.begin_read()?;
    let tables: Vec<String> = read.list_tables()?.map(|table| table.name().to_owned()).collect();
    if tables.iter().any(|name| name == META.name()) {
        return Ok(false);
    }
    if tables.is_empty() && read.list_multimap_tables()?.next().is_none() {
        return Ok(true);
    }
    Err(Problem::NotAStore(format!(
        "it is a database of something else, with tables {tables:?}"
    )))
}

fn initialise(db: &Database) -> Result<(), Problem> {
    let id: Id = *uuid::Uuid::new_v4().as_bytes();
    let write = db.begin_write()?;
    {
        write.open_table(OBJECTS)?;
        let mut meta = write.open_table(META)?;
        meta.insert(FORMAT, format::VERSION.to_le_bytes().as_slice())?;
        meta.insert(ID, id.as_slice())?;
        meta.insert(SUMMARY, Summary::new(FIRST_REVISION).encode(&id).as_slice())?;
    }
    Ok(write.commit()?)
}

/// Reads and checks everything.
fn read_all<V: Record>(db: &Database) -> Result<(Id, Summary, Loaded<V>), Problem> {
    let read = db.begin_read()?;
    let meta = read.open_table(META)?;
    let cell = |name: &[u8]| -> Result<Vec<u8>, Problem> {
        let missing = || Problem::Damaged(format!("its {} is missing", String::from_utf8_lossy(name)));
        Ok(meta.get(name)?.ok_or_else(missing)?.value().to_vec())
    };
    format::check_version(&cell(FORMAT)?)?;
    let id = cell(ID)?
        .try_into()
        .map_err(|_| Problem::Damaged("its id has the wrong size".into()))?;
    let summary = Summary::decode(&cell(SUMMARY)?, &id)?;

    let mut found = Summary {
        count: 0,
        digest: 0,
        ..summary
    };
    let mut bytes = 0;
    let mut entries = Vec::new();
    for row in load::read_rows::<V>(&read.open_table(OBJECTS)?)? {
        bytes += (row.entry.key.len() + row.entry.value.bytes().len()) as u64;
        found.add(row.checksum);
        entries.push(ByKey(Arc::new(row.entry)));
    }
    if found != summary {
        return Err(Problem::Damaged(format!(
            "it holds {} records where {} were written, or other ones",
            found.count, summary.count
        )));
    }
    // Rows come in key order: this is one pass, and leaves a dense tree.
    let entries = entries.into_iter().collect();
    Ok((
        id,
        summary,
        Loaded {
            entries,
            revision: summary.ceiling,
            last_write: summary.revision,
            bytes,
        },
    ))
}

/// Runs the engine. It asserts what it expects of its pages, and a damaged file can break that.
fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied());
        Err(Problem::Damaged(format!(
            "the storage engine stopped: {}",
            text.unwrap_or("no reason given")
        )))
    })
}

/// Closes the engine. If it panics at that, the next open has to repair, and nothing else is lost.
fn drop_quietly(db: Database) {
    let _ = catch_unwind(AssertUnwindSafe(move || drop(db)));
}
