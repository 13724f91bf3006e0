//! The marks of a claim on templates and bindings.

use std::collections::BTreeMap;

use lockgate_api::{ObjectMeta, PropagationPolicy, keys};
use serde_json::{Map, Value};

use crate::object;

/// The kind of policy behind a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimKind {
    /// A PropagationPolicy.
    Namespaced,
    /// A ClusterPropagationPolicy.
    Cluster,
}

/// Who owns a template. Complete by construction: a claim with a part missing does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The kind of policy.
    pub kind: ClaimKind,
    /// The policy's permanent id.
    pub id: String,
    /// The policy's namespace; empty for a ClusterPropagationPolicy.
    pub namespace: String,
    /// The policy's name.
    pub name: String,
}

/// The keys that a claim may use: label, then annotations.
const LABELS: [&str; 2] = [keys::PP_ID, keys::CPP_ID];
const ANNOTATIONS: [&str; 3] = [keys::PP_NAMESPACE, keys::PP_NAME, keys::CPP_NAME];

impl Claim {
    /// The claim that a policy makes.
    pub fn by(policy: &PropagationPolicy) -> Self {
        let kind = if policy.is_cluster_scoped() {
            ClaimKind::Cluster
        } else {
            ClaimKind::Namespaced
        };
        Self {
            kind,
            id: policy.permanent_id().to_owned(),
            namespace: policy.metadata.namespace.clone(),
            name: policy.metadata.name.clone(),
        }
    }

    /// The claim on a template. A PropagationPolicy's wins if both are there.
    pub fn on_template(template: &Value) -> Option<Self> {
        Self::read(
            |key| object::label(template, key),
            |key| object::annotation(template, key),
        )
    }

    /// The claim on a binding: who was activated.
    pub fn on_binding(metadata: &ObjectMeta) -> Option<Self> {
        Self::read(|key| metadata.label(key), |key| metadata.annotation(key))
    }

    fn read<'a>(
        label: impl Fn(&str) -> Option<&'a str>,
        annotation: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let given = |value: Option<&str>| value.filter(|value| !value.is_empty()).map(str::to_owned);
        let namespaced = || {
            Some(Self {
                kind: ClaimKind::Namespaced,
                id: given(label(keys::PP_ID))?,
                namespace: given(annotation(keys::PP_NAMESPACE))?,
                name: given(annotation(keys::PP_NAME))?,
            })
        };
        let cluster = || {
            Some(Self {
                kind: ClaimKind::Cluster,
                id: given(label(keys::CPP_ID))?,
                namespace: String::new(),
                name: given(annotation(keys::CPP_NAME))?,
            })
        };
        namespaced().or_else(cluster)
    }

    fn label(&self) -> (&'static str, &str) {
        match self.kind {
            ClaimKind::Namespaced => (keys::PP_ID, &self.id),
            ClaimKind::Cluster => (keys::CPP_ID, &self.id),
        }
    }

    fn annotations(&self) -> Vec<(&'static str, &str)> {
        match self.kind {
            ClaimKind::Namespaced => vec![(keys::PP_NAMESPACE, &self.namespace), (keys::PP_NAME, &self.name)],
            ClaimKind::Cluster => vec![(keys::CPP_NAME, &self.name)],
        }
    }

    /// Makes this the only claim on a template; no claim removes all marks. Answers whether anything changed.
    pub fn mark_template(claim: Option<&Self>, template: &mut Value) -> bool {
        let before = (
            object::labels(template).cloned(),
            object::annotations(template).cloned(),
        );
        let label = claim.map(Self::label);
        let annotations = claim.map(Self::annotations).unwrap_or_default();
        for key in LABELS {
            set(
                template,
                "labels",
                key,
                label.filter(|(k, _)| *k == key).map(|(_, value)| value),
            );
        }
        for key in ANNOTATIONS {
            let value = annotations
                .iter()
                .find(|(k, _)| *k == key)
                .map(|(_, value)| *value);
            set(template, "annotations", key, value);
        }
        before
            != (
                object::labels(template).cloned(),
                object::annotations(template).cloned(),
            )
    }

    /// Makes this the only claim on a binding; no claim removes all marks.
    pub fn mark_binding(claim: Option<&Self>, metadata: &mut ObjectMeta) {
        let put = |map: &mut BTreeMap<String, String>, key: &str, value: Option<&str>| match value {
            Some(value) => {
                map.insert(key.to_owned(), value.to_owned());
            }
            None => {
                map.remove(key);
            }
        };
        let label = claim.map(Self::label);
        let annotations = claim.map(Self::annotations).unwrap_or_default();
        for key in LABELS {
            put(
                &mut metadata.labels,
                key,
                label.filter(|(k, _)| *k == key).map(|(_, value)| value),
            );
        }
        for key in ANNOTATIONS {
            let value = annotations
                .iter()
                .find(|(k, _)| *k == key)
                .map(|(_, value)| *value);
            put(&mut metadata.annotations, key, value);
        }
    }
}

/// Sets or removes one key of the labels or annotations of an object. A map that becomes empty goes.
pub(super) fn set(object: &mut Value, field: &str, key: &str, value: Option<&str>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    match value {
        Some(value) => {
            let map = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if !map.is_object() {
                *map = Value::Object(Map::new());
            }
            map[key] = Value::String(value.to_owned());
        }
        None => {
            if let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut)
                && map.remove(key).is_some()
                && map.is_empty()
            {
                metadata.remove(field);
            }
        }
    }
}

#[cfg(test)]
mod tests;
