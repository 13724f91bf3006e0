//! What of a template is the user's. Activation waits for changes of this, and of nothing else.

use lockgate_api::keys;
use machinery_value::hash::canonical_hash;
use serde_json::{Map, Value, json};

/// Hashes of a template's user content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentHashes {
    /// Of labels, annotations, finalizers and owners.
    pub metadata: String,
    /// Of everything else.
    pub content: String,
}

impl ContentHashes {
    /// The hashes of a template.
    pub fn of(template: &Value) -> Self {
        Self {
            metadata: short_hash(&user_metadata(template)),
            content: short_hash(&user_content(template)),
        }
    }
}

/// Half of a canonical hash, in hex: enough to tell two contents apart, and short enough for an annotation.
pub(crate) fn short_hash(value: &Value) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(32);
    for byte in &canonical_hash(value).as_bytes()[..16] {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a label's or annotation's key is ours to write. `karmada.io/x` is the user's: there is no dot before it.
pub(crate) fn is_system_key(key: &str) -> bool {
    key.contains(".karmada.io") && key != keys::SKIP_AUTO_PROPAGATION
}

/// The part of the metadata that users write.
fn user_metadata(template: &Value) -> Value {
    let metadata = &template["metadata"];
    let mut kept = Map::new();
    for field in ["labels", "annotations"] {
        if let Some(map) = metadata[field].as_object() {
            let map: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| !is_system_key(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if !map.is_empty() {
                kept.insert(field.to_owned(), Value::Object(map));
            }
        }
    }
    for field in ["finalizers", "ownerReferences"] {
        if metadata[field].as_array().is_some_and(|list| !list.is_empty()) {
            kept.insert(field.to_owned(), metadata[field].clone());
        }
    }
    Value::Object(kept)
}

/// Everything but metadata and status, with apiVersion and kind.
pub fn user_content(template: &Value) -> Value {
    let Some(object) = template.as_object() else {
        return json!(null);
    };
    Value::Object(
        object
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}
