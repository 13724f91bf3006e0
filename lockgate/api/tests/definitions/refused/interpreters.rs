//! Customizations that are refused. Each is one step away from one that is accepted.

use serde_json::json;

use super::Case;

const KIND: &str = "ResourceInterpreterCustomization";

pub(crate) fn interpreters() -> Vec<Case> {
    vec![
        (KIND, json!({"target": null}), "spec.target"),
        (
            KIND,
            json!({"target": {"apiVersion": "v1", "kind": ""}}),
            "spec.target.kind",
        ),
        (KIND, json!({"target": {"kind": "X"}}), "spec.target.apiVersion"),
        (KIND, json!({"customizations": null}), "spec.customizations"),
        (
            KIND,
            json!({"customizations": {"retention": {}}}),
            "spec.customizations.retention.luaScript",
        ),
        (
            KIND,
            json!({"customizations": {"healthInterpretation": {"luaScript": ""}}}),
            "spec.customizations.healthInterpretation.luaScript",
        ),
        (
            KIND,
            json!({"customizations": {"statusReflection": {"luaScript": 3}}}),
            "spec.customizations.statusReflection.luaScript",
        ),
    ]
}
