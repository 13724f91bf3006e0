//! Does a cluster satisfy a policy? A ConfigurationPolicy names objects that must be there, or must not; here they are compared
//! with what is there.
//!
//! ```text
//! Policy ─▶ [replica] ─▶ ConfigurationPolicy ─▶ [rules] ─▶ [judge] ─▶ remedies, which the caller tries or carries out
//!                                                                         │
//!                     Policy.status ◀─ [replica] ◀─ status ◀─ [status] ◀──┘
//! ```
//!
//! What always holds: nothing is applied that wants to be worked out first, nothing is deleted for lack of an answer, and the
//! same objects give the same status, so that a second look writes nothing.

pub mod compare;
pub mod diff;
pub mod judge;
pub mod known;
pub mod merge;
pub mod namespaces;
pub mod objects;
pub mod replica;
pub mod rules;
pub mod status;
pub mod words;

pub use judge::{Judged, Objects, Remedy, Served, Standing, Subject, judge, made, status_fits};
pub use known::Known;
pub use objects::is_same;
pub use rules::{Compliance, Difference, Every, Fault, Prune, Recreate, Rules, Template};
pub use status::{Concluded, Evaluated, Outcome, Unpruned, conclude, passing_since};
