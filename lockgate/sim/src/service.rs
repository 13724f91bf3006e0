//! Services and Ingresses: addresses from outside, and the addresses of the Pods behind them.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::action::{Action, Key, Kind};
use crate::behaviour::of_object;
use crate::hash::template_hash;
use crate::object::{
    fields, is_deleting, items, key, name, namespace, owner_reference, status_of, text, uid, with_status,
};
use crate::replicaset::is_ready;

/// How many addresses one slice holds, and how many are written at all.
const SLICE: usize = 1000;

/// What a decision about a Service looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The Service.
    pub service: &'a Value,
    /// The Pods that its selector matches.
    pub pods: &'a [Value],
    /// The Endpoints of its name.
    pub endpoints: Option<&'a Value>,
    /// The EndpointSlice that [`slice_key`] names.
    pub slice: Option<&'a Value>,
    /// The address that it gets from outside, if it has none.
    pub address: &'a str,
}

/// The name of the EndpointSlice of a Service.
pub fn slice_key(namespace: &str, service: &str) -> Key {
    let suffix: String = template_hash(&json!([namespace, service]), 0)
        .chars()
        .take(5)
        .collect();
    Key::new(Kind::EndpointSlice, namespace, &format!("{service}-{suffix}"))
}

/// What is to be done for a Service.
pub fn decide(seen: &Snapshot<'_>) -> Vec<Action> {
    let service = seen.service;
    if is_deleting(service) {
        return Vec::new();
    }
    let wanted = service["spec"]["type"] == "LoadBalancer";
    let ingress = json!({"ip": seen.address, "ipMode": "VIP"});
    let mut actions: Vec<Action> = balance(service, wanted, ingress)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect();
    let has_selector = fields(&service["spec"]["selector"]).next().is_some();
    if !has_selector || service["spec"]["type"] == "ExternalName" {
        return actions;
    }
    let mut pods: Vec<&Value> = seen
        .pods
        .iter()
        .filter(|pod| {
            !text(&pod["status"]["podIP"]).is_empty() && !is_deleting(pod) && !crate::pod::is_finished(pod)
        })
        .collect();
    pods.sort_by_key(|pod| (text(&pod["status"]["podIP"]), name(pod)));
    pods.truncate(SLICE);
    actions.extend(written(seen.endpoints, endpoints(service, &pods), &["subsets"]));
    actions.extend(written(
        seen.slice,
        slice(service, &pods),
        &["endpoints", "ports"],
    ));
    actions
}

/// What is to be done for an Ingress.
pub fn decide_ingress(ingress: &Value, address: &str) -> Vec<Action> {
    if is_deleting(ingress) {
        return Vec::new();
    }
    balance(ingress, true, json!({"ip": address}))
        .map(Action::UpdateStatus)
        .into_iter()
        .collect()
}

/// What is to be done when a Service is gone: its Endpoints go, too.
pub fn clean_up(endpoints: &Value) -> Vec<Action> {
    let ours = endpoints["metadata"]["labels"][MANAGED_BY.0] == MANAGED_BY.1;
    let action = || {
        Some(Action::Delete {
            key: key(endpoints)?,
            uid: uid(endpoints).to_owned(),
        })
    };
    if ours {
        action().into_iter().collect()
    } else {
        Vec::new()
    }
}

/// The object with an address from outside, or without.
fn balance(object: &Value, wanted: bool, ingress: Value) -> Option<Value> {
    let present = items(&object["status"]["loadBalancer"]["ingress"]);
    let held_back = of_object(object).is_some_and(|behaviour| !behaviour.ends_well());
    let wanted = wanted && !held_back;
    if wanted != present.is_empty() {
        return None;
    }
    let mut status = status_of(object);
    status["loadBalancer"] = if wanted {
        json!({"ingress": [ingress]})
    } else {
        json!({})
    };
    with_status(object, status)
}

const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

/// Creates an object, or brings the given fields of the one that is there to what they should be.
fn written(present: Option<&Value>, wanted: Value, parts: &[&str]) -> Option<Action> {
    let Some(present) = present else {
        return Some(Action::Create(wanted));
    };
    let is_same = |part: &&str| {
        let (have, want) = (&present[*part], &wanted[*part]);
        have == want || (items(have).is_empty() && items(want).is_empty())
    };
    if parts.iter().all(is_same) {
        return None;
    }
    let mut changed = present.clone();
    for part in parts {
        changed[*part] = wanted[*part].clone();
    }
    Some(Action::Update(changed))
}

fn labels(service: &Value, own: &[(&str, &str)]) -> Value {
    let mut labels = service["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (key, value) in own {
        labels.insert((*key).to_owned(), json!(value));
    }
    json!(labels)
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "name": name(pod), "namespace": namespace(pod), "uid": uid(pod)})
}

/// The ports behind a Service; a target by name is looked up in the first Pod that has it.
fn ports(service: &Value, pods: &[&Value]) -> Vec<Value> {
    let by_name = |wanted: &str| {
        let containers = pods.iter().flat_map(|pod| items(&pod["spec"]["containers"]));
        containers
            .flat_map(|container| items(&container["ports"]))
            .find(|port| port["name"] == wanted)
            .map(|port| port["containerPort"].clone())
    };
    let resolve = |port: &Value| {
        let number = match &port["targetPort"] {
            Value::String(wanted) => by_name(wanted)?,
            Value::Number(number) => json!(number),
            _ => port["port"].clone(),
        };
        let protocol = if port["protocol"].is_null() {
            json!("TCP")
        } else {
            port["protocol"].clone()
        };
        Some((text(&port["name"]).to_owned(), number, protocol))
    };
    let show = |(name, port, protocol)| json!({"name": name, "port": port, "protocol": protocol});
    items(&service["spec"]["ports"])
        .iter()
        .filter_map(resolve)
        .map(show)
        .collect()
}

fn endpoints(service: &Value, pods: &[&Value]) -> Value {
    let address = |pod: &&Value| {
        json!({
            "ip": pod["status"]["podIP"],
            "nodeName": pod["spec"]["nodeName"],
            "targetRef": target(pod),
        })
    };
    let ready: Vec<Value> = pods.iter().filter(|pod| is_ready(pod)).map(address).collect();
    let unready: Vec<Value> = pods.iter().filter(|pod| !is_ready(pod)).map(address).collect();
    let mut ports = ports(service, pods);
    for port in &mut ports {
        if port["name"] == ""
            && let Some(map) = port.as_object_mut()
        {
            map.remove("name");
        }
    }
    let mut subset = json!({});
    for (field, list) in [
        ("addresses", ready),
        ("notReadyAddresses", unready),
        ("ports", ports),
    ] {
        if !list.is_empty() {
            subset[field] = json!(list);
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": name(service),
            "namespace": namespace(service),
            "labels": labels(service, &[MANAGED_BY]),
        },
        "subsets": if pods.is_empty() { json!([]) } else { json!([subset]) },
    })
}

fn slice(service: &Value, pods: &[&Value]) -> Value {
    let endpoint = |pod: &&Value| {
        let ready = is_ready(pod);
        json!({
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": ready, "serving": ready, "terminating": false},
            "nodeName": pod["spec"]["nodeName"],
            "targetRef": target(pod),
        })
    };
    let key = slice_key(namespace(service), name(service));
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": &*key.name,
            "namespace": namespace(service),
            "labels": labels(service, &[
                ("kubernetes.io/service-name", name(service)),
                ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
            ]),
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": pods.iter().map(endpoint).collect::<Vec<Value>>(),
        "ports": ports(service, pods),
    })
}
