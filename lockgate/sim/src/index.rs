//! What a member must know beyond the object at hand: who controls whom, what runs where, which labels lead to which
//! Pods, which addresses are taken.
//!
//! One task owns it and updates it from the changes of the server. It holds names and numbers, never objects.

mod addresses;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::SimOptions;
use crate::action::{Key, Kind};
use crate::object::{controller, fields, is_deleting, items, namespace, text};
use crate::scheduler::{Amounts, NodeInfo, requests};
use addresses::Addresses;

/// What is known of one object.
#[derive(Debug, Default, PartialEq)]
struct Entry {
    /// The uid and the name of its controller.
    controller: Option<(Box<str>, Key)>,
    /// The address that it holds.
    address: Option<u32>,
    /// What is known of a Pod.
    pod: Option<PodEntry>,
    /// What is known of a Service: its selector.
    selector: Vec<(Box<str>, Box<str>)>,
}

#[derive(Debug, PartialEq)]
struct PodEntry {
    node: Box<str>,
    /// What it takes from its node; nothing when it is finished.
    requests: Amounts,
    labels: Vec<(Box<str>, Box<str>)>,
}

/// A label of Pods in a namespace.
type Label = (Box<str>, Box<str>, Box<str>);

/// The index of a member.
#[derive(Debug)]
pub(crate) struct Index {
    entries: HashMap<Key, Entry>,
    /// The objects that a uid controls.
    children: HashMap<Box<str>, BTreeSet<Key>>,
    nodes: BTreeMap<Box<str>, NodeInfo>,
    on_node: HashMap<Box<str>, BTreeSet<Key>>,
    labeled: HashMap<Label, BTreeSet<Key>>,
    services: BTreeSet<Key>,
    budgets: BTreeSet<Key>,
    daemons: BTreeSet<Key>,
    /// Pods for which no node was found.
    waiting: BTreeSet<Key>,
    pod_addresses: Addresses,
    balancer_addresses: Addresses,
}

impl Index {
    pub(crate) fn new(options: &SimOptions) -> Self {
        Self {
            entries: HashMap::new(),
            children: HashMap::new(),
            nodes: BTreeMap::new(),
            on_node: HashMap::new(),
            labeled: HashMap::new(),
            services: BTreeSet::new(),
            budgets: BTreeSet::new(),
            daemons: BTreeSet::new(),
            waiting: BTreeSet::new(),
            pod_addresses: Addresses::new(options.pod_network),
            balancer_addresses: Addresses::new(options.balancer_network),
        }
    }

    /// Whether the index keeps anything of such an object but its name.
    pub(crate) fn reads(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Pod | Kind::ReplicaSet | Kind::Node | Kind::Service | Kind::Ingress | Kind::Volume
        )
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
        self.nodes.values()
    }

    pub(crate) fn node(&self, name: &str) -> Option<&NodeInfo> {
        self.nodes.get(name)
    }

    /// The objects of a kind that a uid controls.
    pub(crate) fn children(&self, uid: &str, kind: Kind) -> Vec<Key> {
        self.children
            .get(uid)
            .into_iter()
            .flatten()
            .filter(|key| key.kind == kind)
            .cloned()
            .collect()
    }

    /// The Pods in a namespace that may have all these labels.
    pub(crate) fn labeled(&self, namespace: &str, labels: &[(&str, &str)]) -> Vec<Key> {
        let sets = labels
            .iter()
            .map(|(k, v)| self.labeled.get(&label(namespace, k, v)));
        let sets: Option<Vec<&BTreeSet<Key>>> = sets.collect();
        let smallest = sets.into_iter().flatten().min_by_key(|set| set.len());
        smallest.into_iter().flatten().cloned().collect()
    }

    /// All Pods in a namespace.
    pub(crate) fn pods(&self, namespace: &str) -> Vec<Key> {
        let keys = self.entries.keys();
        let mut pods: Vec<Key> = keys
            .filter(|key| key.kind == Kind::Pod && &*key.namespace == namespace)
            .cloned()
            .collect();
        pods.sort();
        pods
    }

    pub(crate) fn free_pod_address(&self) -> String {
        self.pod_addresses.free()
    }

    pub(crate) fn free_balancer_address(&self) -> String {
        self.balancer_addresses.free()
    }

    /// Remembers whether a Pod waits for a node.
    pub(crate) fn set_waiting(&mut self, pod: &Key, waits: bool) {
        if waits {
            self.waiting.insert(pod.clone());
        } else {
            self.waiting.remove(pod);
        }
    }

    /// Takes a change in, and says what is to be looked at. `object` is none if it is gone.
    pub(crate) fn note(&mut self, key: &Key, object: Option<&Value>) -> Vec<Key> {
        let mut dirty = vec![key.clone()];
        match key.kind {
            Kind::Node => self.note_node(key, object, &mut dirty),
            Kind::DaemonSet if object.is_some() => {
                self.daemons.insert(key.clone());
            }
            Kind::DaemonSet => {
                self.daemons.remove(key);
            }
            Kind::Budget if object.is_some() => {
                self.budgets.insert(key.clone());
            }
            Kind::Budget => {
                self.budgets.remove(key);
            }
            Kind::Claim if object.is_none() => {
                // Its volume may go now. Volumes hang on their claim by name.
                dirty.extend(self.children(&claim_handle(&key.namespace, &key.name), Kind::Volume));
            }
            Kind::Pod | Kind::ReplicaSet | Kind::Service | Kind::Ingress | Kind::Volume => {
                let took_room = self.takes_room(key);
                self.forget(key, &mut dirty);
                match object {
                    Some(object) => self.learn(key, object, &mut dirty),
                    None => {
                        self.waiting.remove(key);
                    }
                }
                if took_room && !self.takes_room(key) {
                    dirty.extend(self.waiting.iter().cloned());
                }
            }
            _ => {}
        }
        // What budgets count: Pods, and how many of them are wanted.
        if matches!(
            key.kind,
            Kind::Pod | Kind::ReplicaSet | Kind::Deployment | Kind::StatefulSet
        ) {
            let first = Key::new(Kind::Budget, &key.namespace, "");
            let here = self.budgets.range(first..);
            dirty.extend(
                here.take_while(|budget| budget.namespace == key.namespace)
                    .cloned(),
            );
        }
        dirty
    }

    /// Takes the name of an object in of which nothing else is kept.
    pub(crate) fn note_name(&mut self, key: &Key, gone: bool) -> Vec<Key> {
        let present = Value::Null;
        self.note(key, (!gone).then_some(&present))
    }

    fn note_node(&mut self, key: &Key, object: Option<&Value>, dirty: &mut Vec<Key>) {
        let before = self.nodes.remove(&key.name);
        let after = object.filter(|node| !is_deleting(node)).map(NodeInfo::read);
        let changed = match (&before, &after) {
            (Some(before), Some(after)) => {
                NodeInfo {
                    used: Amounts::new(),
                    ..before.clone()
                } != *after
            }
            (before, after) => before.is_some() || after.is_some(),
        };
        if let Some(mut after) = after {
            after.used = match before {
                Some(before) => before.used,
                None => self.used_on(&key.name),
            };
            self.nodes.insert(key.name.clone(), after);
        }
        if changed {
            dirty.extend(self.daemons.iter().cloned());
            dirty.extend(self.waiting.iter().cloned());
            dirty.extend(self.on_node.get(&key.name).into_iter().flatten().cloned());
        }
    }

    fn used_on(&self, node: &str) -> Amounts {
        let mut used = Amounts::new();
        for pod in self.on_node.get(node).into_iter().flatten() {
            let requests = self
                .entries
                .get(pod)
                .and_then(|entry| entry.pod.as_ref())
                .map(|pod| &pod.requests);
            for (name, amount) in requests.into_iter().flatten() {
                *used.entry(name.clone()).or_default() += amount;
            }
        }
        used
    }

    fn learn(&mut self, key: &Key, object: &Value, dirty: &mut Vec<Key>) {
        let mut entry = Entry {
            controller: controller_of(key, object),
            ..Entry::default()
        };
        match key.kind {
            Kind::Pod => {
                let pod = read_pod(object);
                entry.address = self.pod_addresses.take(text(&object["status"]["podIP"]));
                for (k, v) in &pod.labels {
                    self.labeled
                        .entry(label(&key.namespace, k, v))
                        .or_default()
                        .insert(key.clone());
                }
                self.use_node(&pod.node, &pod.requests, 1);
                if !pod.node.is_empty() {
                    self.on_node
                        .entry(pod.node.clone())
                        .or_default()
                        .insert(key.clone());
                    self.waiting.remove(key);
                }
                self.services_of(key, &pod.labels, dirty);
                entry.pod = Some(pod);
            }
            Kind::Service | Kind::Ingress => {
                let ingress = items(&object["status"]["loadBalancer"]["ingress"]).first();
                entry.address = self
                    .balancer_addresses
                    .take(ingress.map_or("", |ingress| text(&ingress["ip"])));
                if key.kind == Kind::Service {
                    entry.selector = pairs(&object["spec"]["selector"]);
                    self.services.insert(key.clone());
                }
            }
            _ => {}
        }
        if let Some((uid, owner)) = &entry.controller {
            self.children.entry(uid.clone()).or_default().insert(key.clone());
            dirty.push(owner.clone());
        }
        self.entries.insert(key.clone(), entry);
    }

    fn forget(&mut self, key: &Key, dirty: &mut Vec<Key>) {
        self.services.remove(key);
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        if let Some((uid, owner)) = entry.controller {
            remove_from(&mut self.children, &uid, key);
            dirty.push(owner);
        }
        if let Some(address) = entry.address {
            let pool = if key.kind == Kind::Pod {
                &mut self.pod_addresses
            } else {
                &mut self.balancer_addresses
            };
            pool.give_back(address);
        }
        if let Some(pod) = entry.pod {
            for (k, v) in &pod.labels {
                remove_from(&mut self.labeled, &label(&key.namespace, k, v), key);
            }
            self.use_node(&pod.node, &pod.requests, -1);
            remove_from(&mut self.on_node, &pod.node, key);
            self.services_of(key, &pod.labels, dirty);
        }
    }

    /// Whether a Pod takes something from a node.
    fn takes_room(&self, key: &Key) -> bool {
        let pod = self.entries.get(key).and_then(|entry| entry.pod.as_ref());
        pod.is_some_and(|pod| !pod.node.is_empty() && !pod.requests.is_empty())
    }

    fn use_node(&mut self, node: &str, requests: &Amounts, sign: i64) {
        let Some(node) = self.nodes.get_mut(node) else {
            return;
        };
        for (name, amount) in requests {
            *node.used.entry(name.clone()).or_default() += sign * amount;
        }
    }

    /// The services whose selector matches a Pod with these labels.
    fn services_of(&self, pod: &Key, labels: &[(Box<str>, Box<str>)], dirty: &mut Vec<Key>) {
        let first = Key::new(Kind::Service, &pod.namespace, "");
        let in_namespace = self
            .services
            .range(first..)
            .take_while(|key| key.namespace == pod.namespace);
        for service in in_namespace {
            let selector = self.entries.get(service).map_or(&[][..], |entry| &entry.selector);
            if !selector.is_empty() && selector.iter().all(|pair| labels.contains(pair)) {
                dirty.push(service.clone());
            }
        }
    }
}

fn label(namespace: &str, key: &str, value: &str) -> Label {
    (namespace.into(), key.into(), value.into())
}

fn pairs(map: &Value) -> Vec<(Box<str>, Box<str>)> {
    fields(map)
        .map(|(key, value)| (key.as_str().into(), text(value).into()))
        .collect()
}

fn remove_from<K: std::hash::Hash + Eq>(sets: &mut HashMap<K, BTreeSet<Key>>, of: &K, key: &Key) {
    if let Some(set) = sets.get_mut(of) {
        set.remove(key);
        if set.is_empty() {
            sets.remove(of);
        }
    }
}

/// Under what the volumes of a claim are found. No uid looks like this.
fn claim_handle(namespace: &str, name: &str) -> String {
    format!("claim/{namespace}/{name}")
}

fn controller_of(key: &Key, object: &Value) -> Option<(Box<str>, Key)> {
    if key.kind == Kind::Volume {
        let reference = &object["spec"]["claimRef"];
        let (namespace, name) = (text(&reference["namespace"]), text(&reference["name"]));
        let claim = Key::new(Kind::Claim, namespace, name);
        return (!name.is_empty()).then(|| (claim_handle(namespace, name).into(), claim));
    }
    let owner = controller(object)?;
    let kind = Kind::of(text(&owner["apiVersion"]), text(&owner["kind"]))?;
    Some((
        text(&owner["uid"]).into(),
        Key::new(kind, namespace(object), text(&owner["name"])),
    ))
}

fn read_pod(pod: &Value) -> PodEntry {
    let finished = crate::pod::is_finished(pod);
    PodEntry {
        node: text(&pod["spec"]["nodeName"]).into(),
        requests: if finished {
            Amounts::new()
        } else {
            requests(&pod["spec"])
        },
        labels: pairs(&pod["metadata"]["labels"]),
    }
}
