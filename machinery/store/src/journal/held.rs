//! Writes that are held back while a file is looked at.
//!
//! The engine writes to a file as soon as it is opened: a mark that it is in use, and what a repair comes to. A file that
//! is then refused must be found as it was, so nothing reaches it before its content has been read.

use std::io;

use redb::StorageBackend;

/// More than any repair writes; a file that needs more is written to before it is known to be good.
const MAX_HELD: usize = 256 << 20;

/// What would have been written, in order.
#[derive(Debug, Default)]
pub(super) struct Held {
    len: Option<u64>,
    writes: Vec<(u64, Vec<u8>)>,
    /// The engine wanted everything before these writes to be on disk.
    syncs: Vec<usize>,
    bytes: usize,
}

impl Held {
    /// Whether there is room for so many more bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= MAX_HELD
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes += data.len();
        self.writes.push((offset, data.to_vec()));
    }

    pub(super) fn sync(&mut self) {
        self.syncs.push(self.writes.len());
    }

    /// What is cut off is gone: held writes behind the new end are dropped.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = Some(len);
        for (offset, data) in &mut self.writes {
            let kept = usize::try_from(len.saturating_sub(*offset)).unwrap_or(usize::MAX);
            data.truncate(kept);
        }
    }

    pub(super) fn len(&self, inner: &dyn StorageBackend) -> io::Result<u64> {
        self.len.map_or_else(|| inner.len(), Ok)
    }

    /// Reads what the file would hold.
    pub(super) fn read(&self, inner: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let within = inner.len()?.min(self.len(inner)?).saturating_sub(offset);
        let within = usize::try_from(within).unwrap_or(usize::MAX).min(out.len());
        let (there, new) = out.split_at_mut(within);
        if !there.is_empty() {
            inner.read(offset, there)?;
        }
        new.fill(0);
        let end = offset + out.len() as u64;
        for (at, data) in &self.writes {
            let (from, to) = ((*at).max(offset), (at + data.len() as u64).min(end));
            if from < to {
                let source = &data[(from - at) as usize..(to - at) as usize];
                out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }

    /// Writes everything to the file.
    pub(super) fn flush(self, inner: &dyn StorageBackend) -> io::Result<()> {
        if let Some(len) = self.len {
            inner.set_len(len)?;
        }
        let mut syncs = self.syncs.iter().peekable();
        for (index, (offset, data)) in self.writes.iter().enumerate() {
            if syncs.next_if(|at| **at <= index).is_some() {
                while syncs.next_if(|at| **at <= index).is_some() {}
                inner.sync_data()?;
            }
            inner.write(*offset, data)?;
        }
        if self.syncs.is_empty() {
            return Ok(());
        }
        inner.sync_data()
    }
}
