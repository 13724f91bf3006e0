//! The flow schemas and priority levels that every server has from the start.
//!
//! They come from a real kube-apiserver, by script. Two of each kind are mandatory: their specs cannot be changed.

use std::sync::OnceLock;

use serde_json::Value;

use crate::access::{items, text};

const FLOWS: &str = include_str!("../data/bootstrap-flows.json");

/// The objects, with apiVersion and kind.
pub fn bootstrap_objects() -> &'static [Value] {
    static OBJECTS: OnceLock<Value> = OnceLock::new();
    let list = OBJECTS
        .get_or_init(|| serde_json::from_str(FLOWS).expect("the bootstrapped flows are part of this crate"));
    items(&list["items"])
}

/// The spec that an object of this kind and name must have, whoever writes it.
pub(crate) fn mandatory_spec(kind: &str, name: &str) -> Option<&'static Value> {
    if !matches!(name, "exempt" | "catch-all") {
        return None;
    }
    bootstrap_objects()
        .iter()
        .find(|object| text(&object["kind"]) == kind && text(&object["metadata"]["name"]) == name)
        .map(|object| &object["spec"])
}

/// The condition that says whether the priority level of a flow schema is there, without its time.
pub fn dangling(level: &str, is_there: bool) -> Value {
    let (status, reason, end) = if is_there {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    serde_json::json!({
        "type": "Dangling",
        "status": status,
        "reason": reason,
        "message": format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mandatory_ones_are_there() {
        for kind in ["FlowSchema", "PriorityLevelConfiguration"] {
            for name in ["exempt", "catch-all"] {
                assert!(mandatory_spec(kind, name).is_some(), "{kind} {name}");
            }
            assert!(mandatory_spec(kind, "global-default").is_none());
        }
    }

    #[test]
    fn what_is_made_from_the_start_is_accepted() {
        for object in bootstrap_objects() {
            let gvk = crate::Gvk::new("flowcontrol.apiserver.k8s.io", "v1", text(&object["kind"]));
            assert_eq!(crate::validation::validate_create(gvk, object), [], "{object}");
        }
    }
}
