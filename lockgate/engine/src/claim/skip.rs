//! What is never a template.

use lockgate_api::{keys, names};
use serde_json::Value;

use crate::object::{self, TemplateId};

/// Why an object is not propagated whatever policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its kind belongs to the control plane, or changes all the time.
    Kind,
    /// Its namespace belongs to the control plane.
    ReservedNamespace,
    /// Its namespace matches `kube-.*`.
    SystemNamespace,
    /// Somebody else propagates it.
    ClaimedBy,
    /// Every API server makes it for itself.
    ServerOwned,
}

impl SkipReason {
    /// The reason in words.
    pub fn message(self) -> &'static str {
        match self {
            Self::Kind => "objects of this kind are never propagated",
            Self::ReservedNamespace => "its namespace belongs to the control plane",
            Self::SystemNamespace => "objects in kube-* namespaces are never propagated",
            Self::ClaimedBy => {
                "its label resourcetemplate.karmada.io/claimed-by says that somebody else propagates it"
            }
            Self::ServerOwned => "every API server makes this object for itself",
        }
    }
}

/// Whether no object of this kind is ever a template.
pub fn skip_kind(api_version: &str, kind: &str) -> bool {
    const GROUPS: [&str; 11] = [
        "cluster.karmada.io",
        "policy.karmada.io",
        "work.karmada.io",
        "config.karmada.io",
        "networking.karmada.io",
        "autoscaling.karmada.io",
        "remedy.karmada.io",
        "apps.karmada.io",
        "events.k8s.io",
        "cluster.open-cluster-management.io",
        "policy.open-cluster-management.io",
    ];
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    GROUPS.contains(&group)
        || (api_version == "v1" && kind == "Event")
        || api_version == "coordination.k8s.io/v1"
}

/// Why this object is not propagated whatever policies say.
pub fn skip_template(template: &Value) -> Option<SkipReason> {
    let id = TemplateId::of(template);
    if skip_kind(&id.api_version, &id.kind) {
        return Some(SkipReason::Kind);
    }
    // A Namespace stands for itself.
    let namespace = if id.api_version == "v1" && id.kind == "Namespace" {
        &id.name
    } else {
        &id.namespace
    };
    if names::is_reserved(namespace) {
        return Some(SkipReason::ReservedNamespace);
    }
    let extension_authentication = id.api_version == "v1"
        && id.kind == "ConfigMap"
        && id.name == "extension-apiserver-authentication"
        && id.namespace == "kube-system";
    if extension_authentication {
        return Some(SkipReason::ServerOwned);
    }
    if id.namespace.starts_with("kube-") {
        return Some(SkipReason::SystemNamespace);
    }
    if object::label(template, keys::CLAIMED_BY).is_some_and(|value| !value.is_empty()) {
        return Some(SkipReason::ClaimedBy);
    }
    None
}

#[cfg(test)]
mod tests;
