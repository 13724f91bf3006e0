//! What is never a template.

use lockgate_api::{keys, names};
use regex::Regex;
use serde_json::Value;

use crate::object::{self, TemplateId};

/// Why an object is not propagated whatever policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its kind belongs to the control plane, or changes all the time.
    Kind,
    /// Its namespace belongs to the control plane.
    ReservedNamespace,
    /// Its namespace matches `kube-.*`, or what somebody names instead.
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

/// What is said of objects in the namespace of a cluster, or of that namespace.
pub fn in_cluster_namespace(namespace: &str) -> String {
    format!(
        "the namespace {namespace} is reserved, because a cluster has its name: nothing in it is sent, and what was sent stays as \
         it is. Move it to a namespace that is not named like a cluster, or let the cluster join under another name"
    )
}

/// What else is never a template, because somebody says so.
#[derive(Clone, Debug)]
pub struct Skips {
    apis: Vec<SkippedApi>,
    namespaces: Vec<Regex>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SkippedApi {
    group: String,
    /// None for every version.
    version: Option<String>,
    /// In lower case; none for every kind.
    kinds: Option<Vec<String>>,
}

/// The namespaces that are left alone unless somebody names others.
const SYSTEM_NAMESPACES: &str = "kube-.*";

impl Default for Skips {
    fn default() -> Self {
        let namespaces = Self::parse_namespaces(SYSTEM_NAMESPACES).unwrap_or_default();
        Self {
            apis: Vec::new(),
            namespaces,
        }
    }
}

impl Skips {
    /// Understands `GROUP`, `GROUP/VERSION` and `GROUP/VERSION/KIND,KIND`, separated by semicolons; of the core group `v1` and
    /// `v1/KIND,KIND`; and patterns of namespaces, separated by commas, each for a whole name.
    pub fn parse(apis: &str, namespaces: Option<&str>) -> Result<Self, String> {
        let parts = apis.split(';').map(str::trim).filter(|part| !part.is_empty());
        Ok(Self {
            apis: parts.map(SkippedApi::parse).collect::<Result<_, _>>()?,
            namespaces: Self::parse_namespaces(namespaces.unwrap_or(SYSTEM_NAMESPACES))?,
        })
    }

    fn parse_namespaces(patterns: &str) -> Result<Vec<Regex>, String> {
        let patterns = patterns.split(',').map(str::trim).filter(|part| !part.is_empty());
        let whole = |pattern: &str| Regex::new(&format!("^(?:{pattern})$"));
        patterns
            .map(|pattern| whole(pattern).map_err(|error| format!("{pattern:?} is no pattern: {error}")))
            .collect()
    }

    /// Whether nothing in a namespace is ever a template, nor the namespace sent by itself.
    pub fn skip_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|pattern| pattern.is_match(namespace))
    }

    /// Whether no object of this kind is ever a template.
    pub fn skip_kind(&self, api_version: &str, kind: &str) -> bool {
        skip_kind(api_version, kind) || self.apis.iter().any(|api| api.is(api_version, kind))
    }

    /// Why this object is not propagated whatever policies say.
    pub fn skip_template(&self, template: &Value) -> Option<SkipReason> {
        let id = TemplateId::of(template);
        if self.skip_kind(&id.api_version, &id.kind) {
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
        if !id.namespace.is_empty() && self.skip_namespace(&id.namespace) {
            return Some(SkipReason::SystemNamespace);
        }
        if object::label(template, keys::CLAIMED_BY).is_some_and(|value| !value.is_empty()) {
            return Some(SkipReason::ClaimedBy);
        }
        None
    }
}

impl SkippedApi {
    fn parse(text: &str) -> Result<Self, String> {
        let kinds = |text: &str| text.split(',').map(|kind| kind.trim().to_lowercase()).collect();
        let api = |group: &str, version: Option<&str>, of: Option<&str>| Self {
            group: group.to_owned(),
            version: version.map(str::to_owned),
            kinds: of.map(kinds),
        };
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(format!(
                "{text:?} is not of the form GROUP, GROUP/VERSION or GROUP/VERSION/KIND"
            ));
        }
        match parts.as_slice() {
            ["v1"] => Ok(api("", Some("v1"), None)),
            ["v1", kinds] => Ok(api("", Some("v1"), Some(kinds))),
            [group] => Ok(api(group, None, None)),
            [group, version] => Ok(api(group, Some(version), None)),
            [group, version, kinds] => Ok(api(group, Some(version), Some(kinds))),
            _ => Err(format!(
                "{text:?} is not of the form GROUP, GROUP/VERSION or GROUP/VERSION/KIND"
            )),
        }
    }

    fn is(&self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kinds = self.kinds.as_ref();
        self.group == group
            && self.version.as_ref().is_none_or(|wanted| wanted == version)
            && kinds.is_none_or(|kinds| kinds.contains(&kind.to_lowercase()))
    }
}

/// Whether no object of this kind is ever a template, whatever somebody says.
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

/// Why this object is not propagated whatever policies say, if nobody names what else is left alone.
pub fn skip_template(template: &Value) -> Option<SkipReason> {
    Skips::default().skip_template(template)
}

#[cfg(test)]
mod tests;
