//! Where lines go: a bounded buffer, and a thread that writes it.
//!
//! Nobody waits for the disk. Lines that find the buffer full, or that the disk refuses, are lost: a server that stood still
//! because its log does would be worse off than one with a gap in it. The gap is counted, and told to whoever reads the
//! server's own log: when it begins, and how many lines it was when writing goes on.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How many bytes may wait while others are written: some ten thousand lines.
const ROOM: usize = 8 * 1024 * 1024;
/// What a buffer keeps for the next time.
const KEPT: usize = 64 * 1024;
/// How long a server that stops waits for its last lines.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

/// An audit log. Clones write to the same; its thread ends with the last one, after what was handed to it is written.
#[derive(Clone)]
pub struct AuditLog(Arc<Handle>);

struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.work.notify_one();
    }
}

struct Shared {
    state: Mutex<State>,
    /// There is something to write, or nothing ever again.
    work: Condvar,
    /// Something was written, or lost.
    settled: Condvar,
    room: usize,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// How many lines were taken in, and how many of those are written or lost.
    taken: u64,
    settled: u64,
    /// How many lines were lost in all, and how many of those nobody was told of.
    lost: u64,
    untold: u64,
    is_closed: bool,
}

impl State {
    /// Counts lost lines, and says so when they are the first.
    fn lose(&mut self, lines: u64, why: &dyn std::fmt::Display) {
        if self.untold == 0 && lines > 0 {
            tracing::warn!(%why, "lines of the audit log are lost");
        }
        self.lost += lines;
        self.untold += lines;
    }
}

impl AuditLog {
    /// A log in a file, which only its owner may read; what is in it already stays.
    pub fn append(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .open(path)?;
        // A process that was killed may have left half a line.
        let mut last = [b'\n'];
        if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Self::with(file, last != *b"\n", ROOM)
    }

    /// A log that goes anywhere.
    pub fn to(writer: impl Write + Send + 'static) -> io::Result<Self> {
        Self::with(writer, false, ROOM)
    }

    fn with(mut writer: impl Write + Send + 'static, is_torn: bool, room: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            settled: Condvar::new(),
            room,
        });
        let its = shared.clone();
        std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || run(&its, &mut writer, is_torn))?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Hands a line over; it ends with a newline.
    pub(crate) fn write(&self, line: &[u8]) {
        let Shared {
            state, work, room, ..
        } = &*self.0.0;
        let mut state = state.lock();
        if state.waiting.len() + line.len() > *room {
            return state.lose(1, &"it is not written as fast as it grows");
        }
        state.waiting.extend_from_slice(line);
        state.taken += 1;
        drop(state);
        work.notify_one();
    }

    /// Waits until everything that was handed over is written or lost, at most ten seconds. Returns whether it is.
    pub async fn flush(&self) -> bool {
        let log = self.clone();
        let flushed = tokio::task::spawn_blocking(move || log.flush_within(FLUSH_WITHIN)).await;
        flushed.unwrap_or(false)
    }

    fn flush_within(&self, time: Duration) -> bool {
        let Shared { state, settled, .. } = &*self.0.0;
        let mut state = state.lock();
        let taken = state.taken;
        let waited = settled.wait_while_for(&mut state, |state| state.settled < taken, time);
        !waited.timed_out()
    }

    /// How many lines were lost: the disk was full, or slower than the requests.
    pub fn lost(&self) -> u64 {
        self.0.0.state.lock().lost
    }
}

/// Writes what waits until there will be no more.
fn run(shared: &Shared, writer: &mut dyn Write, mut is_torn: bool) {
    let mut batch = Vec::new();
    loop {
        let lines = {
            let mut state = shared.state.lock();
            shared
                .work
                .wait_while(&mut state, |state| state.waiting.is_empty() && !state.is_closed);
            if state.waiting.is_empty() {
                return;
            }
            std::mem::swap(&mut state.waiting, &mut batch);
            state.taken - state.settled
        };
        let result = write_out(writer, &batch, &mut is_torn);
        let mut state = shared.state.lock();
        match result {
            Ok(()) if state.untold > 0 => {
                let lost = std::mem::take(&mut state.untold);
                tracing::warn!(lost, "the audit log has a gap of so many lines");
            }
            Ok(()) => {}
            Err((lost, error)) => state.lose(lost, &error),
        }
        state.settled += lines;
        drop(state);
        shared.settled.notify_all();
        batch.clear();
        batch.shrink_to(KEPT);
    }
}

/// Writes whole lines. If it cannot, says how many of them are missing, and whether half a line is there.
fn write_out(writer: &mut dyn Write, batch: &[u8], is_torn: &mut bool) -> Result<(), (u64, io::Error)> {
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    if *is_torn {
        writer.write_all(b"\n").map_err(|error| (lines(batch), error))?;
        *is_torn = false;
    }
    let mut rest = batch;
    while !rest.is_empty() {
        let error = match writer.write(rest) {
            Ok(0) => io::Error::from(io::ErrorKind::WriteZero),
            Ok(written) => {
                rest = &rest[written..];
                *is_torn = batch[batch.len() - rest.len() - 1] != b'\n';
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        return Err((lines(rest), error));
    }
    writer.flush().map_err(|error| (0, error))
}

#[cfg(test)]
mod tests;
