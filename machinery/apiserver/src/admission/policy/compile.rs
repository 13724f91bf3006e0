//! Policies and their bindings as they are in force: parsed and compiled once, when one of them changes.

use std::collections::BTreeMap;

use machinery_value::Value;
use machinery_value::labels::LabelSelector;

use super::expression::{Expression, Variable};
use super::matching::{Kind, MatchResources};
use crate::meta;

/// A policy with the bindings that put it in force.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) policy: Policy,
    pub(super) bindings: Vec<Binding>,
}

/// A ValidatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    /// Whether what cannot be decided is let through.
    pub(super) ignores_failure: bool,
    pub(super) param_kind: Option<Kind>,
    pub(super) constraints: MatchResources,
    pub(super) variables: Vec<Variable>,
    pub(super) conditions: Vec<Expression>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    /// Whether an expression asks what is allowed.
    pub(super) asks: bool,
}

/// One demand of a policy.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Reason,
}

/// Something that a policy wants noted in the audit log.
#[derive(Debug)]
pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) value: Expression,
}

/// What a refusal is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reason {
    #[default]
    Invalid,
    Forbidden,
    Unauthorized,
    RequestEntityTooLarge,
}

impl Reason {
    fn named(name: &str) -> Self {
        match name {
            "Forbidden" => Self::Forbidden,
            "Unauthorized" => Self::Unauthorized,
            "RequestEntityTooLarge" => Self::RequestEntityTooLarge,
            _ => Self::Invalid,
        }
    }

    /// The reason and code of the `Status`.
    pub(super) fn status(self) -> (&'static str, u16) {
        match self {
            Self::Invalid => ("Invalid", 422),
            Self::Forbidden => ("Forbidden", 403),
            Self::Unauthorized => ("Unauthorized", 401),
            Self::RequestEntityTooLarge => ("RequestEntityTooLarge", 413),
        }
    }
}

/// A ValidatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) param: Option<ParamRef>,
    pub(super) matches: Option<MatchResources>,
    pub(super) denies: bool,
    pub(super) warns: bool,
    pub(super) audits: bool,
    /// All actions, in the binding's own order.
    pub(super) actions: Vec<String>,
}

/// Which objects a binding takes as parameters.
#[derive(Debug)]
pub(super) struct ParamRef {
    pub(super) name: String,
    /// Empty for the namespace of the request.
    pub(super) namespace: String,
    pub(super) selector: Option<Result<LabelSelector, String>>,
    pub(super) deny_missing: bool,
}

/// The policies that have a binding, by name.
pub(super) fn hooks(policies: &[Value], bindings: &[Value]) -> Vec<Hook> {
    let mut bound: BTreeMap<&str, Vec<Binding>> = BTreeMap::new();
    for binding in bindings {
        let policy = text(&binding["spec"]["policyName"]);
        bound.entry(policy).or_default().push(Binding::new(binding));
    }
    let mut hooks: Vec<Hook> = policies
        .iter()
        .filter_map(|policy| {
            let bindings = bound.remove(meta::name(policy))?;
            Some(Hook {
                policy: Policy::new(policy),
                bindings,
            })
        })
        .collect();
    hooks.sort_by(|a, b| a.policy.name.cmp(&b.policy.name));
    hooks
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Policy {
    pub(super) fn new(object: &Value) -> Self {
        let spec = &object["spec"];
        let mut variables = Vec::new();
        for variable in items(&spec["variables"]) {
            Variable::push(
                &mut variables,
                text(&variable["name"]),
                text(&variable["expression"]),
            );
        }
        let expressions = |list: &Value, key: &str| -> Vec<Expression> {
            items(list)
                .map(|item| Expression::new(text(&item[key]), &variables))
                .collect()
        };
        let validation = |item: &Value| Validation {
            expression: Expression::new(text(&item["expression"]), &variables),
            message: text(&item["message"]).trim().to_owned(),
            message_expression: Some(text(&item["messageExpression"]))
                .filter(|text| !text.is_empty())
                .map(|text| Expression::new(text, &variables)),
            reason: Reason::named(text(&item["reason"])),
        };
        let kind = &spec["paramKind"];
        let conditions = expressions(&spec["matchConditions"], "expression");
        let validations: Vec<Validation> = items(&spec["validations"]).map(validation).collect();
        Self {
            name: meta::name(object).to_owned(),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            param_kind: kind
                .is_object()
                .then(|| Kind::parse(text(&kind["apiVersion"]), text(&kind["kind"]))),
            constraints: MatchResources::new(&spec["matchConstraints"]),
            asks: conditions.iter().any(Expression::asks)
                || validations.iter().any(|validation| validation.expression.asks())
                || variables.iter().any(Variable::asks),
            conditions,
            validations,
            annotations: items(&spec["auditAnnotations"])
                .map(|item| Annotation {
                    key: text(&item["key"]).to_owned(),
                    value: Expression::new(text(&item["valueExpression"]), &variables),
                })
                .collect(),
            variables,
        }
    }
}

impl Binding {
    fn new(object: &Value) -> Self {
        let spec = &object["spec"];
        let param = &spec["paramRef"];
        let selector = |selector: &Value| {
            selector
                .is_object()
                .then(|| LabelSelector::from_object(Some(selector)).map_err(|e| e.to_string()))
        };
        let actions: Vec<String> = items(&spec["validationActions"])
            .map(|item| text(item).to_owned())
            .collect();
        let acts = |action: &str| actions.iter().any(|item| item == action);
        Self {
            name: meta::name(object).to_owned(),
            param: param.is_object().then(|| ParamRef {
                name: text(&param["name"]).to_owned(),
                namespace: text(&param["namespace"]).to_owned(),
                selector: selector(&param["selector"]),
                deny_missing: param["parameterNotFoundAction"] == "Deny",
            }),
            matches: spec["matchResources"]
                .is_object()
                .then(|| MatchResources::new(&spec["matchResources"])),
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
            actions,
        }
    }
}
