//! Ingresses, ingress classes and network policies.

use std::net::IpAddr;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{rules, selector};
use crate::access::{is_empty, items, text};

/// An Ingress.
pub(super) fn ingress(object: &Value, creating: bool, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    if items(&spec["rules"]).is_empty() && spec["defaultBackend"].is_null() {
        report.invalid(
            &path,
            &spec["rules"],
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    if !spec["defaultBackend"].is_null() {
        backend(&spec["defaultBackend"], &path.child("defaultBackend"), report);
    }
    for (index, rule) in items(&spec["rules"]).iter().enumerate() {
        ingress_rule(rule, &path.child("rules").index(index), report);
    }
    for (index, tls) in items(&spec["tls"]).iter().enumerate() {
        let path = path.child("tls").index(index);
        for (index, host) in items(&tls["hosts"]).iter().enumerate() {
            host_name(text(host), &path.child("hosts").index(index), report);
        }
        report.optional_subdomain(&path.child("secretName"), &tls["secretName"]);
    }
    if !spec["ingressClassName"].is_null() {
        report.dns_subdomain(&path.child("ingressClassName"), &spec["ingressClassName"]);
    }
    let key = "kubernetes.io/ingress.class";
    let annotation = &object["metadata"]["annotations"][key];
    let class = &spec["ingressClassName"];
    if creating && !annotation.is_null() && !class.is_null() && annotation != class {
        let at = FieldPath::new("annotations").child(key);
        report.invalid(
            &at,
            annotation,
            "must match `ingressClassName` when both are specified",
        );
    }
}

fn host_name(host: &str, path: &FieldPath, report: &mut Report) {
    let messages = if host.contains('*') {
        rules::wildcard_subdomain(host)
    } else {
        rules::dns_subdomain(host)
    };
    report.messages(path, host, messages);
}

fn ingress_rule(rule: &Value, path: &FieldPath, report: &mut Report) {
    let host = text(&rule["host"]);
    if !host.is_empty() {
        if host.parse::<IpAddr>().is_ok() {
            report.invalid(
                &path.child("host"),
                &host.into(),
                "must be a DNS name, not an IP address",
            );
        }
        host_name(host, &path.child("host"), report);
    }
    if rule["http"].is_null() {
        return;
    }
    let path = path.child("http").child("paths");
    let paths = items(&rule["http"]["paths"]);
    if paths.is_empty() {
        report.required(&path, "");
    }
    for (index, one) in paths.iter().enumerate() {
        http_path(one, &path.index(index), report);
    }
}

fn http_path(one: &Value, path: &FieldPath, report: &mut Report) {
    if one["pathType"].is_null() {
        report.required(&path.child("pathType"), "pathType must be specified");
        return;
    }
    let target = text(&one["path"]);
    let at = path.child("path");
    let value: Value = target.into();
    match text(&one["pathType"]) {
        "Exact" | "Prefix" => {
            if !target.starts_with('/') {
                report.invalid(&at, &value, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if target.contains(bad) {
                    report.invalid(&at, &value, format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if target.ends_with(bad) {
                    report.invalid(&at, &value, format!("cannot end with '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !target.is_empty() && !target.starts_with('/') {
                report.invalid(&at, &value, "must be an absolute path");
            }
        }
        _ => {
            let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
            report.not_supported(&path.child("pathType"), &one["pathType"], &kinds);
        }
    }
    backend(&one["backend"], &path.child("backend"), report);
}

fn backend(backend: &Value, path: &FieldPath, report: &mut Report) {
    let empty: Value = "".into();
    match (!backend["resource"].is_null(), !backend["service"].is_null()) {
        (true, true) => report.invalid(path, &empty, "cannot set both resource and service backends"),
        (false, false) => report.invalid(path, &empty, "resource or service backend is required"),
        (true, false) => {
            let path = path.child("resource");
            for key in ["kind", "name"] {
                match text(&backend["resource"][key]) {
                    "" => report.required(&path.child(key), ""),
                    value => report.messages(&path.child(key), value, rules::path_segment(value, false)),
                }
            }
        }
        (false, true) => {
            let service = &backend["service"];
            let at = path.child("service");
            match text(&service["name"]) {
                "" => report.required(&at.child("name"), ""),
                name => report.messages(&at.child("name"), name, rules::dns_1035_label(name)),
            }
            let name = text(&service["port"]["name"]);
            let number = service["port"]["number"].as_i64().unwrap_or_default();
            match (!name.is_empty(), number != 0) {
                (true, true) => report.invalid(path, &empty, "cannot set both port name & port number"),
                (true, false) => {
                    report.messages(&at.child("port").child("name"), name, rules::port_name(name))
                }
                (false, true) => report.port(&at.child("port").child("number"), &number.into()),
                (false, false) => report.required(path, "port name or number is required"),
            }
        }
    }
}

/// An IngressClass.
pub(super) fn ingress_class(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let controller = &object["spec"]["controller"];
    let at = path.child("controller");
    if let Some(old) = old {
        report.immutable_text(&at, controller, &old["spec"]["controller"]);
    }
    if text(controller).len() > 250 {
        report.too_long(&at, 250);
    }
    match text(controller).split_once('/') {
        _ if is_empty(controller) => report.required(&at, ""),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            report.messages(&at, host, rules::dns_subdomain(host));
        }
        _ => report.invalid(
            &at,
            controller,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
    }
}

/// A NetworkPolicy.
pub(super) fn network_policy(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    selector::check(&spec["podSelector"], &path.child("podSelector"), report);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(&spec[direction]).iter().enumerate() {
            let path = path.child(direction).index(index);
            for (index, port) in items(&rule["ports"]).iter().enumerate() {
                policy_port(port, &path.child("ports").index(index), report);
            }
            for (index, peer) in items(&rule[peers]).iter().enumerate() {
                policy_peer(peer, &path.child(peers).index(index), report);
            }
        }
    }
    let types = items(&spec["policyTypes"]);
    let at = path.child("policyTypes");
    if types.len() > 2 {
        report.invalid(
            &at,
            &spec["policyTypes"],
            "may not specify more than two policyTypes",
        );
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        report.optional_choice(&at.index(index), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(port: &Value, path: &FieldPath, report: &mut Report) {
    report.optional_choice(
        &path.child("protocol"),
        &port["protocol"],
        &["TCP", "UDP", "SCTP"],
    );
    let end = &port["endPort"];
    let at = path.child("endPort");
    if port["port"].is_null() {
        if !end.is_null() {
            report.invalid(&at, end, "may not be specified when `port` is not specified");
        }
    } else if port["port"].is_string() {
        if !end.is_null() {
            report.invalid(&at, end, "may not be specified when `port` is non-numeric");
        }
        report.port_or_name(&path.child("port"), &port["port"]);
    } else {
        report.port(&path.child("port"), &port["port"]);
        if let Some(last) = end.as_i64() {
            if last < port["port"].as_i64().unwrap_or_default() {
                report.invalid(&at, &port["port"], "must be greater than or equal to `port`");
            }
            report.port(&at, end);
        }
    }
}

fn policy_peer(peer: &Value, path: &FieldPath, report: &mut Report) {
    let mut peers = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if !peer[key].is_null() {
            peers += 1;
            selector::check(&peer[key], &path.child(key), report);
        }
    }
    let block = &peer["ipBlock"];
    if !block.is_null() {
        peers += 1;
        ip_block(block, &path.child("ipBlock"), report);
    }
    if peers == 0 {
        report.required(path, "must specify a peer");
    } else if peers > 1 && !block.is_null() {
        report.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &Value, path: &FieldPath, report: &mut Report) {
    let cidr = text(&block["cidr"]);
    if cidr.is_empty() {
        report.required(&path.child("cidr"), "");
        return;
    }
    report.messages(&path.child("cidr"), cidr, rules::cidr(cidr));
    let Some(outer) = rules::parse_cidr(cidr) else {
        return;
    };
    for (index, except) in items(&block["except"]).iter().enumerate() {
        let path = path.child("except").index(index);
        report.messages(&path, text(except), rules::cidr(text(except)));
        if let Some(inner) = rules::parse_cidr(text(except))
            && !within(outer, inner)
        {
            report.invalid(&path, except, "must be a strict subset of `cidr`");
        }
    }
}

/// Whether the prefix `inner` is a strict part of `outer`.
fn within(outer: (IpAddr, u8), inner: (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((outer_bits, width), (inner_bits, inner_width)) = (bits(outer.0), bits(inner.0));
    let mask = u128::MAX.checked_shl(128 - u32::from(outer.1)).unwrap_or(0);
    width == inner_width && outer.1 < inner.1 && outer_bits & mask == inner_bits & mask
}
