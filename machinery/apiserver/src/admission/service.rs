//! Addresses of Services: a cluster IP of its own for each, from the usual private range.

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
    let mut used: HashSet<u16> = service["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok())
        .collect();
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

fn check_wanted(server: &Inner, service: &Value, wanted: &str) -> Result<(), ApiError> {
    let Ok(ip) = wanted.parse::<std::net::Ipv4Addr>() else {
        return Ok(());
    };
    let kind = Subject {
        group: "",
        name: "Service",
    };
    if !(FIRST..FIRST + COUNT).contains(&u32::from(ip)) {
        let why =
            format!("failed to allocate IP {ip}: the provided network does not match the current range");
        let error = FieldError::invalid(&FieldPath::from("spec.clusterIPs"), &json!([wanted]), why);
        return Err(ApiError::invalid(kind, meta::name(service), &[error]));
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
    Err(ApiError::invalid(kind, meta::name(service), &[error]))
}

fn taken_addresses(server: &Inner) -> HashSet<u32> {
    let prefix = key_prefix("", "services");
    let Ok(page) = server.store.range(Range {
        prefix: &prefix,
        after: None,
        limit: 0,
        at: None,
    }) else {
        return HashSet::new();
    };
    let address = |content: Value| {
        content["spec"]["clusterIP"]
            .as_str()?
            .parse::<std::net::Ipv4Addr>()
            .ok()
    };
    page.entries
        .iter()
        .filter_map(|entry| address(entry.value.content()))
        .map(u32::from)
        .collect()
}

/// The same number for the same text, in every process.
fn stable_number(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    })
}
