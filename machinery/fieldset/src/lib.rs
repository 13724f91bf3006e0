//! Field ownership as kube-apiserver keeps it: who manages which field, for every write and for server-side apply.
//!
//! The layers, each of which knows only those before it:
//!
//! - [`path`] and [`set`]: a field, and a set of fields; [`codec`] is their JSON form, `FieldsV1`.
//! - [`shape`]: what a schema says about ownership: which maps and lists have parts that are owned apart.
//! - [`check`], [`extract`], [`compare`], [`merge`]: walks over values by their shape.
//! - [`managed`]: the list at `metadata.managedFields`.
//! - [`mod@update`], [`mod@apply`], [`scale`]: what the server calls, once for each write.
//!
//! What always holds: nothing here reads a clock or does I/O; sets are sorted, so equal input gives equal output;
//! walks are as deep as the value, which [`machinery_value::decode`] bounds, and no input makes them panic.

pub mod apply;
pub mod check;
pub mod codec;
pub mod compare;
pub mod extract;
pub mod managed;
pub mod merge;
pub mod path;
pub mod reset;
pub mod scale;
pub mod set;
pub mod shape;
pub mod update;

mod go;
mod last_applied;
mod reconcile;
mod value;

pub use apply::{Applied, ApplyError, Conflict, Conflicts, apply};
pub use managed::{ManagedFields, Time};
pub use path::{Path, PathElement};
pub use reset::Reset;
pub use set::FieldSet;
pub use shape::{Shape, Versions};
pub use update::{Write, keep_times, manager_name, update};
