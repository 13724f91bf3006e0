//! Services: where they can be reached from outside, and on which ports.

use std::collections::BTreeSet;

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, NONE, at, int, labels, list, name, row, text, text_or, texts};

pub(super) const KINDS: &[Kind] = &[Kind {
    group: "",
    kind: "Service",
    columns: &[
        NAME,
        Column::string("Type"),
        Column::string("Cluster-IP"),
        Column::string("External-IP"),
        Column::string("Port(s)"),
        AGE,
        Column::wide("Selector"),
    ],
    cells: service,
}];

fn service(object: &Value, context: Context<'_>) -> Vec<Value> {
    let r#type = text_or(object, "spec.type", "ClusterIP");
    let first_ip = list(object, "spec.clusterIPs").first().and_then(Value::as_str);
    row![
        name(object),
        r#type,
        first_ip.unwrap_or_else(|| text_or(object, "spec.clusterIP", NONE)),
        external_ip(object, r#type),
        ports(list(object, "spec.ports")),
        context.age(object),
        labels(at(object, "spec.selector")),
    ]
}

/// The addresses of a load balancer, each once and in order: an address is preferred to a host name.
pub(super) fn load_balancer(ingress: &[Value]) -> Vec<&str> {
    let addresses = ingress
        .iter()
        .map(|point| text_or(point, "ip", text(point, "hostname")));
    addresses
        .filter(|address| !address.is_empty())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn external_ip(object: &Value, r#type: &str) -> String {
    let mut addresses = Vec::new();
    match r#type {
        "ExternalName" => return text(object, "spec.externalName").to_owned(),
        "LoadBalancer" => addresses = load_balancer(list(object, "status.loadBalancer.ingress")),
        "ClusterIP" | "NodePort" => {}
        _ => return "<unknown>".to_owned(),
    }
    addresses.extend(texts(object, "spec.externalIPs", None));
    match (addresses.is_empty(), r#type) {
        (true, "LoadBalancer") => "<pending>".to_owned(),
        (true, _) => NONE.to_owned(),
        (false, _) => addresses.join(","),
    }
}

fn ports(ports: &[Value]) -> String {
    let printed = ports.iter().map(|port| {
        let protocol = text_or(port, "protocol", "TCP");
        match int(port, "nodePort") {
            1.. => format!("{}:{}/{protocol}", int(port, "port"), int(port, "nodePort")),
            _ => format!("{}/{protocol}", int(port, "port")),
        }
    });
    if ports.is_empty() {
        NONE.to_owned()
    } else {
        printed.collect::<Vec<_>>().join(",")
    }
}
