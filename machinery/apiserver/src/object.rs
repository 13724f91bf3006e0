//! Objects as they lie in the store: JSON bytes without apiVersion and kind, which belong to the version that is served.
//!
//! A read of the storage version is a splice of two byte strings; nothing is parsed.

use std::sync::OnceLock;

use bytes::Bytes;
use machinery_store::{Entry, Record};
use machinery_value::Value;
use serde::Deserialize;

use crate::meta;

/// A stored object.
#[derive(Debug)]
pub(crate) struct Object {
    body: Bytes,
    /// Which edition of its kind's schema wrote it; 0 when it was read from disk.
    edition: u32,
    labels: OnceLock<Labels>,
}

type Labels = Box<[(Box<str>, Box<str>)]>;

/// A stored object with its key and revisions.
pub(crate) type Stored = std::sync::Arc<Entry<Object>>;

impl Record for Object {
    fn bytes(&self) -> &Bytes {
        &self.body
    }

    fn decode(bytes: Bytes) -> Result<Self, String> {
        // The store has checked its own checksum; the content was JSON when it was written.
        Ok(Self {
            body: bytes,
            edition: 0,
            labels: OnceLock::new(),
        })
    }
}

impl Object {
    /// Encodes `content`, which carries no apiVersion and kind, as written at `revision`.
    pub(crate) fn encode(mut content: Value, revision: u64, edition: u32) -> Self {
        meta::strip_type(&mut content);
        meta::set_text(&mut content, "resourceVersion", revision.to_string());
        Self {
            body: machinery_value::encode::to_vec(&content).into(),
            edition,
            labels: OnceLock::new(),
        }
    }

    /// The JSON bytes.
    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether `text` is anywhere in the JSON.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        std::str::from_utf8(&self.body).is_ok_and(|body| body.contains(text))
    }

    pub(crate) fn edition(&self) -> u32 {
        self.edition
    }

    /// The content as a value, without apiVersion and kind.
    pub(crate) fn content(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The label `key`. Labels are read from the bytes once, when somebody selects by them.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let labels = self.labels.get_or_init(|| {
            let outline: Outline<'_> = serde_json::from_slice(&self.body).unwrap_or_default();
            outline
                .metadata
                .labels
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect()
        });
        labels.iter().find(|(k, _)| &**k == key).map(|(_, v)| &**v)
    }

    /// The metadata that garbage collection and the namespace controller need, without a full parse.
    pub(crate) fn links(&self) -> Links {
        serde_json::from_slice::<LinksOutline>(&self.body)
            .unwrap_or_default()
            .metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Outline<'a> {
    #[serde(borrow)]
    metadata: LabelOutline<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LabelOutline<'a> {
    #[serde(borrow)]
    labels: std::collections::BTreeMap<std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LinksOutline {
    metadata: Links,
}

/// How an object hangs together with others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Links {
    pub(crate) uid: String,
    pub(crate) owner_references: Vec<OwnerReference>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deletion_timestamp: Option<String>,
}

/// One owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) block_owner_deletion: bool,
}
