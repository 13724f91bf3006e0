//! Webhooks and admission policies.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, UNSET, at, count, list, name, row, text, texts};

const GROUP: &str = "admissionregistration.k8s.io";

const WEBHOOKS: &[Column] = &[NAME, Column::integer("Webhooks"), AGE];
const BINDING: &[Column] = &[
    NAME,
    Column::string("PolicyName"),
    Column::string("ParamRef"),
    AGE,
];

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        kind: "MutatingWebhookConfiguration",
        columns: WEBHOOKS,
        cells: webhooks,
    },
    Kind {
        group: GROUP,
        kind: "ValidatingWebhookConfiguration",
        columns: WEBHOOKS,
        cells: webhooks,
    },
    Kind {
        group: GROUP,
        kind: "ValidatingAdmissionPolicy",
        columns: &[
            NAME,
            Column::integer("Validations"),
            Column::string("ParamKind"),
            AGE,
        ],
        cells: validating_policy,
    },
    Kind {
        group: GROUP,
        kind: "MutatingAdmissionPolicy",
        columns: &[
            NAME,
            Column::integer("Mutations"),
            Column::string("ParamKind"),
            AGE,
        ],
        cells: mutating_policy,
    },
    Kind {
        group: GROUP,
        kind: "ValidatingAdmissionPolicyBinding",
        columns: BINDING,
        cells: binding,
    },
    Kind {
        group: GROUP,
        kind: "MutatingAdmissionPolicyBinding",
        columns: BINDING,
        cells: binding,
    },
];

fn webhooks(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), count(object, "webhooks"), context.age(object)]
}

fn validating_policy(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        count(object, "spec.validations"),
        param_kind(object),
        context.age(object)
    ]
}

fn mutating_policy(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        count(object, "spec.mutations"),
        param_kind(object),
        context.age(object)
    ]
}

fn param_kind(object: &Value) -> String {
    match at(object, "spec.paramKind") {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    }
}

fn binding(object: &Value, context: Context<'_>) -> Vec<Value> {
    let reference = at(object, "spec.paramRef");
    let param = match (text(reference, "namespace"), text(reference, "name")) {
        (_, "") if at(reference, "selector").is_null() => UNSET.to_owned(),
        (_, "") => spelled_out(at(reference, "selector")),
        // Whether parameters are namespaced is not known here.
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    row![
        name(object),
        text(object, "spec.policyName"),
        param,
        context.age(object)
    ]
}

/// A selector with its field names, as this table alone shows it.
fn spelled_out(selector: &Value) -> String {
    let mut labels = String::new();
    for (key, value) in at(selector, "matchLabels").as_object().into_iter().flatten() {
        labels += &format!("{key}: {},", value.as_str().unwrap_or_default());
    }
    let mut expressions = String::new();
    for expression in list(selector, "matchExpressions") {
        expressions += &format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(expression, "key"),
            text(expression, "operator"),
            texts(expression, "values", None).join(" "),
        );
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
