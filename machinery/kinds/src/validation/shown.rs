//! Values as the server writes them into its messages.
//!
//! It prints Go structures as JSON, whose fields come in the order of their declaration rather than sorted.

use serde_json::Value;

use crate::access::{items, text};

fn fields(value: &Value, order: &[&str]) -> String {
    let parts: Vec<String> = order
        .iter()
        .filter(|key| !value[**key].is_null())
        .map(|key| format!("{}:{}", Value::from(*key), value[*key]))
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// A label selector.
pub(super) fn selector(value: &Value) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let mut parts = Vec::new();
    if !value["matchLabels"].is_null() {
        parts.push(format!("\"matchLabels\":{}", value["matchLabels"]));
    }
    if !value["matchExpressions"].is_null() {
        let expressions: Vec<String> = items(&value["matchExpressions"])
            .iter()
            .map(|expression| fields(expression, &["key", "operator", "values"]))
            .collect();
        parts.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// An owner reference.
pub(super) fn owner(value: &Value) -> String {
    fields(
        value,
        &[
            "apiVersion",
            "kind",
            "name",
            "uid",
            "controller",
            "blockOwnerDeletion",
        ],
    )
}

/// A reference to a role: inside the server its fields have no JSON names.
pub(super) fn role_ref(value: &Value) -> String {
    format!(
        "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
        Value::from(text(&value["apiGroup"])),
        Value::from(text(&value["kind"])),
        Value::from(text(&value["name"]))
    )
}
