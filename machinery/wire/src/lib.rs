//! Built-in kinds on the wire: JSON and protobuf decoded as Kubernetes' Go types do.
//!
//! A Kubernetes API server decodes a body into Go structs and encodes those again. Fields it does not know vanish,
//! zero values vanish or appear as the struct tags say, times and quantities take one form, and what is wrong is
//! said in the words of Go's decoder. Here the same comes from a table of those types, `data/gotypes.json`, which
//! `derive/run` reads off the Go modules; nothing in it is typed by hand. The tests compare with Go's own outcomes,
//! made by the same command.
//!
//! What always holds: no input makes this crate panic, and its time, depth and memory are bounded by limits beside
//! the code that needs them.

mod base64;
mod header;
pub mod json;
pub mod proto;
mod time;
pub mod types;

pub use header::{Header, interpret};
pub use json::{Normalized, decode, strict_findings};
pub use proto::{Envelope, ProtoObject, decode_envelope, decode_message, decode_proto};
pub use types::{TypeRef, lookup};

/// Why a body could not be decoded. The text is what the server's answer quotes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A value that the Go type cannot hold, in the words of Go's decoder.
    #[error("{0}")]
    Decode(String),
    /// Bytes that are no protobuf message of the kind they claim to be.
    #[error("{0}")]
    Malformed(String),
    /// A kind that the table does not have.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    NotRegistered {
        /// The `apiVersion` asked for.
        api_version: String,
        /// The `kind` asked for.
        kind: String,
    },
    /// More values than any real object has.
    #[error("the object has more than {0} values")]
    TooLarge(usize),
    /// Deeper nesting than any real object has.
    #[error("exceeded max depth")]
    TooDeep,
}

/// The most values (fields, elements, and those the types add) one object may have. A body of the largest size a
/// server takes stays well below it unless it is made of empty elements, each of which would cost a map.
pub(crate) const MAX_VALUES: usize = 500_000;
