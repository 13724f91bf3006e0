//! What is known of policies beside themselves: bindings, sets, placement rules, and which replicas a root has. It follows the
//! caches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::ocm::policy::{CLUSTER_NAMESPACE, ROOT_POLICY};
use lockgate_api::ocm::{PlacementBinding, PlacementRule, Policy, PolicySet};
use lockgate_engine::governance::replica::{root_of, sets_needed};

use crate::cache::Key;

/// What is known of policies beside themselves.
#[derive(Default)]
pub(crate) struct Governance {
    bindings: BTreeMap<Key, Arc<PlacementBinding>>,
    sets: BTreeMap<Key, Arc<PolicySet>>,
    rules: BTreeMap<Key, Arc<PlacementRule>>,
    /// By root: the sets on whose policies it depends, of any namespace.
    needs: HashMap<Key, BTreeSet<Key>>,
    /// The same of what is sent in the place of a root that was given up.
    sent_needs: HashMap<Key, BTreeSet<Key>>,
    /// By root: its replicas, by cluster.
    replicas: HashMap<Key, BTreeMap<String, Arc<Policy>>>,
    /// By cluster: the roots that have a replica there.
    roots: HashMap<String, BTreeSet<Key>>,
    /// By root: when it is looked at again by itself.
    timers: HashMap<Key, Timestamp>,
}

/// The root of a replica; none for a policy that is a root itself.
pub(crate) fn root_key(policy: &Policy) -> Option<Key> {
    let metadata = &policy.metadata;
    let is_replica = metadata.label(ROOT_POLICY) == Some(metadata.name.as_str())
        && metadata.label(CLUSTER_NAMESPACE) == Some(metadata.namespace.as_str());
    let (namespace, name) = root_of(&metadata.name).filter(|_| is_replica)?;
    Some(Key::new(namespace, name))
}

impl Governance {
    pub(crate) fn put_binding(&mut self, key: &Key, binding: Option<PlacementBinding>) {
        put(&mut self.bindings, key, binding);
    }

    pub(crate) fn put_set(&mut self, key: &Key, set: Option<PolicySet>) {
        put(&mut self.sets, key, set);
    }

    /// A root changed.
    pub(crate) fn put_root(&mut self, key: &Key, root: Option<&Policy>) {
        note(&mut self.needs, key, root);
        if root.is_none() {
            self.sent_needs.remove(key);
        }
    }

    /// Something is sent in the place of a root, or nothing any more; whether it needs other sets than what was sent before.
    pub(crate) fn put_sent(&mut self, key: &Key, sent: Option<&Policy>) -> bool {
        note(&mut self.sent_needs, key, sent)
    }

    /// The roots that depend on the policies of a set.
    pub(crate) fn needing(&self, set: &Key) -> Vec<Key> {
        let all = self.needs.iter().chain(&self.sent_needs);
        let needing = all.filter(|(_, sets)| sets.contains(set));
        needing.map(|(root, _)| root.clone()).collect()
    }

    pub(crate) fn put_rule(&mut self, key: &Key, rule: Option<PlacementRule>) {
        put(&mut self.rules, key, rule);
    }

    /// A replica of a root changed.
    pub(crate) fn put_replica(&mut self, root: &Key, cluster: &str, replica: Option<Arc<Policy>>) {
        let replicas = self.replicas.entry(root.clone()).or_default();
        let roots = self.roots.entry(cluster.to_owned()).or_default();
        match replica {
            Some(replica) => {
                replicas.insert(cluster.to_owned(), replica);
                roots.insert(root.clone());
            }
            None => {
                replicas.remove(cluster);
                roots.remove(root);
            }
        }
        if replicas.is_empty() {
            self.replicas.remove(root);
        }
        if roots.is_empty() {
            self.roots.remove(cluster);
        }
    }

    /// The bindings of a namespace, by name.
    pub(crate) fn bindings_in(&self, namespace: &str) -> Vec<Arc<PlacementBinding>> {
        in_namespace(&self.bindings, namespace).cloned().collect()
    }

    /// The sets of a namespace, by name.
    pub(crate) fn sets_in(&self, namespace: &str) -> Vec<Arc<PolicySet>> {
        in_namespace(&self.sets, namespace).cloned().collect()
    }

    /// The sets of all namespaces.
    pub(crate) fn sets(&self) -> BTreeMap<Key, Arc<PolicySet>> {
        self.sets.clone()
    }

    pub(crate) fn set(&self, key: &Key) -> Option<&Arc<PolicySet>> {
        self.sets.get(key)
    }

    pub(crate) fn rule(&self, key: &Key) -> Option<&Arc<PlacementRule>> {
        self.rules.get(key)
    }

    /// The replicas of a root, by cluster.
    pub(crate) fn replicas(&self, root: &Key) -> BTreeMap<String, Arc<Policy>> {
        self.replicas.get(root).cloned().unwrap_or_default()
    }

    /// The roots that have a replica on a cluster.
    pub(crate) fn roots_on(&self, cluster: &str) -> Vec<Key> {
        self.roots.get(cluster).into_iter().flatten().cloned().collect()
    }

    /// The policies that a binding is about: by name, and through sets.
    pub(crate) fn subjects(&self, namespace: &str, binding: &PlacementBinding) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for subject in &binding.subjects {
            let key = Key::new(namespace, &subject.name);
            if subject.kind == "Policy" {
                found.insert(key);
            } else if let Some(set) = self.sets.get(&key) {
                let policies = set.spec.policies.iter();
                found.extend(policies.map(|policy| Key::new(namespace, policy)));
            }
        }
        found
    }

    /// Notes when a root is looked at again; whether that is new.
    pub(crate) fn set_timer(&mut self, root: &Key, at: Option<Timestamp>) -> bool {
        match at {
            Some(at) => self.timers.insert(root.clone(), at) != Some(at),
            None => {
                self.timers.remove(root);
                false
            }
        }
    }
}

/// Notes the sets that a policy needs; whether they are others than before.
fn note(needs: &mut HashMap<Key, BTreeSet<Key>>, key: &Key, policy: Option<&Policy>) -> bool {
    let needed = policy.map(sets_needed).unwrap_or_default();
    let needed: BTreeSet<Key> = needed
        .into_iter()
        .map(|(namespace, name)| Key::new(namespace, name))
        .collect();
    if needed.is_empty() {
        return needs.remove(key).is_some();
    }
    needs.insert(key.clone(), needed.clone()) != Some(needed)
}

fn put<T>(map: &mut BTreeMap<Key, Arc<T>>, key: &Key, object: Option<T>) {
    match object {
        Some(object) => drop(map.insert(key.clone(), Arc::new(object))),
        None => drop(map.remove(key)),
    }
}

fn in_namespace<'a, T>(
    map: &'a BTreeMap<Key, Arc<T>>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a Arc<T>> {
    map.range(Key::new(namespace, "")..)
        .take_while(move |(key, _)| &*key.namespace == namespace)
        .map(|(_, object)| object)
}
