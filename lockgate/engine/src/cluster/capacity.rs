//! What a member has and what its pods take, from its Nodes and Pods: `status.resourceSummary` of its Cluster.
//!
//! Pods are told one after the other and kept as a few numbers each, so that a member with many of them costs little. What
//! pods that ended took is free. A node that is not ready, or takes no pods, has nothing to give. An amount that is none, or
//! less than none, or more than any machine has, counts as none, and is told.

use std::collections::{BTreeMap, HashMap};

use machinery_value::quantity::{Format, Quantity};
use serde_json::{Map, Value, json};

use super::Models;
use crate::render;

/// The condition of a Cluster that is there while something about its capacity cannot be right.
pub const CAPACITY_KNOWN: &str = "CapacityKnown";
/// How many pods of one member are counted one by one; what is beyond counts as no pods.
const MOST_PODS: usize = 200_000;
/// How many complaints are told.
const MOST_COMPLAINTS: usize = 3;

/// More CPUs, or pods, than any node has; also than those that stand for a whole cloud.
const MOST_OF_A_NODE: i64 = 10_000_000;
/// More of anything else than any node has: an exbibyte, where it is bytes.
const MOST_UNITS: i64 = 1 << 60;

/// Amounts by resource: thousandths of CPUs, whole units of everything else.
type Amounts = BTreeMap<String, i64>;
/// What many pods take together. Wider than any of them, so that what goes takes away what it brought, and nothing else.
type Sums = BTreeMap<String, i128>;

/// The Nodes and Pods of a member, as numbers.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    nodes: HashMap<String, Node>,
    pods: HashMap<(String, String), Pod>,
    allocating: Sums,
    /// What the pods of each node take.
    used: HashMap<Box<str>, Sums>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    ready: bool,
    /// Whether it takes no new pods.
    closed: bool,
    allocatable: Amounts,
    /// What it says that cannot be.
    complaint: Option<String>,
}

#[derive(Clone, Debug)]
struct Pod {
    /// Its node, once it has one.
    node: Option<Box<str>>,
    takes: Amounts,
    /// What it asks for that cannot be.
    complaint: Option<Box<str>>,
}

impl Capacity {
    /// A Node is like this now, or gone.
    pub fn node(&mut self, name: &str, node: Option<&Value>) {
        match node {
            Some(node) => drop(self.nodes.insert(name.to_owned(), read_node(name, node))),
            None => drop(self.nodes.remove(name)),
        }
    }

    /// A Pod is like this now, or gone.
    pub fn pod(&mut self, namespace: &str, name: &str, pod: Option<&Value>) {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(old) = self.pods.remove(&key) {
            self.count(&old, -1);
        }
        let Some(new) = pod.and_then(|pod| read_pod(namespace, name, pod)) else {
            return;
        };
        if self.pods.len() >= MOST_PODS {
            return;
        }
        self.count(&new, 1);
        self.pods.insert(key, new);
    }

    /// Adds what a pod takes so many times: once when it comes, and less than nothing when it goes.
    fn count(&mut self, pod: &Pod, times: i128) {
        let add = |sums: &mut Sums| {
            for (resource, amount) in &pod.takes {
                *sums.entry(resource.clone()).or_default() += times * i128::from(*amount);
            }
            // Pods ask for whatever they like: what none asks for any more has no place.
            if times < 0 {
                sums.retain(|_, sum| *sum != 0);
            }
        };
        let Some(node) = &pod.node else {
            add(&mut self.allocating);
            return;
        };
        let used = self.used.entry(node.clone()).or_default();
        add(used);
        if used.is_empty() {
            self.used.remove(node);
        }
    }

    /// The nodes that take pods.
    fn open_nodes(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.nodes.iter().filter(|(_, node)| node.ready && !node.closed)
    }

    /// What is free on each node that takes pods.
    fn free(&self) -> impl Iterator<Item = Amounts> {
        self.open_nodes().map(|(name, node)| {
            let used = self.used.get(name.as_str());
            let free = node.allocatable.iter().map(|(resource, amount)| {
                let taken = used.and_then(|used| used.get(resource)).copied().unwrap_or(0);
                (resource.clone(), narrowed((i128::from(*amount) - taken).max(0)))
            });
            free.collect()
        })
    }

    /// `status.resourceSummary`, with the nodes by grade if there are grades.
    pub fn summary(&self, models: Option<&Models>) -> Value {
        let (mut allocatable, mut allocated) = (Sums::new(), Sums::new());
        // What pods take elsewhere is not taken from those that have something to give.
        for (name, node) in self.open_nodes() {
            for (resource, amount) in &node.allocatable {
                *allocatable.entry(resource.clone()).or_default() += i128::from(*amount);
            }
            for (resource, sum) in self.used.get(name.as_str()).into_iter().flatten() {
                *allocated.entry(resource.clone()).or_default() += sum;
            }
        }
        // Of what nobody has there is no room, and pods may name as much of that as they like.
        allocated.retain(|resource, _| allocatable.contains_key(resource));
        let mut allocating = self.allocating.clone();
        allocating.retain(|resource, _| allocatable.contains_key(resource));
        let mut summary = Map::new();
        for (part, sums) in [
            ("allocatable", &allocatable),
            ("allocated", &allocated),
            ("allocating", &allocating),
        ] {
            let list = written(sums);
            if part == "allocatable" || !list.is_empty() {
                summary.insert(part.to_owned(), Value::Object(list));
            }
        }
        if let Some(models) = models {
            let free: Vec<Amounts> = self.free().collect();
            summary.insert("allocatableModelings".to_owned(), models.count(free.iter()));
        }
        Value::Object(summary)
    }

    /// `status.nodeSummary`.
    pub fn node_summary(&self) -> Value {
        let mut summary = Map::new();
        let ready = self.nodes.values().filter(|node| node.ready).count();
        for (key, count) in [("totalNum", self.nodes.len()), ("readyNum", ready)] {
            if count > 0 {
                summary.insert(key.to_owned(), json!(count));
            }
        }
        Value::Object(summary)
    }

    /// What cannot be right, for people.
    pub fn complaint(&self) -> Option<String> {
        let nodes = self.nodes.values().filter_map(|node| node.complaint.as_deref());
        let pods = self.pods.values().filter_map(|pod| pod.complaint.as_deref());
        // Those of nodes come first by their first word, whatever pods ask for.
        let mut all: Vec<&str> = nodes.chain(pods).collect();
        all.sort_unstable();
        let more = all.len().saturating_sub(MOST_COMPLAINTS);
        let mut told: Vec<String> = all.into_iter().take(MOST_COMPLAINTS).map(str::to_owned).collect();
        if more > 0 {
            told.push(format!("and {more} more nodes or pods"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn read_node(name: &str, node: &Value) -> Node {
    let is_ready = node["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    });
    let mut read = Node {
        ready: is_ready,
        closed: node["spec"]["unschedulable"] == true,
        ..Node::default()
    };
    for (resource, amount) in node["status"]["allocatable"].as_object().into_iter().flatten() {
        match counted(resource, amount) {
            Some(amount) if (0..=most(resource)).contains(&amount) => {
                read.allocatable.insert(resource.clone(), amount);
            }
            _ => {
                let why =
                    format!("node {name} says that it has {resource} {amount}, which is taken for none");
                read.complaint.get_or_insert(why);
            }
        }
    }
    read
}

/// The most that a node can have of a resource, counted as amounts are.
fn most(resource: &str) -> i64 {
    match resource {
        "cpu" => MOST_OF_A_NODE * 1000,
        "pods" => MOST_OF_A_NODE,
        _ => MOST_UNITS,
    }
}

/// What a pod takes; nothing once it has ended. What no node has, it will never take from one.
fn read_pod(namespace: &str, name: &str, pod: &Value) -> Option<Pod> {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let mut takes = Amounts::new();
    let mut complaint = None;
    let request = render::pod_request(&pod["spec"]);
    for (resource, amount) in request.iter().filter_map(Value::as_object).flatten() {
        match counted(resource, amount) {
            Some(amount) if (0..=most(resource)).contains(&amount) => {
                takes.insert(resource.clone(), amount);
            }
            _ => {
                let why =
                    format!("pod {namespace}/{name} asks for {resource} {amount}, which is taken for none");
                complaint.get_or_insert(why.into());
            }
        }
    }
    takes.insert("pods".to_owned(), 1);
    let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
    Some(Pod {
        node: node.map(Box::from),
        takes,
        complaint,
    })
}

/// An amount: thousandths of CPUs, whole units of everything else. None if it is none.
pub(crate) fn counted(resource: &str, amount: &Value) -> Option<i64> {
    let quantity = match amount {
        Value::String(text) => Quantity::parse(text).ok()?,
        Value::Number(number) => Quantity::parse(&number.to_string()).ok()?,
        _ => return None,
    };
    Some(if resource == "cpu" {
        quantity.milli()
    } else {
        quantity.units()
    })
}

/// As much of a sum as an amount can be.
fn narrowed(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(i64::MAX)
}

fn written(sums: &Sums) -> Map<String, Value> {
    let list = sums.iter().filter(|(_, sum)| **sum > 0);
    list.map(|(resource, sum)| {
        let amount = narrowed(*sum);
        let quantity = match resource.as_str() {
            "cpu" => Quantity::from_milli(amount, Format::DecimalSi),
            "memory" | "ephemeral-storage" => Quantity::from_units(amount, Format::BinarySi),
            _ => Quantity::from_units(amount, Format::DecimalSi),
        };
        (resource.clone(), Value::String(quantity.to_string()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ready: &str, allocatable: Value) -> Value {
        json!({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": allocatable}})
    }

    fn pod(node: &str, cpu: &str, phase: &str) -> Value {
        let resources = json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
        json!({"spec": {"nodeName": node, "containers": [{"resources": resources}]}, "status": {"phase": phase}})
    }

    #[test]
    fn sums_follow_nodes_and_pods() {
        let mut capacity = Capacity::default();
        assert_eq!(capacity.summary(None), json!({"allocatable": {}}));
        let has = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        capacity.node("n1", Some(&node("True", has.clone())));
        capacity.node("n2", Some(&node("True", has.clone())));
        capacity.node("lost", Some(&node("Unknown", has.clone())));
        let mut closed = node("True", has);
        closed["spec"]["unschedulable"] = json!(true);
        capacity.node("closed", Some(&closed));
        capacity.pod("a", "runs", Some(&pod("n1", "500m", "Running")));
        capacity.pod("a", "waits", Some(&pod("", "1", "Pending")));
        capacity.pod("a", "ended", Some(&pod("n1", "3", "Succeeded")));
        // What is taken on nodes that have nothing to give is taken from nobody.
        capacity.pod("a", "cut-off", Some(&pod("lost", "2", "Running")));
        capacity.pod("a", "stays", Some(&pod("closed", "2", "Running")));
        let expected = json!({
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "220"},
            "allocated": {"cpu": "500m", "memory": "1Gi", "pods": "1"},
            "allocating": {"cpu": "1", "memory": "1Gi", "pods": "1"},
        });
        assert_eq!(capacity.summary(None), expected);
        assert_eq!(capacity.node_summary(), json!({"totalNum": 4, "readyNum": 3}));
        // It gets its node, and another goes; a node too.
        capacity.pod("a", "waits", Some(&pod("n2", "1", "Running")));
        capacity.pod("a", "runs", None);
        capacity.node("n1", None);
        let expected = json!({
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocated": {"cpu": "1", "memory": "1Gi", "pods": "1"},
        });
        assert_eq!(capacity.summary(None), expected);
        assert_eq!(capacity.complaint(), None);
    }

    #[test]
    fn nodes_are_counted_by_what_is_free_on_them() {
        let mut cluster = lockgate_api::Cluster::default();
        let range = |min: i64, max: i64| json!([{"name": "cpu", "min": min, "max": max}]);
        let models = json!([{"grade": 0, "ranges": range(0, 2)}, {"grade": 1, "ranges": range(2, 4)},
            {"grade": 2, "ranges": range(4, i64::MAX)}]);
        cluster.spec.rest.insert("resourceModels".to_owned(), models);
        let models = Models::of(&cluster).unwrap();
        let mut capacity = Capacity::default();
        let counts = |capacity: &Capacity| {
            let summary = capacity.summary(Some(&models));
            let counts = summary["allocatableModelings"].as_array().unwrap().iter();
            counts
                .map(|grade| grade["count"].as_i64().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(&capacity), [0, 0, 0]);
        for name in ["n1", "n2", "n3"] {
            capacity.node(name, Some(&node("True", json!({"cpu": "4", "pods": "9"}))));
        }
        capacity.node("lost", Some(&node("Unknown", json!({"cpu": "4"}))));
        assert_eq!(counts(&capacity), [0, 0, 3]);
        capacity.pod("a", "x", Some(&pod("n1", "1", "Running")));
        capacity.pod("a", "y", Some(&pod("n2", "3", "Running")));
        capacity.pod("a", "waits", Some(&pod("", "3", "Pending")));
        assert_eq!(counts(&capacity), [1, 1, 1]);
        // Another pod moves to it, and the first goes.
        capacity.pod("a", "y", Some(&pod("n1", "3", "Running")));
        assert_eq!(counts(&capacity), [1, 0, 2]);
        capacity.pod("a", "x", None);
        assert_eq!(counts(&capacity), [1, 0, 2]);
        capacity.pod("a", "y", Some(&pod("n1", "3", "Succeeded")));
        assert_eq!(counts(&capacity), [0, 0, 3]);
        assert!(capacity.used.is_empty(), "nothing is kept of what is gone");
        let odd = |node: &str, number: i32| {
            let mut pod = pod(node, "1", "Pending");
            let requests = &mut pod["spec"]["containers"][0]["resources"]["requests"];
            requests[format!("example.com/odd-{number}")] = json!("1");
            pod
        };
        capacity.pod("a", "waits", None);
        for node in ["", "n1"] {
            capacity.pod("a", "stays", Some(&pod(node, "1", "Pending")));
            for number in 0..9 {
                capacity.pod("a", "odd", Some(&odd(node, number)));
            }
            capacity.pod("a", "odd", None);
            let kept = [Some(&capacity.allocating), capacity.used.get("n1")];
            let kept = kept.into_iter().flatten().flat_map(|sums| sums.keys());
            assert_eq!(kept.collect::<Vec<_>>(), ["cpu", "memory", "pods"], "{node}");
            capacity.pod("a", "stays", None);
        }
    }

    #[test]
    fn what_cannot_be_is_none_and_told() {
        let mut capacity = Capacity::default();
        let bad = json!({"cpu": "-5", "memory": "much", "pods": "10"});
        capacity.node("odd", Some(&node("True", bad)));
        assert_eq!(capacity.summary(None), json!({"allocatable": {"pods": "10"}}));
        let complaint = capacity.complaint().unwrap();
        assert_eq!(
            complaint,
            "node odd says that it has cpu \"-5\", which is taken for none"
        );
        capacity.node("odd", None);
        assert_eq!(capacity.complaint(), None);
    }

    #[test]
    fn more_than_any_machine_has_is_none_and_told() {
        let huge = i64::MAX.to_string();
        for (resource, amount) in [
            ("cpu", huge.as_str()),
            ("memory", "8Ei"),
            ("pods", &huge),
            ("cpu", "1e30"),
        ] {
            let mut capacity = Capacity::default();
            let mut has = json!({"cpu": "4", "memory": "8Gi", "pods": "10"});
            has[resource] = json!(amount);
            capacity.node("odd", Some(&node("True", has)));
            assert_eq!(
                capacity.summary(None)["allocatable"][resource],
                Value::Null,
                "{resource} {amount}"
            );
            let told = format!("node odd says that it has {resource} \"{amount}\", which is taken for none");
            assert_eq!(capacity.complaint(), Some(told));
        }
        // Nodes that stand for a whole cloud say such things.
        let cloud = json!({"cpu": "100k", "memory": "100Pi", "pods": "1M"});
        let mut capacity = Capacity::default();
        capacity.node("cloud", Some(&node("True", cloud)));
        assert_eq!(capacity.complaint(), None);
    }

    #[test]
    fn what_no_node_has_is_taken_from_nobody() {
        for node in ["", "n1"] {
            let part = if node.is_empty() {
                "allocating"
            } else {
                "allocated"
            };
            let mut capacity = Capacity::default();
            let has = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
            capacity.node("n1", Some(&self::node("True", has)));
            capacity.pod("x", "small", Some(&pod(node, "15", "Running")));
            let before = capacity.summary(None);
            assert_eq!(before[part], json!({"cpu": "15", "memory": "1Gi", "pods": "1"}));
            let mut huge = pod(node, "9223372036854775", "Running");
            huge["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("8Ei");
            capacity.pod("x", "huge", Some(&huge));
            assert_eq!(
                capacity.summary(None)[part],
                json!({"cpu": "15", "memory": "1Gi", "pods": "2"}),
                "{part}"
            );
            let told = "pod x/huge asks for cpu \"9223372036854775\", which is taken for none";
            assert_eq!(capacity.complaint().as_deref(), Some(told));
            capacity.pod("x", "huge", None);
            assert_eq!(capacity.summary(None), before, "{part}");
            assert_eq!(capacity.complaint(), None);
        }
    }

    #[test]
    fn of_what_no_node_has_nothing_is_told() {
        let mut capacity = Capacity::default();
        let has = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        capacity.node("n1", Some(&node("True", has)));
        for node in ["", "n1"] {
            let mut odd = pod(node, "1", "Pending");
            odd["spec"]["containers"][0]["resources"]["requests"]["example.com/sails"] = json!("2");
            capacity.pod("x", &format!("odd-{node}"), Some(&odd));
        }
        let summary = capacity.summary(None);
        let one = json!({"cpu": "1", "memory": "1Gi", "pods": "1"});
        assert_eq!((&summary["allocating"], &summary["allocated"]), (&one, &one));
    }

    #[test]
    fn what_goes_takes_away_what_it_brought() {
        // Each is possible, and together they are more than an amount can be.
        let mut capacity = Capacity::default();
        let has = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        capacity.node("n1", Some(&node("True", has)));
        let mut large = pod("", "1", "Pending");
        large["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("1Ei");
        for number in 0..9 {
            capacity.pod("x", &format!("large-{number}"), Some(&large));
        }
        capacity.pod("x", "small", Some(&pod("", "1", "Pending")));
        let together = i64::MAX.to_string();
        assert_eq!(capacity.summary(None)["allocating"]["memory"], json!(together));
        for number in 0..9 {
            capacity.pod("x", &format!("large-{number}"), None);
        }
        let left = json!({"cpu": "1", "memory": "1Gi", "pods": "1"});
        assert_eq!(capacity.summary(None)["allocating"], left);
        assert_eq!(capacity.complaint(), None);
    }
}
