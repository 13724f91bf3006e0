//! JSON values as Kubernetes uses them: decoding, patches, paths, quantities, canonical hashes.
//!
//! Everything here is pure. The value type is [`serde_json::Value`]: objects are *stored* as bytes, so its
//! weight is paid only while a request is being worked on, and the whole ecosystem (CEL, YAML, clients) speaks it.

pub mod decode;
pub mod encode;
pub mod field;
pub mod gofmt;
pub mod hash;
pub mod json_patch;
pub mod jsonpath;
pub mod labels;
pub mod merge_patch;
pub mod names;
pub mod quantity;
pub mod strategic;

pub use serde_json::{Map, Number, Value};
