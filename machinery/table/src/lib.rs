//! Tables: the columns that kubectl prints, for built-in kinds and CRDs.
//!
//! A client asks for `as=Table;v=v1;g=meta.k8s.io` and gets, instead of objects, rows of cells with the columns
//! they stand under. Which columns a kind has and what each cell says is fixed by the API, to the letter: people
//! read them, and scripts cut them apart.
//!
//! Everything here is pure: an object goes in, with the current time, and JSON comes out. Nothing fails. A field
//! of an unexpected type reads as if it were not set.

pub mod age;
mod column;
mod crd;
mod gotext;
mod printers;
mod table;
mod view;

pub use column::Column;
pub use crd::CustomColumns;
pub use printers::{cells, columns};
pub use table::{
    IncludeObject, ListMeta, Printer, TableBuilder, list_table, object_table, partial_object_metadata,
    partial_object_metadata_list,
};
