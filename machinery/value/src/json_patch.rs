//! JSON patches (RFC 6902) in the dialect of the Kubernetes API server.
//!
//! The dialect differs from the RFC where clients rely on it: `test` for null passes on a missing key, negative
//! indices count from the end, `replace` of a missing key in an object sets it, the part of a path before the
//! first slash is ignored, and an operation without a value has the value null.
//!
//! A patch applies wholly or not at all. What it may build is bounded: the number of operations, the bytes that
//! `copy` adds, and the depth of the document.

mod pointer;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::decode::{MAX_DEPTH, depth};
use crate::encode::encoded_len;
use pointer::Pointer;

/// How many operations a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// How many bytes all `copy` operations of a patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How deep a document may become between two operations; recursion over it is still safe.
const MAX_DEPTH_IN_BETWEEN: usize = 8 * MAX_DEPTH;

/// Why a patch does not apply.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// This is not a list of operations (400).
    #[error("{0}")]
    Undecodable(String),
    /// There are more operations than [`MAX_OPERATIONS`] (413).
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation is malformed, does not fit the document, or its test failed (422).
    #[error("{0}")]
    Failed(String),
}

/// Applies `patch`, a list of operations, to `doc`, which stays as it is if there is an error.
pub fn apply(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = decode(patch)?;
    let mut work = Work {
        depth: depth(doc),
        doc: doc.clone(),
        copied: 0,
    };
    for operation in operations {
        work.run(operation).map_err(PatchError::Failed)?;
    }
    // What is kept must be readable again.
    if depth(&work.doc) > MAX_DEPTH {
        return Err(PatchError::Failed("exceeded max depth".to_owned()));
    }
    *doc = work.doc;
    Ok(())
}

/// The operations; an operation may be null, which is one without any field.
fn decode(patch: &Value) -> Result<Vec<Option<&Map<String, Value>>>, PatchError> {
    let undecodable = |value: &Value, wanted: &str| {
        let found = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) | Value::Null => "object",
        };
        PatchError::Undecodable(format!(
            "json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"
        ))
    };
    let items = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        other => return Err(undecodable(other, "Patch")),
    };
    if items.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(items.len()));
    }
    let operation = |item| match item {
        &Value::Null => Ok(None),
        Value::Object(map) => Ok(Some(map)),
        other => Err(undecodable(other, "Operation")),
    };
    items.iter().map(operation).collect()
}

/// The document while operations are applied to it.
struct Work {
    doc: Value,
    /// At least the depth of `doc`.
    depth: usize,
    copied: usize,
}

impl Work {
    fn run(&mut self, operation: Option<&Map<String, Value>>) -> Result<(), String> {
        let field = |name: &str| {
            operation
                .and_then(|map| map.get(name))
                .filter(|value| !value.is_null())
        };
        let text = |name: &str| field(name).and_then(Value::as_str);
        let kind = text("op").unwrap_or("unknown");
        let path = || match text("path") {
            Some(path) => Ok(Pointer::parse(path)),
            None => Err(format!("{kind} operation failed to decode path: missing value")),
        };
        let from = || match text("from") {
            Some(from) => Ok(Pointer::parse(from)),
            None => Err(format!("{kind} operation failed to decode from: missing value")),
        };
        let value = field("value").cloned().unwrap_or(Value::Null);
        match kind {
            "add" => self.add(&path()?, value),
            "replace" => self.replace(&path()?, value),
            "remove" => path()?.remove(&mut self.doc).map(drop),
            "test" => path()?.test(&self.doc, &value),
            "move" => {
                let (from, path) = (from()?, path()?);
                let value = from.remove(&mut self.doc)?;
                // What was inside the document is no deeper than the rest of it. This bound grows with every
                // move into the depth; only when it becomes too great is it worth measuring.
                let mut moved = self.depth.saturating_sub(from.len());
                if path.len() + moved > MAX_DEPTH_IN_BETWEEN {
                    self.depth = depth(&self.doc);
                    moved = depth(&value);
                }
                self.reserve(path.len() + moved)?;
                path.add(&mut self.doc, value)
            }
            "copy" => {
                let (from, path) = (from()?, path()?);
                let value = from.get(&self.doc)?.cloned().unwrap_or(Value::Null);
                self.copied += encoded_len(&value);
                if self.copied > MAX_COPIED_BYTES {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the \
                         limit {MAX_COPIED_BYTES}",
                        self.copied
                    ));
                }
                self.add(&path, value)
            }
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn replace(&mut self, path: &Pointer<'_>, value: Value) -> Result<(), String> {
        if !path.is_root() {
            self.reserve(path.len() + depth(&value))?;
            return path.replace(&mut self.doc, value);
        }
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        self.depth = depth(&value);
        self.doc = value;
        Ok(())
    }

    fn add(&mut self, path: &Pointer<'_>, value: Value) -> Result<(), String> {
        self.reserve(path.len() + depth(&value))?;
        path.add(&mut self.doc, value)
    }

    /// Makes sure that the document may become `wanted` deep.
    fn reserve(&mut self, wanted: usize) -> Result<(), String> {
        if wanted > MAX_DEPTH_IN_BETWEEN {
            return Err("exceeded max depth".to_owned());
        }
        self.depth = self.depth.max(wanted);
        Ok(())
    }
}
