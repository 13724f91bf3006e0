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

/// Gives a Service its cluster IP and node ports, and keeps those that it has.
pub(crate) fn allocate_addresses(
    server: &Inner,
    service: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<(), ApiError> {
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    if let Some(old) = old {
        keep(service, old);
    }
    let wanted = service["spec"]["clusterIP"].as_str().unwrap_or("").to_owned();
    if wanted.is_empty() {
        let taken = taken_addresses(server);
        let start = stable_number(meta::uid(service)) % COUNT;
        let free = (0..COUNT).map(|i| FIRST + (start + i) % COUNT).find(|ip| !taken.contains(ip));
        let Some(ip) = free else { return Err(ApiError::internal("no free cluster IP is left")) };
        let text = std::net::Ipv4Addr::from(ip).to_string();
        service["spec"]["clusterIP"] = json!(text);
        service["spec"]["clusterIPs"] = json!([text]);
    } else if wanted != "None" && old.is_none() && !dry_run {
        check_wanted(server, service, &wanted)?;
    }
    if wanted == "None" || service["spec"]["clusterIPs"].as_array().is_none_or(Vec::is_empty) {
        let ip = service["spec"]["clusterIP"].clone();
        service["spec"]["clusterIPs"] = json!([ip]);
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        assign_node_ports(service);
    }
    for (field, value) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
        if service["spec"][field].is_null() {
            service["spec"][field] = value;
        }
    }
    Ok(())
}

fn keep(service: &mut Value, old: &Value) {
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let empty = service["spec"][field].as_str().map_or(service["spec"][field].is_null(), str::is_empty);
        if empty && !old["spec"][field].is_null() {
            service["spec"][field] = old["spec"][field].clone();
        }
    }
}

fn check_wanted(server: &Inner, service: &Value, wanted: &str) -> Result<(), ApiError> {
    let Ok(ip) = wanted.parse::<std::net::Ipv4Addr>() else { return Ok(()) };
    if !taken_addresses(server).contains(&u32::from(ip)) {
        return Ok(());
    }
    let path = FieldPath::from("spec.clusterIPs").index(0);
    let error = FieldError::invalid(&path, &json!(wanted), "failed to allocate IP: provided IP is already allocated");
    Err(ApiError::invalid(Subject { group: "", name: "Service" }, meta::name(service), &[error]))
}

fn taken_addresses(server: &Inner) -> HashSet<u32> {
    let prefix = key_prefix("", "services");
    let Ok(page) = server.store.range(Range { prefix: &prefix, after: None, limit: 0, at: None }) else {
        return HashSet::new();
    };
    let address = |content: Value| content["spec"]["clusterIP"].as_str()?.parse::<std::net::Ipv4Addr>().ok();
    page.entries.iter().filter_map(|entry| address(entry.value.content())).map(u32::from).collect()
}

/// Node ports from 30000 on, by the Service's own identity; a wanted one is kept.
fn assign_node_ports(service: &mut Value) {
    let seed = stable_number(meta::uid(service));
    let Some(ports) = service["spec"]["ports"].as_array_mut() else { return };
    let mut used: HashSet<i64> = ports.iter().filter_map(|p| p["nodePort"].as_i64()).filter(|p| *p > 0).collect();
    for port in ports {
        if port["nodePort"].as_i64().unwrap_or(0) == 0 {
            let free = (0..2768).map(|i| 30000 + (i64::from(seed) + i) % 2768).find(|p| !used.contains(p));
            if let Some(free) = free {
                used.insert(free);
                port["nodePort"] = json!(free);
            }
        }
    }
}

/// The same number for the same text, in every process.
fn stable_number(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}
