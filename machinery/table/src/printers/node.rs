//! Nodes.

use std::collections::BTreeSet;

use machinery_value::Value;

use super::Kind;
use crate::age::UNKNOWN;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, NONE, at, flag_or, list, name, row, text, text_or};

pub(super) const KINDS: &[Kind] = &[Kind {
    group: "",
    kind: "Node",
    columns: &[
        NAME,
        Column::string("Status"),
        Column::string("Roles"),
        AGE,
        Column::string("Version"),
        Column::wide("Internal-IP"),
        Column::wide("External-IP"),
        Column::wide("OS-Image"),
        Column::wide("Kernel-Version"),
        Column::wide("Container-Runtime"),
    ],
    cells: node,
}];

fn node(object: &Value, context: Context<'_>) -> Vec<Value> {
    let info = at(object, "status.nodeInfo");
    row![
        name(object),
        status(object),
        roles(at(object, "metadata.labels")),
        context.age(object),
        text(info, "kubeletVersion"),
        address(object, "InternalIP"),
        address(object, "ExternalIP"),
        text_or(info, "osImage", UNKNOWN),
        text_or(info, "kernelVersion", UNKNOWN),
        text_or(info, "containerRuntimeVersion", UNKNOWN),
    ]
}

fn status(object: &Value) -> String {
    // Of several conditions of the type the last one counts.
    let ready = list(object, "status.conditions")
        .iter()
        .rfind(|condition| text(condition, "type") == "Ready");
    let ready = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match flag_or(object, "spec.unschedulable", false) {
        true => format!("{ready},SchedulingDisabled"),
        false => ready.to_owned(),
    }
}

/// The roles that labels give the node, each once and in order.
fn roles(labels: &Value) -> String {
    let roles: BTreeSet<&str> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        NONE.to_owned()
    } else {
        Vec::from_iter(roles).join(",")
    }
}

fn address<'a>(object: &'a Value, r#type: &str) -> &'a str {
    let mut addresses = list(object, "status.addresses").iter();
    addresses
        .find(|address| text(address, "type") == r#type)
        .map_or(NONE, |address| text(address, "address"))
}
