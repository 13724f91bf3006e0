//! The `networking.k8s.io` group.

use machinery_value::Value;

use super::Kind;
use super::service::load_balancer;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, NONE, at, list, name, present_or, row, selector_cell, text, texts};

const GROUP: &str = "networking.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        kind: "Ingress",
        columns: &[
            NAME,
            Column::string("Class"),
            Column::string("Hosts"),
            Column::string("Address"),
            Column::string("Ports"),
            AGE,
        ],
        cells: ingress,
    },
    Kind {
        group: GROUP,
        kind: "IngressClass",
        columns: &[
            NAME,
            Column::string("Controller"),
            Column::string("Parameters"),
            AGE,
        ],
        cells: ingress_class,
    },
    Kind {
        group: GROUP,
        kind: "NetworkPolicy",
        columns: &[NAME, Column::string("Pod-Selector"), AGE],
        cells: network_policy,
    },
    Kind {
        group: GROUP,
        kind: "ServiceCIDR",
        columns: &[NAME, Column::string("CIDRs"), AGE],
        cells: service_cidr,
    },
    // Rows have one cell more than there are columns: an age that no heading stands over.
    Kind {
        group: GROUP,
        kind: "IPAddress",
        columns: &[NAME, Column::string("ParentRef")],
        cells: ip_address,
    },
];

fn ingress(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        present_or(object, "spec.ingressClassName", NONE),
        hosts(&texts(object, "spec.rules", Some("host"))),
        load_balancer(list(object, "status.loadBalancer.ingress")).join(","),
        if list(object, "spec.tls").is_empty() {
            "80"
        } else {
            "80, 443"
        },
        context.age(object),
    ]
}

/// The first three hosts; what comes after them is counted by rules, with or without a host.
fn hosts(rules: &[&str]) -> String {
    let mut shown = Vec::new();
    for host in rules {
        if shown.len() == 3 {
            return format!("{} + {} more...", shown.join(","), rules.len() - 3);
        }
        if !host.is_empty() {
            shown.push(*host);
        }
    }
    if shown.is_empty() {
        "*".to_owned()
    } else {
        shown.join(",")
    }
}

fn ingress_class(object: &Value, context: Context<'_>) -> Vec<Value> {
    let parameters = match at(object, "spec.parameters") {
        Value::Null => NONE.to_owned(),
        parameters => {
            let group = at(parameters, "apiGroup")
                .as_str()
                .map_or_else(String::new, |group| format!(".{group}"));
            format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
        }
    };
    row![
        name(object),
        text(object, "spec.controller"),
        parameters,
        context.age(object)
    ]
}

fn network_policy(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        selector_cell(at(object, "spec.podSelector")),
        context.age(object)
    ]
}

fn service_cidr(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        texts(object, "spec.cidrs", None).join(","),
        context.age(object)
    ]
}

fn ip_address(object: &Value, context: Context<'_>) -> Vec<Value> {
    let parent = match at(object, "spec.parentRef") {
        Value::Null => NONE.to_owned(),
        parent => {
            let resource = match text(parent, "group") {
                "" => text(parent, "resource").to_lowercase(),
                group => format!("{}.{group}", text(parent, "resource")).to_lowercase(),
            };
            match text(parent, "namespace") {
                "" => format!("{resource}/{}", text(parent, "name")),
                namespace => format!("{resource}/{namespace}/{}", text(parent, "name")),
            }
        }
    };
    row![name(object), parent, context.age(object)]
}
