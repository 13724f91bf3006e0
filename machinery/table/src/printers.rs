//! The tables of the built-in kinds.
//!
//! Each file under `printers/` lists kinds with their columns and the function that fills a row, side by side.
//! A field that is missing prints as its API default, so that an object looks the same whether or not defaults
//! were written into it. All columns are always filled; hiding the wide ones is the client's part.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod core;
mod endpoints;
mod event;
mod networking;
mod node;
mod pod;
mod rbac;
mod rest;
mod service;
mod storage;

use jiff::Timestamp;
use machinery_value::Value;

use crate::age;
use crate::column::{CREATED_AT, Column, NAME};
use crate::view::{Context, at, name, row};

pub(crate) use pod::conditions as pod_conditions;

/// One kind: its columns and how a row is filled.
pub(crate) struct Kind {
    group: &'static str,
    kind: &'static str,
    columns: &'static [Column],
    cells: fn(&Value, Context<'_>) -> Vec<Value>,
}

/// All kinds that have a table of their own.
static KINDS: &[&[Kind]] = &[
    core::KINDS,
    pod::KINDS,
    service::KINDS,
    endpoints::KINDS,
    node::KINDS,
    event::KINDS,
    apps::KINDS,
    batch::KINDS,
    autoscaling::KINDS,
    networking::KINDS,
    rbac::KINDS,
    storage::KINDS,
    admission::KINDS,
    rest::KINDS,
];

/// The table of every other kind.
static PLAIN: Kind = Kind {
    group: "",
    kind: "",
    columns: &[NAME, CREATED_AT],
    cells: plain,
};

fn plain(object: &Value, _: Context<'_>) -> Vec<Value> {
    // A time that is not set prints as the zero time, not as a blank.
    let created = age::time_of(at(object, "metadata.creationTimestamp")).map_or_else(
        || "0001-01-01T00:00:00Z".to_owned(),
        |time| {
            Timestamp::from_second(time.as_second())
                .unwrap_or(time)
                .to_string()
        },
    );
    row![name(object), created]
}

impl Kind {
    /// The table of the kind. Versions of a kind share one, except that fields may lie elsewhere.
    pub(crate) fn find(group: &str, kind: &str) -> &'static Kind {
        KINDS
            .iter()
            .copied()
            .flatten()
            .find(|entry| entry.group == group && entry.kind == kind)
            .unwrap_or(&PLAIN)
    }

    pub(crate) fn columns(&self) -> &'static [Column] {
        self.columns
    }

    pub(crate) fn cells(&self, version: &str, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.cells)(object, Context { version, now })
    }

    /// Whether this is the table of a kind that has none of its own.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind.is_empty()
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }
}

/// The columns of the table of a kind; `Name` and `Created At` for kinds that have no table of their own.
pub fn columns(group: &str, _version: &str, kind: &str) -> &'static [Column] {
    Kind::find(group, kind).columns()
}

/// The row of one object, a cell for each column.
pub fn cells(group: &str, version: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    Kind::find(group, kind).cells(version, object, now)
}

#[cfg(test)]
mod tests;
