//! Who is asking, and may they: certificates, tokens, RBAC.
//!
//! A request passes through here twice. First *who*: a peer certificate ([`x509`]) or a bearer token ([`token`])
//! becomes a [`UserInfo`], which impersonation headers ([`impersonation`]) may replace. Then *may they*: the
//! request's [`rbac::Attributes`] are judged by an [`rbac::RbacIndex`].
//!
//! What always holds:
//! - Nothing here reads a clock or an object store: the time comes in as an argument, and what must still be
//!   compared with live objects goes out as data. Only [`pki`] touches files, and only when it is opened.
//! - Deciding never fails and never panics: what is not understood grants nothing.
//! - No private key, token or token digest appears in a `Debug` output or an error.

pub mod bootstrap;
pub mod impersonation;
pub mod pki;
mod quote;
pub mod rbac;
pub mod review;
pub mod token;
pub mod user;
pub mod x509;

pub use pki::Pki;
pub use rbac::{Attributes, Decision, RbacIndex};
pub use user::UserInfo;
