//! The Kubernetes API as one `tower::Service`.
//!
//! ```text
//!   TLS ─┐                                            ┌─ create ─┐
//!        ├─▶ serve ─▶ authenticate ─▶ authorize ─▶ ops ┼─ update ─┼─▶ store ─▶ watches
//!   in  ─┘     │                                      ├─ delete ─┤     │
//! process      └─▶ discovery, openapi, reviews        └─ read    ┘     └─▶ indexes (roles, definitions, policies)
//! ```
//!
//! [`ApiServer`] is the whole of it. What always holds:
//!
//! 1. Every change of an object goes through `ops`: admission, validation and the rules of generation and
//!    finalizers hold for requests and for the server's own controllers alike.
//! 2. An answer to a write means that the write is durable, visible to reads and watches, and in force: a role, a
//!    definition or a policy that was acknowledged counts for the next request.
//! 3. Built-in kinds, their schemas and their documents are shared by all servers of a process.

mod admission;
mod audit;
mod authenticate;
mod body;
mod bootstrap;
mod controllers;
mod convert;
mod custom;
mod definitions;
mod discovery;
mod indexes;
mod local;
mod meta;
mod negotiate;
mod object;
mod openapi;
mod ops;
mod ownership;
mod places;
mod registry;
mod request;
mod resource;
mod scale;
mod serve;
mod server;
mod status;
mod tokens;
mod transport;
mod validate;

pub use audit::AuditLog;
pub use authenticate::{Caller, ISSUER, Peer};
pub use body::Body;
pub use local::{Changed, Changes, Local};
pub use machinery_store::OpenError;
pub use registry::{Catalog, Registry};
pub use resource::{Resource, Source, Subresource};
pub use serve::AsUser;
pub use server::{ApiServer, Clock, Options, StartError};
pub use status::{ApiError, Subject};
pub use transport::Listening;
