//! Bytes to values: one pass, with the duplicate keys that strict field validation reports.
//!
//! Always holds for a decoded value: it is at most [`MAX_DEPTH`] containers deep, so that recursion over it is
//! safe; a number that fits an `i64` is an integer, and every other number is a float, as in Go's decoding of
//! unstructured objects. The error texts are those of Go's JSON decoder, because clients show them.

mod repeats;
mod syntax;
#[cfg(test)]
pub(crate) mod tests;
mod visit;

use std::cell::RefCell;

use serde::de::DeserializeSeed;
use serde_json::Value;
use thiserror::Error;

pub use crate::encode::{to_vec, to_yaml};
use visit::Seed;

/// How many containers may be nested in each other.
pub const MAX_DEPTH: usize = 127;

/// The stack of the YAML reader, which needs up to 32 KiB for each level of depth in a build without optimization:
/// more than a worker thread has.
const YAML_STACK: usize = 16 << 20;

/// How many duplicate keys are reported.
pub const MAX_DUPLICATES: usize = 100;

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document. Of a key that appeared more than once the last value is kept.
    pub value: Value,
    /// The paths of the keys that appeared more than once, such as `spec.containers[0].name`; each once, in
    /// the order of their appearance, the first [`MAX_DUPLICATES`] of them. Of JSON only.
    pub duplicates: Vec<String>,
    /// What there is to say of such keys in YAML, which is told by lines.
    pub repeats: Vec<String>,
}

impl From<Value> for Decoded {
    /// A value that was no text.
    fn from(value: Value) -> Self {
        Self {
            value,
            duplicates: Vec::new(),
            repeats: Vec::new(),
        }
    }
}

/// Why bytes are not a document.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// There is nothing but blanks.
    #[error("unexpected end of JSON input")]
    Empty,
    /// Containers are nested too deeply.
    #[error("exceeded max depth")]
    TooDeep,
    /// Not JSON.
    #[error("{0}")]
    Json(String),
    /// Not YAML, more than one document, or more of it than is safe to expand.
    #[error("error converting YAML to JSON: yaml: {0}")]
    Yaml(String),
}

/// Decodes one JSON document.
pub fn from_json(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    if is_blank(bytes) {
        return Err(DecodeError::Empty);
    }
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let decoded = Seed::root(&duplicates)
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    match decoded {
        Ok(value) => Ok(Decoded {
            value,
            duplicates: duplicates.into_inner(),
            repeats: Vec::new(),
        }),
        Err(error) => Err(json_error(bytes, &error)),
    }
}

/// Decodes one YAML document, which may be JSON: what starts with a brace is taken for JSON.
///
/// The dialect is that of Kubernetes: YAML 1.1 booleans, octal numbers with a leading zero, merge keys.
pub fn from_yaml(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(DecodeError::Empty),
        Some(b'{') => return from_json(bytes).map(|decoded| by_line(bytes, decoded)),
        Some(_) => {}
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::Yaml("invalid UTF-8".to_owned()))?;
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new()
            .name("yaml".to_owned())
            .stack_size(YAML_STACK);
        match reader
            .spawn_scoped(scope, || read_yaml(text))
            .map(|thread| thread.join())
        {
            Ok(Ok(decoded)) => decoded.map(|decoded| by_line(bytes, decoded)),
            Ok(Err(_)) | Err(_) => Err(DecodeError::Yaml("the reader failed".to_owned())),
        }
    })
}

fn read_yaml(text: &str) -> Result<Decoded, DecodeError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: 1_000_000,
            max_events: 4_000_000,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let duplicates = RefCell::new(Vec::new());
    let decoded = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Seed::root(&duplicates).deserialize(deserializer)
    });
    match decoded {
        Ok(value) => Ok(Decoded {
            value,
            duplicates: duplicates.into_inner(),
            repeats: Vec::new(),
        }),
        Err(error) => Err(DecodeError::Yaml(error.to_string())),
    }
}

/// Tells repeated keys by their lines. Few documents have any, so that only those are read once more.
fn by_line(bytes: &[u8], mut decoded: Decoded) -> Decoded {
    if !decoded.duplicates.is_empty() {
        decoded.duplicates.clear();
        decoded.repeats = std::str::from_utf8(bytes)
            .map(repeats::messages)
            .unwrap_or_default();
    }
    decoded
}

/// How many containers are nested in `value`: 0 for a scalar, 1 for `{}`.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Says in Go's words what serde_json refused. Where Go would have accepted the text (a lone surrogate, say), the
/// refusal stands and serde_json's own words are used.
fn json_error(bytes: &[u8], error: &serde_json::Error) -> DecodeError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return DecodeError::TooDeep;
    }
    match syntax::explain(bytes) {
        Some(reason) => DecodeError::Json(reason),
        None => DecodeError::Json(text),
    }
}
