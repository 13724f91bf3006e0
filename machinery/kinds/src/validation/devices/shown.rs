//! Claims as they are inside the server, for its messages.

use serde_json::Value;

use crate::access::{entries, is_empty};
use crate::validation::shown::{as_it_is, each, internal, number, quoted};

/// The spec of a claim.
pub(super) fn claim_spec(spec: &Value) -> String {
    let selector = |value: &Value| {
        let cel = |cel: &Value| internal(cel, &[("expression", &go_text)]);
        internal(value, &[("cel", &cel)])
    };
    let selectors = |list: &Value| each(list, &selector);
    let exactly = |value: &Value| {
        internal(
            value,
            &[
                ("deviceClassName", &quoted),
                ("selectors", &selectors),
                ("allocationMode", &quoted),
                ("count", &number),
                ("adminAccess", &as_it_is),
                ("tolerations", &as_it_is),
                ("capacity", &as_it_is),
            ],
        )
    };
    let below = |value: &Value| {
        internal(
            value,
            &[
                ("name", &quoted),
                ("deviceClassName", &quoted),
                ("selectors", &selectors),
                ("allocationMode", &quoted),
                ("count", &number),
                ("tolerations", &as_it_is),
                ("capacity", &as_it_is),
            ],
        )
    };
    let request = |value: &Value| {
        internal(
            value,
            &[
                ("name", &quoted),
                ("exactly", &exactly),
                ("firstAvailable", &|list| each(list, &below)),
            ],
        )
    };
    let constraint = |value: &Value| {
        internal(
            value,
            &[
                ("requests", &as_it_is),
                ("matchAttribute", &as_it_is),
                ("distinctAttribute", &as_it_is),
            ],
        )
    };
    let config = |value: &Value| internal(value, &[("requests", &as_it_is), ("opaque", &opaque)]);
    let devices = |value: &Value| {
        internal(
            value,
            &[
                ("requests", &|list| each(list, &request)),
                ("constraints", &|list| each(list, &constraint)),
                ("config", &|list| each(list, &config)),
            ],
        )
    };
    internal(spec, &[("devices", &devices)])
}

fn opaque(value: &Value) -> String {
    internal(value, &[("driver", &quoted), ("parameters", &as_it_is)])
}

/// A text in which Go hides what a browser would take for markup.
fn go_text(value: &Value) -> String {
    let mut shown = quoted(value);
    for (letter, code) in [("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")] {
        shown = shown.replace(letter, code);
    }
    shown
}

/// The spec of a template: the metadata of its claims, and their spec.
pub(super) fn template_spec(spec: &Value) -> String {
    let mut parts: Vec<String> = entries(&spec["metadata"])
        .filter(|(_, value)| !is_empty(value))
        .map(|(key, value)| format!("\"{key}\":{value}"))
        .collect();
    parts.sort_by_key(|part| !part.starts_with("\"labels\""));
    parts.push(format!("\"Spec\":{}", claim_spec(&spec["spec"])));
    format!("{{{}}}", parts.join(","))
}

/// What a claim was given.
pub(super) fn allocation(value: &Value) -> String {
    let result = |value: &Value| {
        internal(
            value,
            &[
                ("request", &quoted),
                ("driver", &quoted),
                ("pool", &quoted),
                ("device", &quoted),
                ("adminAccess", &as_it_is),
                ("tolerations", &as_it_is),
                ("bindingConditions", &as_it_is),
                ("bindingFailureConditions", &as_it_is),
                ("shareID", &as_it_is),
                ("consumedCapacity", &as_it_is),
            ],
        )
    };
    let config = |value: &Value| {
        internal(
            value,
            &[("source", &quoted), ("requests", &as_it_is), ("opaque", &opaque)],
        )
    };
    let devices = |value: &Value| {
        internal(
            value,
            &[
                ("results", &|list| each(list, &result)),
                ("config", &|list| each(list, &config)),
            ],
        )
    };
    let selector = |value: &Value| internal(value, &[("nodeSelectorTerms", &node_terms)]);
    internal(
        value,
        &[
            ("devices", &devices),
            ("nodeSelector", &selector),
            ("allocationTimestamp", &as_it_is),
        ],
    )
}

/// The terms of a node selector.
pub(super) fn node_terms(terms: &Value) -> String {
    let rule = |value: &Value| {
        internal(
            value,
            &[("key", &quoted), ("operator", &quoted), ("values", &as_it_is)],
        )
    };
    let term = |value: &Value| {
        internal(
            value,
            &[
                ("matchExpressions", &|list| each(list, &rule)),
                ("matchFields", &|list| each(list, &rule)),
            ],
        )
    };
    each(terms, &term)
}

/// What a device is known by.
pub(super) fn device(device: &Value) -> String {
    let named = internal(
        device,
        &[("driver", &quoted), ("pool", &quoted), ("device", &quoted)],
    );
    format!("{},\"ShareID\":\"\"}}", named.trim_end_matches('}'))
}

/// An attribute of a device.
pub(super) fn attribute(value: &Value) -> String {
    let parts = [
        ("IntValue", "int"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("VersionValue", "version"),
    ];
    let parts = parts.map(|(name, key)| format!("\"{name}\":{}", value[key]));
    format!("{{{}}}", parts.join(","))
}
