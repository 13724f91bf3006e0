//! The writer thread of a durable store: it takes whatever waits, puts it on disk with one sync, and publishes it.
//!
//! While it waits for the disk, the next batch collects, and when many write it waits a moment for more (`pace`). If the disk fails, it fails everything that waits and ends:
//! after that nothing can be accepted, because nobody knows what the disk holds.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::MutexGuard;

use crate::entry::Record;
use crate::error::JournalFailure;
use crate::intake::{Accepted, Intake, RESERVE};
use crate::journal::Journal;
use crate::pace::Pace;
use crate::store::Shared;

pub(crate) fn spawn<V: Record>(shared: Arc<Shared<V>>, journal: Journal) -> io::Result<()> {
    thread::Builder::new()
        .name("store-journal".into())
        .spawn(move || run(shared, journal))
        .map(drop)
}

fn run<V: Record>(shared: Arc<Shared<V>>, mut journal: Journal) {
    let last_words = LastWords(&shared);
    let result = journal.check_pages().inspect_err(|failure| shared.fail(failure));
    let result = result.and_then(|()| write_batches(&shared, &mut journal));
    if let Err(failure) = &result {
        tracing::error!(error = %failure, "the journal failed");
    }
    let last = result.is_ok().then(|| shared.intake.lock().last);
    journal.close(last);
    drop(last_words);
}

/// Says that the thread is gone, also if it panics: nobody may wait for it for ever.
struct LastWords<'a, V: Record>(&'a Shared<V>);

impl<V: Record> Drop for LastWords<'_, V> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(&JournalFailure("its thread panicked".into()));
        }
        self.0.writer_gone();
    }
}

/// Runs until the store is closed and everything accepted is on disk.
fn write_batches<V: Record>(shared: &Shared<V>, journal: &mut Journal) -> Result<(), JournalFailure> {
    let mut pace = Pace::new();
    loop {
        let (batch, ceiling) = {
            let mut intake = shared.intake.lock();
            linger(shared, &mut intake, &pace);
            while intake.batch.is_empty() && !intake.runs_low() {
                if intake.halt.is_some() {
                    return Ok(());
                }
                shared.work.wait(&mut intake);
            }
            (std::mem::take(&mut intake.batch), intake.last + RESERVE)
        };
        pace.took(batch.len());
        match journal.commit(batch.iter().map(|write| &*write.event), ceiling) {
            Ok(()) => acknowledge(shared, batch, ceiling),
            Err(failure) => {
                // Told before the writers of this batch, so that whoever of them tries again fails too.
                shared.fail(&failure);
                for write in batch {
                    let _ = write.ack.send(Err(failure.clone()));
                }
                return Err(failure);
            }
        }
    }
}

/// Waits until so many writes are there, for a moment at most.
fn linger<V: Record>(shared: &Shared<V>, intake: &mut MutexGuard<'_, Intake<V>>, pace: &Pace) {
    let expected = pace.expected();
    if expected == 1 {
        return;
    }
    let until = Instant::now() + pace.patience();
    intake.expected = expected;
    while intake.batch.len() < expected && intake.halt.is_none() && !intake.runs_low() {
        if shared.work.wait_until(intake, until).timed_out() {
            break;
        }
    }
    intake.expected = 1;
}

fn acknowledge<V: Record>(shared: &Shared<V>, batch: Vec<Accepted<V>>, ceiling: u64) {
    shared.publish(batch.iter().map(|write| &write.event));
    {
        let mut intake = shared.intake.lock();
        intake.ceiling = ceiling;
        for write in &batch {
            intake.published(&write.event);
        }
    }
    for write in batch {
        // A writer that went away does not need to know.
        let _ = write.ack.send(Ok(()));
    }
    shared.advanced.notify_waiters();
}
