//! A storage backend that writes nothing before it is told to, and nothing after it is told to stop.
//!
//! The engine writes when it is opened and when it is closed. Neither must happen to a file whose content is in doubt: it
//! is left as it is for whoever wants to look at it.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};

use super::held::Held;

#[derive(Debug)]
pub(super) struct Guarded {
    inner: Arc<dyn StorageBackend>,
    switch: Switch,
}

/// What a store knows of its backend, and can tell it.
#[derive(Clone, Debug, Default)]
pub(super) struct Switch(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    /// Writes wait until the content is known to be good; none once they have been let through.
    held: Mutex<Option<Held>>,
    /// The same without the lock.
    through: AtomicBool,
    stopped: AtomicBool,
    pages_checked: AtomicBool,
}

impl Switch {
    pub(super) fn stop_writing(&self) {
        self.0.stopped.store(true, Ordering::Release);
    }

    /// Lets through what was held back, and everything from now on.
    pub(super) fn let_through(&self, inner: &dyn StorageBackend) -> io::Result<()> {
        let mut held = self.0.held.lock();
        if let Some(held) = held.take() {
            held.flush(inner)?;
        }
        self.0.through.store(true, Ordering::Release);
        Ok(())
    }

    /// Does something with what is held back; none if nothing is any more.
    fn with_held<T>(&self, work: impl FnOnce(&mut Held) -> T) -> Option<T> {
        if self.0.through.load(Ordering::Acquire) {
            return None;
        }
        self.0.held.lock().as_mut().map(work)
    }

    pub(super) fn note_pages_checked(&self) {
        self.0.pages_checked.store(true, Ordering::Release);
    }

    pub(super) fn pages_are_checked(&self) -> bool {
        self.0.pages_checked.load(Ordering::Acquire)
    }

    fn check(&self) -> io::Result<()> {
        if self.0.stopped.load(Ordering::Acquire) {
            return Err(io::Error::other("the store has stopped writing"));
        }
        Ok(())
    }
}

impl Guarded {
    pub(super) fn new(inner: Arc<dyn StorageBackend>) -> (Self, Switch) {
        let switch = Switch::default();
        *switch.0.held.lock() = Some(Held::default());
        let backend = Self {
            inner,
            switch: switch.clone(),
        };
        (backend, switch)
    }
}

impl StorageBackend for Guarded {
    fn len(&self) -> io::Result<u64> {
        let held = self.switch.with_held(|held| held.len(&*self.inner));
        held.unwrap_or_else(|| self.inner.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let held = self.switch.with_held(|held| held.read(&*self.inner, offset, out));
        match held {
            Some(read) => read,
            None => self.inner.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.switch.check()?;
        match self.switch.with_held(|held| held.set_len(len)) {
            Some(()) => Ok(()),
            None => self.inner.set_len(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.switch.check()?;
        match self.switch.with_held(Held::sync) {
            Some(()) => Ok(()),
            None => self.inner.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.switch.check()?;
        let held = self.switch.with_held(|held| {
            let room = held.has_room(data.len());
            if room {
                held.write(offset, data);
            }
            room
        });
        if held == Some(true) {
            return Ok(());
        }
        self.switch.let_through(&*self.inner)?;
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
