//! Who claims an object: the policy that its labels and annotations name.

use lockgate_api::{ObjectMeta, PropagationPolicy, keys};
use lockgate_engine::object;
use serde_json::Value;

/// A claim. Only a whole one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) id: String,
    /// `PropagationPolicy shop/web`.
    pub(crate) policy: String,
}

impl Claim {
    pub(crate) fn of_template(template: &Value) -> Option<Self> {
        Self::read(|key| object::label(template, key), |key| object::annotation(template, key))
    }

    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Option<Self> {
        Self::read(|key| metadata.label(key), |key| metadata.annotation(key))
    }

    fn read<'a>(label: impl Fn(&str) -> Option<&'a str>, annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let full = |value: Option<&'a str>| value.filter(|value| !value.is_empty());
        let (id, namespace, name) = (
            full(label(keys::PP_ID)),
            full(annotation(keys::PP_NAMESPACE)),
            full(annotation(keys::PP_NAME)),
        );
        if let (Some(id), Some(namespace), Some(name)) = (id, namespace, name) {
            return Some(Self {
                id: id.to_owned(),
                policy: format!("PropagationPolicy {namespace}/{name}"),
            });
        }
        let (id, name) = (full(label(keys::CPP_ID))?, full(annotation(keys::CPP_NAME))?);
        Some(Self {
            id: id.to_owned(),
            policy: format!("ClusterPropagationPolicy {name}"),
        })
    }
}

/// `PropagationPolicy shop/web` or `ClusterPropagationPolicy web`.
pub(crate) fn policy_name(policy: &PropagationPolicy) -> String {
    let metadata = &policy.metadata;
    if policy.is_cluster_scoped() {
        format!("ClusterPropagationPolicy {}", metadata.name)
    } else {
        format!("PropagationPolicy {}/{}", metadata.namespace, metadata.name)
    }
}
