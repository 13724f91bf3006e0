//! Whether a Pod fits a node.

use std::collections::BTreeMap;

use machinery_value::quantity::Quantity;
use serde_json::Value;

use crate::object::{fields, items, name, text};

/// Amounts of resources by name: thousandths of processors, units of everything else.
pub type Amounts = BTreeMap<Box<str>, i64>;

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Whether it is heard from.
    pub ready: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints, as in its spec.
    pub taints: Vec<Value>,
    /// Whether new Pods are kept away.
    pub unschedulable: bool,
    /// What it can give.
    pub allocatable: Amounts,
    /// What it has given.
    pub used: Amounts,
}

impl NodeInfo {
    /// Reads a node; what it has given is not in it.
    pub fn read(node: &Value) -> Self {
        let text_of = |(key, value): (&String, &Value)| (key.clone(), text(value).to_owned());
        let address = items(&node["status"]["addresses"])
            .iter()
            .find(|a| a["type"] == "InternalIP");
        Self {
            name: name(node).to_owned(),
            address: address.map_or("", |address| text(&address["address"])).to_owned(),
            ready: crate::object::is_true(&node["status"], "Ready"),
            labels: fields(&node["metadata"]["labels"]).map(text_of).collect(),
            taints: items(&node["spec"]["taints"]).to_vec(),
            unschedulable: node["spec"]["unschedulable"] == true,
            allocatable: amounts(&node["status"]["allocatable"]),
            used: Amounts::new(),
        }
    }

    /// How many Pods it has.
    pub fn pods(&self) -> i64 {
        self.used.get("pods").copied().unwrap_or(0)
    }
}

fn amounts(list: &Value) -> Amounts {
    fields(list)
        .filter_map(|(name, value)| Some((name.as_str().into(), amount(name, value)?)))
        .collect()
}

fn amount(name: &str, value: &Value) -> Option<i64> {
    let quantity = match value {
        Value::String(text) => Quantity::parse(text).ok()?,
        other => Quantity::parse(&other.to_string()).ok()?,
    };
    Some(if name == "cpu" {
        quantity.milli()
    } else {
        quantity.units()
    })
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn at_least(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let present = total.entry(name.clone()).or_default();
        *present = (*present).max(*amount);
    }
}

/// What a Pod with this spec asks for, itself included as one of `pods`.
pub fn requests(spec: &Value) -> Amounts {
    let mut total = Amounts::new();
    for container in items(&spec["containers"]) {
        add(&mut total, &amounts(&container["resources"]["requests"]));
    }
    // A sidecar runs beside all that follows; another init container runs alone with the sidecars before it.
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in items(&spec["initContainers"]) {
        let wanted = amounts(&container["resources"]["requests"]);
        if container["restartPolicy"] == "Always" {
            add(&mut sidecars, &wanted);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &wanted);
            at_least(&mut peak, &together);
        }
    }
    add(&mut total, &sidecars);
    at_least(&mut total, &peak);
    // What is said for the Pod as a whole counts instead of what its containers say.
    total.extend(amounts(&spec["resources"]["requests"]));
    add(&mut total, &amounts(&spec["overhead"]));
    total.insert("pods".into(), 1);
    total
}

/// Why a node does not take a Pod.
pub(super) struct Refusal {
    pub(super) reasons: Vec<String>,
    /// Whether it would not even if it were empty.
    pub(super) is_final: bool,
}

pub(super) fn refusal(pod: &Value, wanted: &Amounts, node: &NodeInfo) -> Refusal {
    let refused = |reason: String| Refusal {
        reasons: vec![reason],
        is_final: true,
    };
    let tolerations = items(&pod["spec"]["tolerations"]);
    if node.unschedulable && !tolerates(tolerations, "node.kubernetes.io/unschedulable", "", "NoSchedule") {
        return refused("node(s) were unschedulable".to_owned());
    }
    for taint in &node.taints {
        let (key, value, effect) = (text(&taint["key"]), text(&taint["value"]), text(&taint["effect"]));
        if effect != "PreferNoSchedule" && !tolerates(tolerations, key, value, effect) {
            return refused(format!("node(s) had untolerated taint {{{key}: {value}}}"));
        }
    }
    if !matches_node(&pod["spec"], node) {
        return refused("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    let mut refusal = Refusal {
        reasons: Vec::new(),
        is_final: false,
    };
    for (name, amount) in wanted {
        let all = node.allocatable.get(name).copied().unwrap_or(0);
        let used = node.used.get(name).copied().unwrap_or(0);
        if *amount == 0 || used.saturating_add(*amount) <= all {
            continue;
        }
        refusal.is_final |= *amount > all;
        refusal.reasons.push(match &**name {
            "pods" => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        });
    }
    refusal
}

/// Whether one of the tolerations covers a taint.
pub(crate) fn tolerates(tolerations: &[Value], key: &str, value: &str, effect: &str) -> bool {
    tolerations.iter().any(|toleration| {
        let (own_key, own_effect) = (text(&toleration["key"]), text(&toleration["effect"]));
        let exists = toleration["operator"] == "Exists";
        (own_effect.is_empty() || own_effect == effect)
            && (own_key == key || (own_key.is_empty() && exists))
            && (exists || text(&toleration["value"]) == value)
    })
}

/// Whether a node is one that the Pod's selector and required affinity allow.
pub(crate) fn matches_node(spec: &Value, node: &NodeInfo) -> bool {
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    if !fields(&spec["nodeSelector"]).all(|(key, value)| label(key) == value.as_str()) {
        return false;
    }
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    if required.is_null() {
        return true;
    }
    let field = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
    items(&required["nodeSelectorTerms"]).iter().any(|term| {
        let (expressions, by_fields) = (items(&term["matchExpressions"]), items(&term["matchFields"]));
        !(expressions.is_empty() && by_fields.is_empty())
            && expressions.iter().all(|e| holds(e, label(text(&e["key"]))))
            && by_fields.iter().all(|e| holds(e, field(text(&e["key"]))))
    })
}

fn holds(expression: &Value, found: Option<&str>) -> bool {
    let values = items(&expression["values"]);
    let is_listed = found.is_some_and(|found| values.iter().any(|value| value == found));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let limit = number(values.first().and_then(Value::as_str));
    match text(&expression["operator"]) {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => number(found)
            .zip(limit)
            .is_some_and(|(found, limit)| found > limit),
        "Lt" => number(found)
            .zip(limit)
            .is_some_and(|(found, limit)| found < limit),
        _ => false,
    }
}
