//! Checks and decodes rows on several threads, because that takes longer than reading them.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::format::{RawRow, Row};
use super::problem::Problem;
use crate::entry::Record;

/// How many rows are handed over at a time. A store with fewer is read without further threads.
const CHUNK: usize = 512;
/// How many chunks may wait for one thread.
const WAITING: usize = 4;
const MAX_THREADS: usize = 4;

/// Decodes rows and returns them in their order; the first problem ends it.
pub(super) fn decode_all<V: Record>(
    mut rows: impl Iterator<Item = Result<RawRow, Problem>>,
) -> Result<Vec<Row<V>>, Problem> {
    let first = next_chunk(&mut rows)?;
    if first.len() < CHUNK {
        return decode_chunk(first);
    }
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    thread::scope(|scope| {
        let (senders, workers): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (sender, chunks) = sync_channel(WAITING);
                (sender, scope.spawn(move || decode_chunks(&chunks)))
            })
            .unzip();
        let fed = feed(first, &mut rows, &senders);
        drop(senders);
        let mut decoded = Vec::with_capacity(threads);
        for worker in workers {
            let chunks: Vec<Vec<Row<V>>> = worker.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            decoded.push(chunks.into_iter());
        }
        fed?;
        // The chunks were dealt in turn and are gathered in turn.
        let mut rows = Vec::new();
        for turn in 0.. {
            let Some(chunk) = decoded[turn % threads].next() else {
                break;
            };
            rows.extend(chunk);
        }
        Ok(rows)
    })
}

fn feed(
    first: Vec<RawRow>,
    rows: &mut impl Iterator<Item = Result<RawRow, Problem>>,
    workers: &[SyncSender<Vec<RawRow>>],
) -> Result<(), Problem> {
    let mut chunk = first;
    for worker in workers.iter().cycle() {
        // A worker that is gone has found a problem, and says so itself.
        if chunk.is_empty() || worker.send(chunk).is_err() {
            break;
        }
        chunk = next_chunk(rows)?;
    }
    Ok(())
}

fn next_chunk(rows: &mut impl Iterator<Item = Result<RawRow, Problem>>) -> Result<Vec<RawRow>, Problem> {
    rows.take(CHUNK).collect()
}

fn decode_chunks<V: Record>(chunks: &Receiver<Vec<RawRow>>) -> Result<Vec<Vec<Row<V>>>, Problem> {
    chunks.iter().map(decode_chunk).collect()
}

fn decode_chunk<V: Record>(chunk: Vec<RawRow>) -> Result<Vec<Row<V>>, Problem> {
    chunk.into_iter().map(RawRow::decode).collect()
}
