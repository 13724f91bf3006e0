//! A storage backend that can be told to write nothing more.
//!
//! The engine writes when it is closed. That must not happen to a file whose content is in doubt: it is left as it is
//! for whoever wants to look at it.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{BackendError, StorageBackend};

#[derive(Debug)]
pub(super) struct Guarded {
    inner: Box<dyn StorageBackend>,
    switch: Switch,
}

/// What a store knows of its backend, and can tell it.
#[derive(Clone, Debug, Default)]
pub(super) struct Switch(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    stopped: AtomicBool,
    pages_checked: AtomicBool,
}

impl Switch {
    pub(super) fn stop_writing(&self) {
        self.0.stopped.store(true, Ordering::Release);
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
    pub(super) fn new(backend: impl StorageBackend) -> (Self, Switch) {
        let switch = Switch::default();
        (
            Self {
                inner: Box::new(backend),
                switch: switch.clone(),
            },
            switch,
        )
    }
}

impl StorageBackend for Guarded {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.switch.check()?;
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.switch.check()?;
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.switch.check()?;
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
