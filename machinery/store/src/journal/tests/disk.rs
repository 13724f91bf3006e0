//! A disk in memory that breaks when it is told to, and forgets what was not synced.

use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use redb::StorageBackend;

#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What a crash cannot take away.
    durable: Vec<u8>,
    /// What a reader sees.
    live: Vec<u8>,
    unsynced: Vec<Change>,
    operations: u64,
    syncs: u64,
    /// The operation that fails, and with it all that come after it.
    breaks_at: Option<u64>,
    held: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Write(at, data) => {
                if bytes.len() < at + data.len() {
                    bytes.resize(at + data.len(), 0);
                }
                bytes[*at..at + data.len()].copy_from_slice(data);
            }
        }
    }
}

/// A small generator of numbers, so that every run is the same.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

impl Disk {
    /// Breaks at the n-th operation from now.
    pub(super) fn break_after(&self, operations: u64) {
        let mut state = self.0.state.lock();
        state.breaks_at = Some(state.operations + operations);
    }

    /// Lets no sync end until [`Disk::release`].
    pub(super) fn hold(&self) {
        self.0.state.lock().held = true;
    }

    pub(super) fn release(&self) {
        self.0.state.lock().held = false;
        self.0.released.notify_all();
    }

    pub(super) fn operations(&self) -> u64 {
        self.0.state.lock().operations
    }

    pub(super) fn syncs(&self) -> u64 {
        self.0.state.lock().syncs
    }

    /// What the disk holds after the power went: all that was synced, and of the rest some writes, some of them torn.
    pub(super) fn after_crash(&self, dice: &mut Dice) -> Self {
        let state = self.0.state.lock();
        let mut bytes = state.durable.clone();
        for change in &state.unsynced {
            match (change, dice.below(3)) {
                (_, 0) => {}
                (Change::Write(at, data), 1) => {
                    // Disks write sectors as a whole.
                    let sectors = (data.len() / 512) as u64;
                    let kept = dice.below(sectors + 1) as usize * 512;
                    Change::Write(*at, data[..kept].to_vec()).apply(&mut bytes);
                }
                (change, _) => change.apply(&mut bytes),
            }
        }
        let state = State {
            durable: bytes.clone(),
            live: bytes,
            ..State::default()
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            released: Condvar::new(),
        }))
    }
}

impl State {
    fn operate(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.breaks_at {
            Some(at) if self.operations >= at => Err(io::Error::other("the disk broke")),
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.state.lock().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.state.lock();
        let at = offset as usize;
        let found = state
            .live
            .get(at..at + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.operate()?;
        let change = Change::Length(len as usize);
        change.apply(&mut state.live);
        state.unsynced.push(change);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.state.lock();
        self.0.released.wait_while(&mut state, |state| state.held);
        state.operate()?;
        state.syncs += 1;
        state.durable = state.live.clone();
        state.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.state.lock();
        let result = state.operate();
        // The write that fails may have come through in part.
        let change = Change::Write(offset as usize, data.to_vec());
        if result.is_ok() {
            change.apply(&mut state.live);
        }
        state.unsynced.push(change);
        result
    }
}
