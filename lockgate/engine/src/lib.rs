//! The decisions of the pipeline. No I/O, no clock, no randomness: state and time come in, a decision with its reasons
//! comes out, so that the same code acts, previews, explains and is tested in microseconds.
//!
//! ```text
//! template ─▶ claim ─▶ place ─▶ render ─▶ gate ─▶ dispatch ─▶ member cluster
//!                                                                 │
//!              template.status ◀─ binding.status ◀─ Work.status ◀─ observe
//! ```
//!
//! One module for each station, and what they share: [`object`] reads untyped objects, [`selector`] matches selectors.
//! [`failover`] says which clusters a workload must leave. [`pending`] tells those who look what waits, and what it would do.
//! [`placement`] decides which clusters the placements of Open Cluster Management select, [`governance`] what its policies are
//! on each of them, and [`comply`] whether a cluster satisfies a policy.

pub mod claim;
pub mod cluster;
pub mod comply;
pub mod dependencies;
pub mod dispatch;
pub mod failover;
pub mod gate;
pub mod gates;
pub mod governance;
pub mod interpret;
pub mod object;
pub mod observe;
pub mod pending;
pub mod place;
pub mod placement;
#[cfg(test)]
mod properties;
pub mod render;
pub mod selector;

pub use gates::Gates;
pub use object::TemplateId;
