//! Endpoints and endpoint slices: the first three addresses, and how many more there are.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, NONE, at, int, list, name, row, text, texts, three_of};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "",
        kind: "Endpoints",
        columns: &[NAME, Column::string("Endpoints"), AGE],
        cells: endpoints,
    },
    Kind {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        columns: &[
            NAME,
            Column::string("AddressType"),
            Column::string("Ports"),
            Column::string("Endpoints"),
            AGE,
        ],
        cells: endpoint_slice,
    },
];

fn endpoints(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        addresses(list(object, "subsets")),
        context.age(object)
    ]
}

/// Every address with every port of its subset; the bare address where a subset has no ports.
fn addresses(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = texts(subset, "addresses", Some("ip"));
        let ports = list(subset, "ports");
        if ports.is_empty() {
            all.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in ports {
            let port = int(port, "port");
            all.extend(ips.iter().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    // Subsets without a ready address leave the cell blank.
    if all.is_empty() {
        String::new()
    } else {
        three_of(&all)
    }
}

fn endpoint_slice(object: &Value, context: Context<'_>) -> Vec<Value> {
    let ports: Vec<String> = list(object, "ports").iter().map(port).collect();
    let addresses: Vec<String> = list(object, "endpoints")
        .iter()
        .flat_map(|endpoint| texts(endpoint, "addresses", None))
        .map(str::to_owned)
        .collect();
    row![
        name(object),
        text(object, "addressType"),
        three_of(&ports),
        three_of(&addresses),
        context.age(object)
    ]
}

/// The number of a port, else its name; `*` when it has neither.
fn port(port: &Value) -> String {
    match (at(port, "port").as_i64(), at(port, "name").as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}
