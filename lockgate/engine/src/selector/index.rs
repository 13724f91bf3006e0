//! The policies, arranged so that the ones about a template are found without looking at the others.
//!
//! Policies are posted under what their selectors ask for: apiVersion and kind, then the namespace, then a name, a label
//! or nothing more. Every list of postings is in match order, so that the best policy of a list is its first that
//! matches. The answers are always those of a scan over all policies with [`policy_match`](super::policy_match).
//!
//! Match order: PropagationPolicies before ClusterPropagationPolicies, then the higher priority, then the closer
//! selector, then the smaller name.

mod slots;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_api::{PropagationPolicy, ResourceSelector};
use serde_json::Value;

use self::slots::{Anchor, Posting, Rank, Slots};
use super::compile_labels;
use crate::object;

/// An index of policies of both kinds, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct PolicyIndex {
    /// By namespace, then name.
    policies: BTreeMap<String, BTreeMap<String, Entry>>,
    /// By apiVersion, then kind.
    kinds: BTreeMap<String, BTreeMap<String, KindPostings>>,
}

/// A policy and where it is posted, so that it can be taken out again.
#[derive(Clone, Debug)]
struct Entry {
    policy: Arc<PropagationPolicy>,
    addresses: Vec<Address>,
}

/// Where a selector is posted.
#[derive(Clone, Debug)]
struct Address {
    api_version: String,
    kind: String,
    namespace: String,
    anchor: Anchor,
}

/// The postings of one kind of template. A kind is there as long as a policy names it.
#[derive(Clone, Debug, Default)]
struct KindPostings {
    /// How many policies name this kind.
    policies: usize,
    /// PropagationPolicies, by their namespace.
    local: BTreeMap<String, Slots>,
    /// ClusterPropagationPolicies, by the namespace that they ask for; empty: any.
    global: BTreeMap<String, Slots>,
}

impl KindPostings {
    fn scope_mut(&mut self, policy: &PropagationPolicy) -> &mut BTreeMap<String, Slots> {
        if policy.metadata.namespace.is_empty() {
            &mut self.global
        } else {
            &mut self.local
        }
    }

    /// The slots that concern templates of a namespace: those of PropagationPolicies, then the others.
    fn tiers(&self, namespace: &str) -> [Vec<&Slots>; 2] {
        let anywhere = self.global.get("").filter(|_| !namespace.is_empty());
        [
            self.local.get(namespace).into_iter().collect(),
            self.global.get(namespace).into_iter().chain(anywhere).collect(),
        ]
    }
}

impl PolicyIndex {
    /// Puts a policy in, in place of the one of the same namespace and name.
    ///
    /// A policy that is being deleted matches nothing, and its kinds still count until it is removed.
    pub fn insert(&mut self, policy: Arc<PropagationPolicy>) {
        self.remove(&policy.metadata.namespace, &policy.metadata.name);
        for (api_version, kind) in kinds_of(&policy) {
            let kinds = self.kinds.entry(api_version.to_owned()).or_default();
            kinds.entry(kind.to_owned()).or_default().policies += 1;
        }
        let selectors = policy.spec.resource_selectors.iter();
        let addresses = selectors
            .filter_map(|selector| self.post(&policy, selector))
            .collect();
        self.policies
            .entry(policy.metadata.namespace.clone())
            .or_default()
            .insert(policy.metadata.name.clone(), Entry { policy, addresses });
    }

    /// Takes a policy out, and gives it back if it was there.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<PropagationPolicy>> {
        let siblings = self.policies.get_mut(namespace)?;
        let Entry { policy, addresses } = siblings.remove(name)?;
        if siblings.is_empty() {
            self.policies.remove(namespace);
        }
        for address in addresses {
            self.unpost(&policy, &address);
        }
        for (api_version, kind) in kinds_of(&policy) {
            let Some(kinds) = self.kinds.get_mut(api_version) else {
                continue;
            };
            if let Some(postings) = kinds.get_mut(kind) {
                postings.policies -= 1;
                if postings.policies == 0 {
                    kinds.remove(kind);
                }
            }
            if kinds.is_empty() {
                self.kinds.remove(api_version);
            }
        }
        Some(policy)
    }

    /// The policy of a namespace (empty: a ClusterPropagationPolicy) and name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<&Arc<PropagationPolicy>> {
        Some(&self.policies.get(namespace)?.get(name)?.policy)
    }

    /// The policies of a namespace, by name; the cluster's own for none.
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<PropagationPolicy>> {
        let all = self.policies.get(namespace).into_iter();
        all.flat_map(BTreeMap::values).map(|entry| &entry.policy)
    }

    /// All policies, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PropagationPolicy>> {
        self.policies
            .values()
            .flat_map(BTreeMap::values)
            .map(|entry| &entry.policy)
    }

    /// How many policies there are.
    pub fn len(&self) -> usize {
        self.policies.values().map(BTreeMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Every apiVersion and kind that a policy names, with the number of policies that do.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.kinds.iter().flat_map(|(api_version, kinds)| {
            kinds
                .iter()
                .map(move |(kind, postings)| (api_version.as_str(), kind.as_str(), postings.policies))
        })
    }

    /// The policy that comes first in match order.
    pub fn best(&self, template: &Value) -> Option<&Arc<PropagationPolicy>> {
        let labels = object::labels(template);
        let name = object::meta_text(template, "name");
        for tier in self.tiers(template) {
            let mut best: Option<(Rank<'_>, &Arc<PropagationPolicy>)> = None;
            for (by, postings) in tier.iter().flat_map(|slots| slots.lists(name, labels)) {
                for posting in postings {
                    // The rank is in the policy, far away in memory: it is looked at only where it decides.
                    if best.as_ref().is_some_and(|(best, _)| *best <= posting.rank(by)) {
                        break;
                    }
                    if posting.matches(labels) {
                        best = Some((posting.rank(by), &posting.policy));
                        break;
                    }
                }
            }
            if let Some((_, policy)) = best {
                return Some(policy);
            }
        }
        None
    }

    /// Every policy that matches, in match order.
    pub fn candidates(&self, template: &Value) -> Vec<&Arc<PropagationPolicy>> {
        let labels = object::labels(template);
        let name = object::meta_text(template, "name");
        let mut candidates = Vec::new();
        for tier in self.tiers(template) {
            let mut matching: Vec<(Rank<'_>, &Arc<PropagationPolicy>)> = tier
                .iter()
                .flat_map(|slots| slots.lists(name, labels))
                .flat_map(|(by, postings)| postings.iter().map(move |posting| (by, posting)))
                .filter(|(_, posting)| posting.matches(labels))
                .map(|(by, posting)| (posting.rank(by), &posting.policy))
                .collect();
            matching.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            // Several selectors of a policy may match: the closest comes first and counts. Names are unique in a tier.
            let mut seen = BTreeSet::new();
            candidates.extend(
                matching
                    .into_iter()
                    .map(|(_, policy)| policy)
                    .filter(|policy| seen.insert(policy.metadata.name.as_str())),
            );
        }
        candidates
    }

    /// The policies with `preemption: Always` that name this very template, the highest first, in match order.
    ///
    /// A ClusterPropagationPolicy names a namespaced template only if it gives the namespace too.
    pub fn preemptors(&self, template: &Value) -> Vec<&Arc<PropagationPolicy>> {
        let namespace = object::meta_text(template, "namespace");
        let name = object::meta_text(template, "name");
        let Some(postings) = self.postings(template) else {
            return Vec::new();
        };
        let exact = [postings.local.get(namespace), postings.global.get(namespace)];
        let mut preemptors: Vec<&Arc<PropagationPolicy>> = exact
            .into_iter()
            .flatten()
            .flat_map(|slots| slots.named(name))
            .map(|posting| &posting.policy)
            .filter(|policy| policy.spec.preempts())
            .collect();
        // Two selectors of a policy that say the same are neighbours.
        preemptors.dedup_by(|a, b| Arc::ptr_eq(a, b));
        preemptors
    }

    fn postings(&self, template: &Value) -> Option<&KindPostings> {
        self.kinds
            .get(object::text(template, "apiVersion"))?
            .get(object::text(template, "kind"))
    }

    fn tiers(&self, template: &Value) -> [Vec<&Slots>; 2] {
        self.postings(template)
            .map(|postings| postings.tiers(object::meta_text(template, "namespace")))
            .unwrap_or_default()
    }

    /// Posts a selector; `None` if it can match nothing.
    fn post(&mut self, policy: &Arc<PropagationPolicy>, selector: &ResourceSelector) -> Option<Address> {
        let scope = &policy.metadata.namespace;
        let elsewhere = !scope.is_empty() && !selector.namespace.is_empty() && selector.namespace != *scope;
        if policy.metadata.deleting() || elsewhere {
            return None;
        }
        let labels = match &selector.label_selector {
            Some(labels) if selector.name.is_empty() => Some(Arc::new(compile_labels(labels).ok()?)),
            _ => None,
        };
        let namespace = if scope.is_empty() {
            &selector.namespace
        } else {
            scope
        };
        let slots = self
            .kinds
            .get_mut(&selector.api_version)?
            .get_mut(&selector.kind)?
            .scope_mut(policy)
            .entry(namespace.clone())
            .or_default();
        let anchor = slots.insert(
            &selector.name,
            Posting {
                policy: policy.clone(),
                labels,
            },
        );
        Some(Address {
            api_version: selector.api_version.clone(),
            kind: selector.kind.clone(),
            namespace: namespace.clone(),
            anchor,
        })
    }

    fn unpost(&mut self, policy: &Arc<PropagationPolicy>, address: &Address) {
        let Some(postings) = self
            .kinds
            .get_mut(&address.api_version)
            .and_then(|kinds| kinds.get_mut(&address.kind))
        else {
            return;
        };
        let scope = postings.scope_mut(policy);
        if let Some(slots) = scope.get_mut(&address.namespace) {
            slots.remove(&address.anchor, policy);
            if slots.is_empty() {
                scope.remove(&address.namespace);
            }
        }
    }
}

/// Each apiVersion and kind that a policy names, once.
fn kinds_of(policy: &PropagationPolicy) -> BTreeSet<(&str, &str)> {
    let selectors = policy.spec.resource_selectors.iter();
    selectors
        .map(|selector| (selector.api_version.as_str(), selector.kind.as_str()))
        .collect()
}
