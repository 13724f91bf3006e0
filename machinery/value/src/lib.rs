//! JSON values as Kubernetes uses them: decoding, patches, paths, quantities, canonical hashes.
//!
//! Everything here is pure. The value type is [`serde_json::Value`]: objects are *stored* as bytes, so its
//! weight is paid only while a request is being worked on, and the whole ecosystem (CEL, YAML, clients) speaks it.

pub mod field;

pub use serde_json::{Map, Number, Value};
