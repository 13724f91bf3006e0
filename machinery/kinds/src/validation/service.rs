//! Services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use machinery_value::field::FieldPath;
use serde_json::{Value, json};

use super::report::Report;
use super::rules;
use crate::access::{is_empty, items, text};

fn headless(spec: &Value) -> bool {
    matches!(items(&spec["clusterIPs"]), [one] if text(one) == "None")
}

/// What the server checks before anything else, because it allocates addresses first.
pub(super) fn addresses(object: &Value, report: &mut Report) {
    let spec = &object["spec"];
    if text(&spec["type"]) != "ExternalName" {
        cluster_ips(spec, &FieldPath::new("spec"), report);
    }
}

/// A Service; `old` is there when it changes.
pub(super) fn service(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    if let Some(old) = old {
        addresses_kept(spec, &old["spec"], &path, report);
    }
    let kind = text(&spec["type"]);
    let ports = items(&spec["ports"]);
    if ports.is_empty() && !headless(spec) && kind != "ExternalName" {
        report.required(&path.child("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            report.invalid(&path.child("clusterIPs").index(0), &"None".into(), detail);
        }
        "ExternalName" => external_name(spec, &path, report),
        _ => {}
    }
    let mut names = BTreeSet::new();
    for (index, one) in ports.iter().enumerate() {
        port(
            one,
            ports.len() > 1,
            &mut names,
            &path.child("ports").index(index),
            report,
        );
    }
    report.labels(&path.child("selector"), &spec["selector"]);
    affinity(spec, &path, report);
    for (index, address) in items(&spec["externalIPs"]).iter().enumerate() {
        report.messages(
            &path.child("externalIPs").index(index),
            text(address),
            rules::ip(text(address)),
        );
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    report.choice(&path.child("type"), &spec["type"], &kinds);
    port_numbers(spec, &path.child("ports"), report);
    balancer(spec, &path, report);
    traffic(spec, &path, report);
}

fn external_name(spec: &Value, path: &FieldPath, report: &mut Report) {
    for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !is_empty(&spec[key]) {
            report.forbidden(&path.child(key), "may not be set for ExternalName services");
        }
    }
    let name = text(&spec["externalName"]);
    match name.strip_suffix('.').unwrap_or(name) {
        "" => report.required(&path.child("externalName"), ""),
        name => report.messages(&path.child("externalName"), name, rules::dns_subdomain(name)),
    }
}

fn port<'a>(
    port: &'a Value,
    named: bool,
    names: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    report: &mut Report,
) {
    let name = text(&port["name"]);
    if named && name.is_empty() {
        report.required(&path.child("name"), "");
    } else if !name.is_empty() {
        report.dns_label(&path.child("name"), &port["name"]);
        if !names.insert(name) {
            report.duplicate(&path.child("name"), &port["name"]);
        }
    }
    report.port(&path.child("port"), &port["port"]);
    report.choice(
        &path.child("protocol"),
        &port["protocol"],
        &["SCTP", "TCP", "UDP"],
    );
    report.port_or_name(&path.child("targetPort"), &port["targetPort"]);
    if !port["appProtocol"].is_null() {
        report.qualified_name(&path.child("appProtocol"), text(&port["appProtocol"]));
    }
}

fn affinity(spec: &Value, path: &FieldPath, report: &mut Report) {
    report.choice(
        &path.child("sessionAffinity"),
        &spec["sessionAffinity"],
        &["ClientIP", "None"],
    );
    if text(&spec["sessionAffinity"]) == "ClientIP" {
        let path = path
            .child("sessionAffinityConfig")
            .child("clientIP")
            .child("timeoutSeconds");
        let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
        if seconds
            .as_i64()
            .is_some_and(|seconds| !(1..=86_400).contains(&seconds))
        {
            report.invalid(&path, seconds, "must be greater than 0 and less than 86400");
        }
    }
}

fn cluster_ips(spec: &Value, path: &FieldPath, report: &mut Report) {
    let at = path.child("clusterIPs");
    let all = items(&spec["clusterIPs"]);
    let first = all.first().map(text);
    match text(&spec["clusterIP"]) {
        "" if first.is_some() => {
            report.invalid(
                &at,
                &spec["clusterIPs"],
                "must be empty when `clusterIP` is not specified",
            );
        }
        "" => {}
        _ if first.is_none() => report.required(&at, ""),
        one if first != Some(one) => {
            report.invalid(&at, &spec["clusterIPs"], "first value must match `clusterIP`");
        }
        _ => {}
    }
    let mut families = BTreeSet::new();
    for (index, family) in items(&spec["ipFamilies"]).iter().enumerate() {
        let path = path.child("ipFamilies").index(index);
        report.optional_choice(&path, family, &["IPv4", "IPv6"]);
        if !families.insert(text(family)) {
            report.duplicate(&path, family);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    report.optional_choice(&path.child("ipFamilyPolicy"), &spec["ipFamilyPolicy"], &policies);
    let before = report.len();
    for (index, address) in all.iter().enumerate() {
        if index == 0 && text(address) == "None" {
            if all.len() > 1 {
                report.invalid(
                    &at,
                    &spec["clusterIPs"],
                    "'None' must be the first and only value",
                );
            }
            continue;
        }
        report.messages(&at.index(index), text(address), rules::ip(text(address)));
    }
    let sound = report.len() == before;
    if all.len() > 2 {
        report.invalid(&at, &spec["clusterIPs"], "may only hold up to 2 values");
    }
    if sound {
        families_fit(spec, all, &at, report);
    }
}

fn families_fit(spec: &Value, all: &[Value], path: &FieldPath, report: &mut Report) {
    let v6: Vec<bool> = all
        .iter()
        .map(|ip| text(ip).parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()))
        .collect();
    if v6.len() > 1 && (v6.iter().all(|v6| *v6) || !v6.iter().any(|v6| *v6)) {
        report.invalid(
            path,
            &spec["clusterIPs"],
            "may specify no more than one IP for each IP family",
        );
    }
    if headless(spec) {
        return;
    }
    for (index, (family, is_v6)) in items(&spec["ipFamilies"]).iter().zip(v6).enumerate() {
        let expected = text(family);
        if (expected == "IPv4" && is_v6) || (expected == "IPv6" && !is_v6) {
            let detail = format!("expected an {expected} value as indicated by `ipFamilies[{index}]`");
            report.invalid(&path.index(index), &all[index], detail);
        }
    }
}

fn port_numbers(spec: &Value, path: &FieldPath, report: &mut Report) {
    let ports = items(&spec["ports"]);
    let node_port = |port: &Value| port["nodePort"].as_i64().filter(|number| *number != 0);
    if text(&spec["type"]) == "ClusterIP" {
        for (index, port) in ports.iter().enumerate() {
            if node_port(port).is_some() {
                let detail = "may not be used when `type` is 'ClusterIP'";
                report.forbidden(&path.index(index).child("nodePort"), detail);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let Some(number) = node_port(port) else { continue };
        if !seen.insert((text(&port["protocol"]), number)) {
            report.duplicate(&path.index(index).child("nodePort"), &number.into());
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or_default();
        if !seen.insert((text(&port["protocol"]), number)) {
            // Inside the server the fields of a port have no JSON names.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(text(&port["protocol"]))
            );
            report.duplicate_shown(&path.index(index), &shown);
        }
    }
}

fn balancer(spec: &Value, path: &FieldPath, report: &mut Report) {
    let balanced = text(&spec["type"]) == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = items(&spec["loadBalancerSourceRanges"]);
    let at = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !balanced {
        report.forbidden(&at, only);
    }
    for (index, range) in ranges.iter().enumerate() {
        let range = text(range).trim();
        report.messages(&at.index(index), range, rules::cidr(range));
    }
    if !balanced && !spec["allocateLoadBalancerNodePorts"].is_null() {
        report.forbidden(&path.child("allocateLoadBalancerNodePorts"), only);
    }
    if !balanced && !spec["loadBalancerClass"].is_null() {
        report.forbidden(&path.child("loadBalancerClass"), only);
    }
}

fn traffic(spec: &Value, path: &FieldPath, report: &mut Report) {
    let kind = text(&spec["type"]);
    let external = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !is_empty(&spec["externalIPs"]));
    let policy = &spec["externalTrafficPolicy"];
    let at = path.child("externalTrafficPolicy");
    if external {
        report.choice(&at, policy, &["Cluster", "Local"]);
    } else if !is_empty(policy) {
        report.invalid(&at, policy, "may only be set for externally-accessible services");
    }
    let check = &spec["healthCheckNodePort"];
    let checked = kind == "LoadBalancer" && text(policy) == "Local";
    if !checked && check.as_i64().is_some_and(|port| port != 0) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        report.invalid(&path.child("healthCheckNodePort"), check, detail);
    }
    report.optional_choice(
        &path.child("internalTrafficPolicy"),
        &spec["internalTrafficPolicy"],
        &["Cluster", "Local"],
    );
    let kinds = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    report.optional_choice(
        &path.child("trafficDistribution"),
        &spec["trafficDistribution"],
        &kinds,
    );
}

/// An address, once given, stays.
fn addresses_kept(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    if text(&new["type"]) == "ExternalName" || text(&old["type"]) == "ExternalName" {
        return;
    }
    if headless(new) && headless(old) {
        return;
    }
    let at = path.child("clusterIPs");
    let (now, before) = (items(&new["clusterIPs"]), items(&old["clusterIPs"]));
    if before.len() == now.len() {
        for (index, (now, before)) in now.iter().zip(before).enumerate() {
            if now != before {
                report.invalid(&at.index(index), &new["clusterIPs"], "may not change once set");
            }
        }
        return;
    }
    if now.is_empty() {
        report.invalid(
            &at.index(0),
            &new["clusterIPs"],
            "primary clusterIP can not be unset",
        );
    } else if before.first().is_some_and(|before| Some(before) != now.first()) {
        report.invalid(&at.index(0), &new["clusterIPs"], "may not change once set");
    }
    if before.len() > now.len() && now.len() == 1 && text(&new["ipFamilyPolicy"]) != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        report.invalid(&path.child("ipFamilyPolicy"), &new["ipFamilyPolicy"], detail);
    }
}
