//! What the server allocates for services: addresses and node ports.
//!
//! The pools are the caller's. The cluster has one family of addresses, IPv4.

use serde_json::{Value, json};

use super::{copy, put};
use crate::access::{Object, each, is_empty, items, make, text, with};

/// `clusterIP` is the first of `clusterIPs`; clients may set either.
pub(super) fn normalise(fields: &mut Object) {
    make(fields, "spec", |spec| {
        let first = spec.get("clusterIPs").and_then(|all| all.get(0)).cloned();
        let one = spec.get("clusterIP").filter(|one| !is_empty(one)).cloned();
        match (one, first) {
            (Some(one), None) => put(spec, "clusterIPs", json!([one])),
            (None, Some(first)) => put(spec, "clusterIP", first),
            _ => {}
        }
    });
}

fn has_cluster_ip(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// Whether what an update leaves out is kept. Of a type that there is not, only that is said.
fn keeps_cluster_ip(kind: &str) -> bool {
    kind != "ExternalName"
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Fills in what only the server can choose: an address unless there is one (or the service is headless), node ports
/// where they are missing, and the address families. `cluster_ip` and `node_port` take from the caller's pools; they
/// are asked only when something is needed, and `None` leaves the field out.
pub fn allocate_service(
    service: &mut Value,
    cluster_ip: impl FnOnce() -> Option<String>,
    mut node_port: impl FnMut() -> Option<u16>,
) {
    let Some(fields) = service.as_object_mut() else {
        return;
    };
    normalise(fields);
    make(fields, "spec", |spec| {
        let kind = spec.get("type").map(text).unwrap_or("ClusterIP").to_owned();
        if !has_cluster_ip(&kind) {
            return;
        }
        let now = spec.get("clusterIP").map(text).unwrap_or_default().to_owned();
        if now.is_empty()
            && let Some(address) = cluster_ip()
        {
            put(spec, "clusterIPs", json!([address]));
            put(spec, "clusterIP", address.into());
        }
        let open = now == "None" && spec.get("selector").is_none_or(is_empty);
        families(spec, open);
        let wanted = spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
        if kind == "NodePort" || (kind == "LoadBalancer" && wanted) {
            each(spec, "ports", |port| {
                let missing = port.get("nodePort").is_none_or(|now| now.as_i64() == Some(0));
                if missing && let Some(number) = node_port() {
                    port.insert("nodePort".to_owned(), number.into());
                }
            });
        }
        let checked = kind == "LoadBalancer" && spec.get("externalTrafficPolicy").map(text) == Some("Local");
        let missing = spec
            .get("healthCheckNodePort")
            .is_none_or(|now| now.as_i64() == Some(0));
        if checked
            && missing
            && let Some(number) = node_port()
        {
            put(spec, "healthCheckNodePort", number.into());
        }
    });
}

/// A headless service that selects nothing may have endpoints of either family.
fn families(spec: &mut Object, open: bool) {
    let (policy, both) = if open {
        ("RequireDualStack", true)
    } else {
        ("SingleStack", false)
    };
    let first = match spec.get("clusterIP").map(text) {
        Some(address) if address.contains(':') => "IPv6",
        _ => "IPv4",
    };
    if spec.get("ipFamilyPolicy").is_none_or(is_empty) {
        put(spec, "ipFamilyPolicy", policy.into());
    }
    if spec.get("ipFamilies").is_none_or(is_empty) {
        put(
            spec,
            "ipFamilies",
            if both {
                json!(["IPv4", "IPv6"])
            } else {
                json!([first])
            },
        );
    }
}

/// A client that leaves out what the server allocated does not want to lose it.
pub(super) fn keep_allocated(fields: &mut Object, old: &Value) {
    let before = &old["spec"];
    let kind_before = text(&before["type"]).to_owned();
    make(fields, "spec", |spec| {
        let kind = spec.get("type").map(text).unwrap_or_default().to_owned();
        if keeps_cluster_ip(&kind_before) && keeps_cluster_ip(&kind) {
            let absent = |spec: &Object, key: &str| spec.get(key).is_none_or(is_empty);
            if absent(spec, "clusterIP") {
                copy(spec, before, "clusterIP");
            }
            // Whoever changes the one and leaves the list as it was means the list, too.
            let changed = spec.get("clusterIP").map(text) != Some(text(&before["clusterIP"]));
            if changed && spec.get("clusterIPs") == before.get("clusterIPs") {
                let address = spec.get("clusterIP").cloned().unwrap_or_default();
                put(spec, "clusterIPs", json!([address]));
            }
            if absent(spec, "clusterIPs")
                && spec.get("clusterIP").map(text) == Some(text(&before["clusterIP"]))
            {
                copy(spec, before, "clusterIPs");
            }
            for key in ["ipFamilies", "ipFamilyPolicy"] {
                if absent(spec, key) {
                    copy(spec, before, key);
                }
            }
        }
        if has_node_ports(&kind_before) && has_node_ports(&kind) {
            keep_node_ports(spec, before);
        }
        drop_outdated(spec, before, &kind);
    });
    normalise(fields);
}

fn keep_node_ports(spec: &mut Object, before: &Value) {
    let taken: Vec<i64> = spec
        .get("ports")
        .map(items)
        .unwrap_or_default()
        .iter()
        .filter_map(|port| port["nodePort"].as_i64())
        .collect();
    each(spec, "ports", |port| {
        if port.get("nodePort").is_some_and(|now| now.as_i64() != Some(0)) {
            return;
        }
        let twin = items(&before["ports"]).iter().find(|old| {
            text(&old["protocol"]) == port.get("protocol").map(text).unwrap_or_default()
                && Some(&old["port"]) == port.get("port")
        });
        if let Some(number) = twin.and_then(|old| old["nodePort"].as_i64())
            && !taken.contains(&number)
        {
            port.insert("nodePort".to_owned(), number.into());
        }
    });
}

/// A service that is only a name has no internal traffic. The policy that it had before it became one stays stored, and
/// reads leave it out.
pub(super) fn hide_policy(fields: &mut Object) {
    with(fields, "spec", |spec| {
        if spec.get("type").map(text) == Some("ExternalName") {
            spec.remove("internalTrafficPolicy");
        }
    });
}

/// Fields that the new type does not have go, if the client merely repeats them.
fn drop_outdated(spec: &mut Object, before: &Value, kind: &str) {
    let unchanged = |spec: &Object, key: &str| spec.get(key) == before.get(key);
    if !keeps_cluster_ip(kind) && keeps_cluster_ip(text(&before["type"])) && unchanged(spec, "clusterIPs") {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(key);
        }
    }
    if !has_node_ports(kind) && has_node_ports(text(&before["type"])) {
        let old_ports: Vec<&Value> = items(&before["ports"])
            .iter()
            .map(|port| &port["nodePort"])
            .collect();
        each(spec, "ports", |port| {
            if port.get("nodePort").is_some_and(|now| old_ports.contains(&now)) {
                port.remove("nodePort");
            }
        });
        if unchanged(spec, "externalTrafficPolicy") && spec.get("externalIPs").is_none_or(is_empty) {
            spec.remove("externalTrafficPolicy");
        }
    }
    if kind != "LoadBalancer" && text(&before["type"]) == "LoadBalancer" {
        for key in [
            "allocateLoadBalancerNodePorts",
            "loadBalancerClass",
            "healthCheckNodePort",
        ] {
            if unchanged(spec, key) {
                spec.remove(key);
            }
        }
    }
}
