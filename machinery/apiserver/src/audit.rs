//! The audit log: what was asked, by whom, and how it ended, one `audit.k8s.io/v1` Event of level Metadata a line.
//!
//! ```text
//!   handle ─▶ Record ─── Trail: user, object, decision, policies ──▶ Event ─▶ AuditLog ─▶ writer
//!                └ in the body of a watch, until that ends
//! ```
//!
//! A [`Record`] goes along with a request and writes its line when it is dropped, so that a request whose client went away is
//! logged, too. Its [`Trail`] is handed to whoever has something to add. What follows from a trail is decided in `event`, without
//! a server.
//!
//! What always holds: without a log a request costs nothing more; with one it never waits for the disk.

mod event;
mod json;
mod log;
mod record;
mod trail;

pub use log::AuditLog;

pub(crate) use json::to_json;
pub(crate) use record::{Record, Remote};
pub(crate) use trail::Trail;
