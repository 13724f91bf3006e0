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

/// Go's name of a field.
fn go_name(key: &str) -> String {
    match key {
        "apiGroups" => "APIGroups".to_owned(),
        "cel" => "CEL".to_owned(),
        _ => {
            let mut letters = key.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect())
                .unwrap_or_default()
        }
    }
}

/// How the value of a field is written.
type Shown<'a> = &'a dyn Fn(&Value) -> String;

/// A structure as it is inside the server: its fields have Go's names, and all are there.
pub(super) fn internal(value: &Value, fields: &[(&str, Shown<'_>)]) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let parts: Vec<String> = fields
        .iter()
        .map(|(key, shown)| format!("\"{}\":{}", go_name(key), shown(&value[*key])))
        .collect();
    format!("{{{}}}", parts.join(","))
}

pub(super) fn quoted(value: &Value) -> String {
    Value::from(text(value)).to_string()
}

pub(super) fn number(value: &Value) -> String {
    value.as_i64().unwrap_or_default().to_string()
}

fn flag(value: &Value) -> String {
    value.as_bool().unwrap_or_default().to_string()
}

pub(super) fn as_it_is(value: &Value) -> String {
    value.to_string()
}

pub(super) fn each(value: &Value, shown: Shown<'_>) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let all: Vec<String> = items(value).iter().map(shown).collect();
    format!("[{}]", all.join(","))
}

/// The spec of a flow schema.
pub(super) fn flow_schema(spec: &Value) -> String {
    let named = |value: &Value| internal(value, &[("name", &quoted)]);
    let account = |value: &Value| internal(value, &[("namespace", &quoted), ("name", &quoted)]);
    let subject = |value: &Value| {
        internal(
            value,
            &[
                ("kind", &quoted),
                ("user", &named),
                ("group", &named),
                ("serviceAccount", &account),
            ],
        )
    };
    let resources = |value: &Value| {
        internal(
            value,
            &[
                ("verbs", &as_it_is),
                ("apiGroups", &as_it_is),
                ("resources", &as_it_is),
                ("clusterScope", &flag),
                ("namespaces", &as_it_is),
            ],
        )
    };
    let paths = |value: &Value| internal(value, &[("verbs", &as_it_is), ("nonResourceURLs", &as_it_is)]);
    let rule = |value: &Value| {
        internal(
            value,
            &[
                ("subjects", &|list| each(list, &subject)),
                ("resourceRules", &|list| each(list, &resources)),
                ("nonResourceRules", &|list| each(list, &paths)),
            ],
        )
    };
    internal(
        spec,
        &[
            ("priorityLevelConfiguration", &named),
            ("matchingPrecedence", &number),
            ("distinguisherMethod", &|method| {
                internal(method, &[("type", &quoted)])
            }),
            ("rules", &|list| each(list, &rule)),
        ],
    )
}

/// The spec of a priority level.
pub(super) fn priority_level(spec: &Value) -> String {
    let queuing = |value: &Value| {
        internal(
            value,
            &[
                ("queues", &number),
                ("handSize", &number),
                ("queueLengthLimit", &number),
            ],
        )
    };
    let response = |value: &Value| internal(value, &[("type", &quoted), ("queuing", &queuing)]);
    let limited = |value: &Value| {
        internal(
            value,
            &[
                ("nominalConcurrencyShares", &number),
                ("limitResponse", &response),
                ("lendablePercent", &as_it_is),
                ("borrowingLimitPercent", &as_it_is),
            ],
        )
    };
    let exempt = |value: &Value| {
        internal(
            value,
            &[
                ("nominalConcurrencyShares", &as_it_is),
                ("lendablePercent", &as_it_is),
            ],
        )
    };
    internal(
        spec,
        &[("type", &quoted), ("limited", &limited), ("exempt", &exempt)],
    )
}
