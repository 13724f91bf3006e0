//! Services.

use serde_json::{Value, json};

use crate::access::{Object, each, make, set, set_text, text, with};

/// How long a client stays with an endpoint under `ClientIP` affinity: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

/// A Service, except for what belongs to its addresses (see [`crate::strategy::allocate_service`]).
pub(super) fn service(object: &mut Object) {
    make(object, "spec", |spec| {
        set_text(spec, "sessionAffinity", "None");
        match spec.get("sessionAffinity").map(text) {
            Some("None") => {
                spec.remove("sessionAffinityConfig");
            }
            Some("ClientIP") => affinity(spec),
            _ => {}
        }
        set_text(spec, "type", "ClusterIP");
        each(spec, "ports", port);
        let kind = spec.get("type").map(text).unwrap_or_default().to_owned();
        let external_ips = spec
            .get("externalIPs")
            .and_then(Value::as_array)
            .is_some_and(|ips| !ips.is_empty());
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external_ips) {
            set_text(spec, "externalTrafficPolicy", "Cluster");
        }
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
            set(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            set(spec, "allocateLoadBalancerNodePorts", true);
        }
    });
    let balanced = object.get("spec").map(|spec| text(&spec["type"])) == Some("LoadBalancer");
    make(object, "status", |status| {
        make(status, "loadBalancer", |balancer| {
            each(balancer, "ingress", |ingress| {
                if balanced && ingress.contains_key("ip") {
                    set(ingress, "ipMode", "VIP");
                }
            });
        });
    });
}

fn affinity(spec: &mut Object) {
    let timed = spec
        .get("sessionAffinityConfig")
        .is_some_and(|config| !config["clientIP"]["timeoutSeconds"].is_null());
    if !timed {
        let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
        spec.insert("sessionAffinityConfig".to_owned(), config);
    }
}

fn port(port: &mut Object) {
    set_text(port, "protocol", "TCP");
    let unset = match port.get("targetPort") {
        None | Some(Value::Null) => true,
        Some(Value::String(name)) => name.is_empty(),
        Some(number) => number.as_i64() == Some(0),
    };
    if unset {
        let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
        port.insert("targetPort".to_owned(), number);
    }
}

/// The backend of a webhook or API service: port 443.
pub(super) fn reference(owner: &mut Object, key: &str) {
    with(owner, key, |service| set(service, "port", 443));
}
