//! Reads, checks and decodes rows on two threads, one from each end of the table.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, ReadableTableMetadata, StorageError};

use super::format::{Row, decode_row};
use super::problem::Problem;
use crate::entry::Record;

/// How many rows a thread claims at a time. A table with fewer is read by one.
const CHUNK: u64 = 256;

pub(super) type Rows = ReadOnlyTable<&'static [u8], &'static [u8]>;
type RawRow<'a> = Result<(AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>), StorageError>;

/// Reads as many rows as the table says that it has, in key order; the first problem ends it.
pub(super) fn read_rows<V: Record>(table: &Rows) -> Result<Vec<Row<V>>, Problem> {
    let unclaimed = AtomicU64::new(table.len()?);
    if table.len()? <= CHUNK {
        return claim_rows(table.iter()?, &unclaimed);
    }
    thread::scope(|scope| {
        let back = scope.spawn(|| claim_rows(table.iter()?.rev(), &unclaimed));
        let front = claim_rows(table.iter()?, &unclaimed);
        let back = back.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (mut rows, back): (Vec<Row<V>>, Vec<Row<V>>) = (front?, back?);
        rows.extend(back.into_iter().rev());
        Ok(rows)
    })
}

/// Reads rows until all are claimed, or there are no more.
fn claim_rows<'a, V: Record>(
    mut rows: impl Iterator<Item = RawRow<'a>>,
    unclaimed: &AtomicU64,
) -> Result<Vec<Row<V>>, Problem> {
    let mut decoded = Vec::new();
    loop {
        let claim = |left: u64| Some(left.saturating_sub(CHUNK));
        let left = unclaimed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim)
            .unwrap_or_default();
        if left == 0 {
            return Ok(decoded);
        }
        for row in rows.by_ref().take(left.min(CHUNK) as usize) {
            let (key, row) = row?;
            decoded.push(decode_row(key.value(), row.value())?);
        }
    }
}
