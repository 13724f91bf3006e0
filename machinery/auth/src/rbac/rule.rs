//! One rule of a role.

use machinery_value::{Map, Value};

use super::Attributes;
use crate::quote::quote_list;

/// A short list of strings, without spare capacity: an index holds many of them.
pub type Texts = Box<[Box<str>]>;

/// A set of verbs on a set of resources, or on a set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// Which verbs; `*` is all.
    pub verbs: Texts,
    /// Which API groups; `*` is all, the empty string is the core group.
    pub api_groups: Texts,
    /// Which resources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Texts,
    /// Which objects; none means all.
    pub resource_names: Texts,
    /// Which paths; `*` at the end stands for any rest.
    pub non_resource_urls: Texts,
}

impl PolicyRule {
    /// From its JSON; what is not a list of strings is taken as absent, so it grants nothing.
    pub fn from_json(value: &Value) -> Self {
        let list = |key: &str| -> Texts {
            let items = value.get(key).and_then(Value::as_array);
            items
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(Box::from)
                .collect()
        };
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// The rules in the field `rules` of a Role or ClusterRole.
    pub fn list_from_role(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::from_json).collect()
    }

    /// As JSON: `verbs` always, the rest where not empty.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("verbs".into(), to_list(&self.verbs));
        for (key, texts) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !texts.is_empty() {
                out.insert(key.into(), to_list(texts));
            }
        }
        Value::Object(out)
    }

    /// Whether this rule alone allows the request.
    pub fn allows(&self, wanted: &Attributes<'_>) -> bool {
        if !has_or_star(&self.verbs, wanted.verb) {
            return false;
        }
        match wanted.path {
            Some(path) => self.non_resource_urls.iter().any(|url| url_covers(url, path)),
            None => {
                has_or_star(&self.api_groups, wanted.group)
                    && self
                        .resources
                        .iter()
                        .any(|r| resource_matches(r, wanted.resource, wanted.subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, wanted.name))
            }
        }
    }

    /// As in the message about an escalation: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    pub fn describe(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| format!("{name}:{}", quote_list(texts.iter())))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

pub(super) fn to_list(texts: &Texts) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect()
}

pub(super) fn has(texts: &Texts, wanted: &str) -> bool {
    texts.iter().any(|text| &**text == wanted)
}

pub(super) fn has_or_star(texts: &Texts, wanted: &str) -> bool {
    texts.iter().any(|text| &**text == wanted || &**text == "*")
}

/// Whether the path pattern `owner` covers `path`, which may be a pattern too.
pub(super) fn url_covers(owner: &str, path: &str) -> bool {
    owner == path || (owner.ends_with('*') && path.starts_with(owner.trim_end_matches('*')))
}

/// `*` covers everything, `*/scale` that subresource of every resource. There is no wildcard after the slash:
/// `pods/*` is a literal that no request has.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    // The subresource may hold slashes itself, so the resource is cut off first.
    let exact = rule
        .strip_prefix(resource)
        .and_then(|rest| rest.strip_prefix('/'));
    exact == Some(subresource) || rule.strip_prefix("*/") == Some(subresource)
}
