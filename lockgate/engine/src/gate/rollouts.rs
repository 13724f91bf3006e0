//! The rollout policies, arranged so that those about a template are found without looking at the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::RolloutPolicy;
use serde_json::Value;

use crate::object::{self, TemplateId};
use crate::selector::best_priority;

/// Rollout policies of both kinds, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct RolloutIndex {
    /// By namespace, then name.
    policies: BTreeMap<String, BTreeMap<String, Arc<RolloutPolicy>>>,
    /// By apiVersion and kind.
    postings: BTreeMap<String, BTreeMap<String, ByName>>,
}

/// Policies by the name that a selector of theirs asks for; empty: any.
type ByName = BTreeMap<String, Vec<Arc<RolloutPolicy>>>;

impl RolloutIndex {
    /// Puts a policy in, in place of the one of the same namespace and name.
    pub fn insert(&mut self, policy: Arc<RolloutPolicy>) {
        self.remove(&policy.metadata.namespace, &policy.metadata.name);
        for selector in &policy.spec.resource_selectors {
            let kinds = self.postings.entry(selector.api_version.clone()).or_default();
            let names = kinds.entry(selector.kind.clone()).or_default();
            let posted = names.entry(selector.name.clone()).or_default();
            if !posted.iter().any(|other| Arc::ptr_eq(other, &policy)) {
                posted.push(policy.clone());
            }
        }
        self.policies
            .entry(policy.metadata.namespace.clone())
            .or_default()
            .insert(policy.metadata.name.clone(), policy);
    }

    /// Takes a policy out, and gives it back if it was there.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<RolloutPolicy>> {
        let siblings = self.policies.get_mut(namespace)?;
        let policy = siblings.remove(name)?;
        if siblings.is_empty() {
            self.policies.remove(namespace);
        }
        for selector in &policy.spec.resource_selectors {
            let Some(kinds) = self.postings.get_mut(&selector.api_version) else {
                continue;
            };
            if let Some(names) = kinds.get_mut(&selector.kind) {
                if let Some(posted) = names.get_mut(&selector.name) {
                    posted.retain(|other| !Arc::ptr_eq(other, &policy));
                    if posted.is_empty() {
                        names.remove(&selector.name);
                    }
                }
                if names.is_empty() {
                    kinds.remove(&selector.kind);
                }
            }
            if kinds.is_empty() {
                self.postings.remove(&selector.api_version);
            }
        }
        Some(policy)
    }

    /// The policy of a namespace (empty: a ClusterRolloutPolicy) and name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<&Arc<RolloutPolicy>> {
        self.policies.get(namespace)?.get(name)
    }

    /// All policies, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RolloutPolicy>> {
        self.policies.values().flat_map(BTreeMap::values)
    }

    /// Whether any policy could be about a template: one that cannot need not be read.
    pub fn may_concern(&self, id: &TemplateId) -> bool {
        let names = self.named(&id.api_version, &id.kind);
        names.is_some_and(|names| {
            [id.name.as_str(), ""]
                .iter()
                .any(|name| names.contains_key(*name))
        })
    }

    fn named(&self, api_version: &str, kind: &str) -> Option<&ByName> {
        self.postings.get(api_version)?.get(kind)
    }

    /// Every policy about a template, by namespace and name.
    pub fn about(&self, template: &Value) -> Vec<Arc<RolloutPolicy>> {
        let names = self.named(
            object::text(template, "apiVersion"),
            object::text(template, "kind"),
        );
        let Some(names) = names else {
            return Vec::new();
        };
        let mut about: Vec<Arc<RolloutPolicy>> = [object::meta_text(template, "name"), ""]
            .into_iter()
            .filter_map(|name| names.get(name))
            .flatten()
            .filter(|policy| is_about(policy, template))
            .cloned()
            .collect();
        let key = |policy: &RolloutPolicy| (policy.metadata.namespace.clone(), policy.metadata.name.clone());
        about.sort_by_key(|policy| key(policy));
        about.dedup_by(|a, b| Arc::ptr_eq(a, b));
        about
    }
}

/// Whether a rollout policy is about a template.
///
/// One that is being deleted is about nothing. A RolloutPolicy is about its own namespace alone, whatever its selectors
/// say, and so never about cluster-scoped templates; a ClusterRolloutPolicy is about those and about every namespace.
pub fn is_about(policy: &RolloutPolicy, template: &Value) -> bool {
    let namespace = &policy.metadata.namespace;
    let out_of_scope = !namespace.is_empty() && namespace != object::meta_text(template, "namespace");
    !policy.metadata.deleting()
        && !out_of_scope
        && best_priority(&policy.spec.resource_selectors, template).is_some()
}

#[cfg(test)]
mod tests;
