//! What one replica needs of a cluster: resources, and nodes of a kind.

use std::collections::BTreeMap;

use machinery_value::quantity::{Format, Quantity};
use serde_json::{Map, Value};

/// `replicaRequirements` for a pod's spec; none if it asks for nothing.
pub(crate) fn requirements(pod_spec: &Value) -> Option<Value> {
    let mut found = Map::new();
    if let Some(claim) = node_claim(pod_spec) {
        found.insert("nodeClaim".to_owned(), claim);
    }
    if let Some(request) = resource_request(pod_spec) {
        found.insert("resourceRequest".to_owned(), request);
    }
    (!found.is_empty()).then_some(Value::Object(found))
}

/// Which nodes will do.
fn node_claim(pod_spec: &Value) -> Option<Value> {
    let affinity = &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let parts = [
        ("hardNodeAffinity", affinity),
        ("nodeSelector", &pod_spec["nodeSelector"]),
        ("tolerations", &pod_spec["tolerations"]),
    ];
    let claim: Map<String, Value> = parts
        .into_iter()
        .filter(|(_, part)| is_given(part))
        .map(|(name, part)| (name.to_owned(), part.clone()))
        .collect();
    (!claim.is_empty()).then_some(Value::Object(claim))
}

fn is_given(part: &Value) -> bool {
    match part {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// The sum over the containers, or what the greediest init container needs, whichever is more; what is asked for the pod as
/// a whole in the place of that; and the overhead. An init container that is always restarted goes on beside those after it.
pub(crate) fn resource_request(pod_spec: &Value) -> Option<Value> {
    let mut total = Amounts::default();
    for container in list(pod_spec, "containers") {
        total.add(&requests(container));
    }
    let (mut beside, mut greediest) = (Amounts::default(), Amounts::default());
    for container in list(pod_spec, "initContainers") {
        let own = requests(container);
        if container["restartPolicy"] == "Always" {
            total.add(&own);
            beside.add(&own);
            greediest.raise(&beside);
        } else {
            let mut meanwhile = beside.clone();
            meanwhile.add(&own);
            greediest.raise(&meanwhile);
        }
    }
    total.raise(&greediest);
    total.put(pod_spec["resources"]["requests"].as_object());
    if let Some(overhead) = pod_spec["overhead"].as_object() {
        total.add(
            &overhead
                .iter()
                .map(|(name, amount)| (name.as_str(), amount))
                .collect(),
        );
    }
    total.into_list()
}

/// What a pod's spec asks for that is no amount, in words. Servers refuse such pods; objects of custom kinds that hold a
/// pod's template may say anything.
pub(crate) fn no_amount(pod_spec: &Value) -> Option<String> {
    let containers = ["containers", "initContainers"].into_iter().flat_map(|field| {
        let all = list(pod_spec, field).iter().enumerate();
        all.map(move |(index, container)| (format!("{field}[{index}]"), requests(container)))
    });
    let whole = [
        ("the pod", &pod_spec["resources"]["requests"]),
        ("the overhead", &pod_spec["overhead"]),
    ];
    let whole = whole.into_iter().map(|(place, amounts)| {
        let amounts = amounts.as_object().into_iter().flatten();
        let amounts = amounts.map(|(name, amount)| (name.as_str(), amount)).collect();
        (place.to_owned(), amounts)
    });
    containers.chain(whole).find_map(|(place, amounts)| {
        let (name, amount) = amounts
            .into_iter()
            .find(|(_, amount)| quantity(amount).is_none_or(|amount| amount.is_negative()))?;
        Some(format!("{place} asks for {name} {amount}, which is no amount"))
    })
}

fn list<'a>(pod_spec: &'a Value, field: &str) -> &'a [Value] {
    pod_spec[field].as_array().map_or(&[], Vec::as_slice)
}

/// What a container asks for. A limit without a request is a request, as servers hold it for pods.
fn requests(container: &Value) -> BTreeMap<&str, &Value> {
    let resources = &container["resources"];
    let of = |field: &str| resources[field].as_object().into_iter().flatten();
    of("limits")
        .chain(of("requests"))
        .map(|(name, amount)| (name.as_str(), amount))
        .collect()
}

/// Amounts of resources: thousandths of CPUs, whole units of everything else.
#[derive(Clone, Default)]
struct Amounts(BTreeMap<String, i64>);

impl Amounts {
    fn add(&mut self, list: &BTreeMap<&str, &Value>) {
        self.merge(list, i64::saturating_add);
    }

    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
    }

    fn put(&mut self, list: Option<&Map<String, Value>>) {
        for (name, amount) in list.into_iter().flatten() {
            if let Some(amount) = counted(name, amount) {
                self.0.insert(name.clone(), amount);
            }
        }
    }

    fn merge(&mut self, list: &BTreeMap<&str, &Value>, with: impl Fn(i64, i64) -> i64) {
        for (name, amount) in list {
            if let Some(amount) = counted(name, amount) {
                let sum = self.0.entry((*name).to_owned()).or_default();
                *sum = with(*sum, amount);
            }
        }
    }

    /// The amounts as a list of quantities; none if there are none.
    fn into_list(self) -> Option<Value> {
        let list: Map<String, Value> = self
            .0
            .into_iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| {
                let text = written(&name, amount).to_string();
                (name, Value::String(text))
            })
            .collect();
        (!list.is_empty()).then_some(Value::Object(list))
    }
}

/// An amount as it is summed; none for what is not a resource of nodes, and for what is no quantity.
fn counted(name: &str, amount: &Value) -> Option<i64> {
    let quantity = quantity(amount)?;
    match name {
        "cpu" => Some(quantity.milli()),
        "memory" | "ephemeral-storage" | "pods" => Some(quantity.units()),
        _ if is_scalar(name) => Some(quantity.units()),
        _ => None,
    }
}

fn quantity(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

fn is_scalar(name: &str) -> bool {
    name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || (name.contains('/') && !name.starts_with("requests."))
}

fn written(name: &str, amount: i64) -> Quantity {
    match name {
        "cpu" => Quantity::from_milli(amount, Format::DecimalSi),
        "memory" | "ephemeral-storage" => Quantity::from_units(amount, Format::BinarySi),
        _ if name.starts_with("hugepages-") => Quantity::from_units(amount, Format::BinarySi),
        _ => Quantity::from_units(amount, Format::DecimalSi),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_for_is_summed() {
        let table = [
            (json!({"containers": [{"name": "a", "resources": {}}]}), None),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}),
                None,
            ),
            (
                json!({"containers": [
                    {"resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}},
                    {"resources": {"requests": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": "2"}}},
                ]}),
                Some(json!({"resourceRequest": {"cpu": "1250m", "memory": "1088Mi", "nvidia.com/gpu": "2"}})),
            ),
            // A limit stands for a request that is not there, and only for that one.
            (
                json!({"containers": [{"resources": {
                    "limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m"},
                }}]}),
                Some(json!({"resourceRequest": {"cpu": "500m", "memory": "1Gi"}})),
            ),
            // Init containers run one after the other, before the rest.
            (
                json!({
                    "containers": [{"resources": {"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}}}],
                    "initContainers": [
                        {"resources": {"requests": {"cpu": "3", "memory": "1Mi"}}},
                        {"resources": {"limits": {"cpu": "2"}}},
                    ],
                    "overhead": {"cpu": "100m"},
                }),
                Some(json!({"resourceRequest": {"cpu": "3100m", "memory": "1Mi", "hugepages-2Mi": "4Mi"}})),
            ),
            // One that is always restarted runs beside those after it, and beside the rest.
            (
                json!({
                    "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                    "initContainers": [
                        {"resources": {"requests": {"cpu": "4"}}},
                        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
                        {"resources": {"requests": {"cpu": "3"}}},
                    ],
                }),
                Some(json!({"resourceRequest": {"cpu": "5", "memory": "1Gi"}})),
            ),
            (
                json!({
                    "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                    "initContainers": [
                        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    ],
                }),
                Some(json!({"resourceRequest": {"cpu": "1500m"}})),
            ),
            // What is asked for the pod as a whole counts in the place of its containers.
            (
                json!({
                    "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
                    "resources": {"requests": {"cpu": "3"}},
                    "overhead": {"cpu": "100m"},
                }),
                Some(json!({"resourceRequest": {"cpu": "3100m", "memory": "1Gi"}})),
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "lots", "storage": "1Gi", "memory": null}}}]}),
                None,
            ),
            (
                json!({
                    "nodeSelector": {"disk": "ssd"}, "tolerations": [],
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": []}],
                    }}},
                }),
                Some(json!({"nodeClaim": {
                    "nodeSelector": {"disk": "ssd"},
                    "hardNodeAffinity": {"nodeSelectorTerms": [{"matchFields": []}]},
                }})),
            ),
            (
                json!({"tolerations": [{"operator": "Exists"}]}),
                Some(json!({"nodeClaim": {"tolerations": [{"operator": "Exists"}]}})),
            ),
            (json!("broken"), None),
        ];
        for (pod_spec, expected) in table {
            assert_eq!(requirements(&pod_spec), expected, "{pod_spec}");
        }
    }
}
