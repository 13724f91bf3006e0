//! Reading untyped objects. Templates and member objects are of any kind, so they are plain JSON here.

use std::fmt;

use serde_json::{Map, Value};

/// Names a template: an object on the hub that somebody may want elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TemplateId {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl TemplateId {
    /// The id of an object that carries its apiVersion and kind.
    pub fn of(object: &Value) -> Self {
        Self {
            api_version: text(object, "apiVersion").to_owned(),
            kind: text(object, "kind").to_owned(),
            namespace: meta_text(object, "namespace").to_owned(),
            name: meta_text(object, "name").to_owned(),
        }
    }

    /// The group of the apiVersion; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for TemplateId {
    /// `Deployment shop/web`, or without a namespace `ClusterRole reader`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// A string field at the top; empty if it is not there.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A string field of the metadata; empty if it is not there.
pub fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .map(|metadata| text(metadata, field))
        .unwrap_or_default()
}

/// `metadata.generation`; 0 for kinds without one.
pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// The generation, where it says anything about the content: a PriorityClass's is 1 for ever.
pub fn counted_generation(object: &Value) -> i64 {
    let id = TemplateId::of(object);
    match (id.group(), id.kind.as_str()) {
        ("scheduling.k8s.io", "PriorityClass") => 0,
        _ => generation(object),
    }
}

/// Whether something is left in a Namespace, by its own word: whoever empties it drops this finalizer when it is done.
pub fn has_content(namespace: &Value) -> bool {
    let finalizers = namespace["spec"]["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether the object's deletion was asked for.
pub fn deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The labels, if there are any.
pub fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["labels"].as_object()
}

/// The annotations, if there are any.
pub fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["annotations"].as_object()
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    labels(object)?.get(key)?.as_str()
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    annotations(object)?.get(key)?.as_str()
}

/// Whether a manager of that name wrote a part of the object that nobody wrote after it.
pub fn is_managed_by(object: &Value, manager: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .any(|entry| text(entry, "manager") == manager)
}
