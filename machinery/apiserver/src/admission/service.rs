//! Addresses of Services: a cluster IP of its own for each, from the usual private range, and node ports of its own.

use std::collections::HashSet;

use machinery_store::Range;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::meta;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

/// 10.96.0.0/12 without its ends.
const FIRST: u32 = 0x0a60_0001;
const COUNT: u32 = (1 << 20) - 2;
/// The usual range of node ports.
const FIRST_NODE_PORT: u16 = 30_000;
const NODE_PORTS: u16 = 2_768;

const KIND: Subject<'static> = Subject {
    group: "",
    name: "Service",
};

/// Gives a Service its cluster IP and node ports, and keeps those that it has.
pub(crate) fn allocate_addresses(
    server: &Inner,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let wanted = service["spec"]["clusterIP"].as_str().unwrap_or("").to_owned();
    if !wanted.is_empty() && wanted != "None" && old.is_none() {
        check_wanted(server, service, &wanted)?;
    }
    let seed = stable_number(meta::uid(service));
    let mut used: HashSet<u16> = node_ports(service).collect();
    if matches!(
        service["spec"]["type"].as_str(),
        Some("NodePort" | "LoadBalancer")
    ) {
        let others = others_node_ports(server, meta::uid(service));
        check_node_ports(service, old, &others)?;
        used.extend(others);
    }
    let cluster_ip = || {
        let taken = taken_addresses(server);
        let free = (0..COUNT)
            .map(|i| FIRST + (seed % COUNT + i) % COUNT)
            .find(|ip| !taken.contains(ip));
        free.map(|ip| std::net::Ipv4Addr::from(ip).to_string())
    };
    let node_port = || {
        let start = u16::try_from(seed % u32::from(NODE_PORTS)).unwrap_or(0);
        let free = (0..NODE_PORTS)
            .map(|i| FIRST_NODE_PORT + (start + i) % NODE_PORTS)
            .find(|p| !used.contains(p))?;
        used.insert(free);
        Some(free)
    };
    machinery_kinds::strategy::allocate_service(service, cluster_ip, node_port);
    Ok(())
}

fn node_ports(service: &Value) -> impl Iterator<Item = u16> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok())
}

/// Refuses node ports that are new to a Service, and out of range or another's.
fn check_node_ports(service: &Value, old: Option<&Value>, others: &HashSet<u16>) -> Result<(), ApiError> {
    let kept: HashSet<u16> = old.into_iter().flat_map(node_ports).collect();
    let last = FIRST_NODE_PORT + NODE_PORTS - 1;
    for (index, port) in service["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let number = u16::try_from(port["nodePort"].as_u64().unwrap_or(0)).unwrap_or(0);
        let why = match number {
            0 => continue,
            number if kept.contains(&number) => continue,
            number if !(FIRST_NODE_PORT..=last).contains(&number) => format!(
                "provided port is not in the valid range. The range of valid ports is {FIRST_NODE_PORT}-{last}"
            ),
            number if others.contains(&number) => "provided port is already allocated".to_owned(),
            _ => continue,
        };
        let path = FieldPath::from("spec.ports").index(index).child("nodePort");
        let error = FieldError::invalid(&path, &json!(number), why);
        return Err(ApiError::invalid(KIND, meta::name(service), &[error]));
    }
    Ok(())
}

fn check_wanted(server: &Inner, service: &Value, wanted: &str) -> Result<(), ApiError> {
    let Ok(ip) = wanted.parse::<std::net::Ipv4Addr>() else {
        return Ok(());
    };
    if !(FIRST..FIRST + COUNT).contains(&u32::from(ip)) {
        let why =
            format!("failed to allocate IP {ip}: the provided network does not match the current range");
        let error = FieldError::invalid(&FieldPath::from("spec.clusterIPs"), &json!([wanted]), why);
        return Err(ApiError::invalid(KIND, meta::name(service), &[error]));
    }
    if !taken_addresses(server).contains(&u32::from(ip)) {
        return Ok(());
    }
    let path = FieldPath::from("spec.clusterIPs").index(0);
    let error = FieldError::invalid(
        &path,
        &json!(wanted),
        "failed to allocate IP: provided IP is already allocated",
    );
    Err(ApiError::invalid(KIND, meta::name(service), &[error]))
}

/// Every Service there is.
fn services(server: &Inner) -> Vec<Value> {
    let prefix = key_prefix("", "services");
    let range = Range {
        prefix: &prefix,
        after: None,
        limit: 0,
        at: None,
    };
    let page = server.store.range(range);
    page.map(|page| page.entries.iter().map(|entry| entry.value.content()).collect())
        .unwrap_or_default()
}

fn taken_addresses(server: &Inner) -> HashSet<u32> {
    let address = |service: &Value| {
        service["spec"]["clusterIP"]
            .as_str()?
            .parse::<std::net::Ipv4Addr>()
            .ok()
    };
    services(server)
        .iter()
        .filter_map(address)
        .map(u32::from)
        .collect()
}

fn others_node_ports(server: &Inner, uid: &str) -> HashSet<u16> {
    let others = services(server)
        .into_iter()
        .filter(|service| meta::uid(service) != uid);
    others
        .flat_map(|service| node_ports(&service).collect::<Vec<_>>())
        .collect()
}

/// The same number for the same text, in every process.
fn stable_number(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    })
}
