//! How entries and the summary look on disk. All numbers are little-endian.
//!
//! ```text
//! row of objects   key -> format 1 · created 8 · revision 8 · checksum 16 · value
//! summary          revision 8 · ceiling 8 · count 8 · digest 16 · checksum 16
//! ```
//!
//! A checksum is the first half of a BLAKE3 hash and covers the key too, so that a value cannot be taken for that of
//! another key. The digest is the sum of the checksums of all rows.

use bytes::Bytes;

use super::problem::Problem;
use crate::entry::{Entry, Record};

/// The newest store format that this version reads, and the one that it writes.
pub(super) const VERSION: u32 = 1;

const ROW_FORMAT: u8 = 1;
const CHECKSUM_AT: usize = 17;
const VALUE_AT: usize = CHECKSUM_AT + 16;
const SUMMARY_FIELDS: usize = 40;

/// The random name of a store, which makes the summary of one store invalid in another.
pub(super) type Id = [u8; 16];
pub(super) type Checksum = [u8; 16];

/// What must be true of the rows as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// The revision of the newest write.
    pub(super) revision: u64,
    /// The newest revision that may have been given to a write, successful or not.
    pub(super) ceiling: u64,
    pub(super) count: u64,
    pub(super) digest: u128,
}

impl Summary {
    pub(super) fn new(revision: u64) -> Self {
        Self {
            revision,
            ceiling: revision,
            count: 0,
            digest: 0,
        }
    }

    pub(super) fn add(&mut self, row: Checksum) {
        self.count = self.count.wrapping_add(1);
        self.digest = self.digest.wrapping_add(u128::from_le_bytes(row));
    }

    pub(super) fn subtract(&mut self, row: Checksum) {
        self.count = self.count.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(u128::from_le_bytes(row));
    }

    pub(super) fn encode(&self, id: &Id) -> Vec<u8> {
        let mut cell = Vec::with_capacity(SUMMARY_FIELDS + 16);
        cell.extend_from_slice(&self.revision.to_le_bytes());
        cell.extend_from_slice(&self.ceiling.to_le_bytes());
        cell.extend_from_slice(&self.count.to_le_bytes());
        cell.extend_from_slice(&self.digest.to_le_bytes());
        let checksum = checksum(&[id, &cell]);
        cell.extend_from_slice(&checksum);
        cell
    }

    pub(super) fn decode(cell: &[u8], id: &Id) -> Result<Self, Problem> {
        let damaged = || Problem::Damaged("its summary does not match its checksum".into());
        let (fields, sum) = cell.split_at_checked(SUMMARY_FIELDS).ok_or_else(damaged)?;
        if sum != checksum(&[id, fields]) {
            return Err(damaged());
        }
        let field = |at: usize| array(fields, at).map(u64::from_le_bytes).ok_or_else(damaged);
        let digest = array(fields, 24).map(u128::from_le_bytes).ok_or_else(damaged)?;
        let summary = Self {
            revision: field(0)?,
            ceiling: field(8)?,
            count: field(16)?,
            digest,
        };
        if summary.ceiling < summary.revision {
            return Err(Problem::Damaged("its summary contradicts itself".into()));
        }
        Ok(summary)
    }
}

pub(super) fn check_version(cell: &[u8]) -> Result<(), Problem> {
    let version = cell.try_into().map(u32::from_le_bytes);
    match version {
        Ok(VERSION) => Ok(()),
        Ok(newer) if newer > VERSION => Err(Problem::NewerFormat(newer)),
        _ => Err(Problem::Damaged("its format version is unreadable".into())),
    }
}

/// Writes the row of an entry into `row` and returns its checksum.
pub(super) fn encode_row<V: Record>(entry: &Entry<V>, row: &mut Vec<u8>) -> Checksum {
    let value = entry.value.bytes();
    row.clear();
    row.reserve(VALUE_AT + value.len());
    row.push(ROW_FORMAT);
    row.extend_from_slice(&entry.created.to_le_bytes());
    row.extend_from_slice(&entry.revision.to_le_bytes());
    let checksum = row_sum(entry.key.as_bytes(), row, value);
    row.extend_from_slice(&checksum);
    row.extend_from_slice(value);
    checksum
}

/// A row that is what was written under its key.
pub(super) struct Row<V> {
    pub(super) entry: Entry<V>,
    pub(super) checksum: Checksum,
}

/// Reads a row back, if it is what was written under this key.
pub(super) fn decode_row<V: Record>(key: &[u8], row: &[u8]) -> Result<Row<V>, Problem> {
    let too_short = || damaged(key, "it ends too early");
    let (head, value) = row.split_at_checked(VALUE_AT).ok_or_else(too_short)?;
    let checksum = row_checksum(head)?;
    if checksum != row_sum(key, &head[..CHECKSUM_AT], value) {
        return Err(damaged(key, "it does not match its checksum"));
    }
    if head[0] != ROW_FORMAT {
        return Err(damaged(key, "it has an unknown format"));
    }
    let number = |at| array(head, at).map(u64::from_le_bytes).ok_or_else(too_short);
    let (created, revision) = (number(1)?, number(9)?);
    let key = std::str::from_utf8(key).map_err(|_| damaged(key, "its key is not text"))?;
    // The value gets memory of its own, so that nothing but the value is kept.
    match V::decode(Bytes::copy_from_slice(value)) {
        Ok(value) => Ok(Row {
            entry: Entry {
                key: key.into(),
                value,
                revision,
                created,
            },
            checksum,
        }),
        Err(detail) => Err(Problem::UnreadableValue {
            key: key.to_owned(),
            detail,
        }),
    }
}

fn damaged(key: &[u8], detail: &str) -> Problem {
    Problem::DamagedRecord {
        key: String::from_utf8_lossy(key).into_owned(),
        detail: detail.to_owned(),
    }
}

/// The checksum that a row carries.
pub(super) fn row_checksum(row: &[u8]) -> Result<Checksum, Problem> {
    array(row, CHECKSUM_AT).ok_or_else(|| Problem::Damaged("a record ends too early".into()))
}

fn row_sum(key: &[u8], head: &[u8], value: &[u8]) -> Checksum {
    // The length tells where the key ends.
    checksum(&[&(key.len() as u64).to_le_bytes(), key, head, value])
}

fn checksum(parts: &[&[u8]]) -> Checksum {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut half = [0; 16];
    half.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    half
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
