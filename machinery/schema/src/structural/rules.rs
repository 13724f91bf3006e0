//! The rules of a schema: their texts, and whether their expressions make sense there.

use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Value, json};

use super::Schema;
use super::openapi::{Found, Place};
use crate::cel::{Reason, Rule, check_message_expression, check_rule, field_path, max_cardinality};
use crate::go;
use crate::schema::SchemaRef;

/// Checks the rules of one node. `before` is how many errors there were before the node was visited.
pub(super) fn check(
    schema: Schema<'_>,
    compiled: Option<SchemaRef<'_>>,
    path: &FieldPath,
    place: &Place,
    before: usize,
    found: &mut Found,
) {
    let Some(list) = schema.get("x-kubernetes-validations").and_then(Value::as_array) else {
        return;
    };
    let base = path.child("x-kubernetes-validations");
    for (index, value) in list.iter().enumerate() {
        if let Some(rule) = Schema::of(value) {
            rule_texts(rule, compiled, &base.index(index), &mut found.schema);
        }
    }
    // What is wrong with the schema itself, here or below, must be settled first.
    let Some(compiled) = compiled.filter(|_| found.schema.len() == before) else {
        return;
    };
    for (index, (rule, value)) in compiled.rules().iter().zip(list).enumerate() {
        rule_expressions(compiled, rule, value, &base.index(index), place, found);
    }
}

fn has_newline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn rule_texts(
    rule: Schema<'_>,
    compiled: Option<SchemaRef<'_>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let (expression, message) = (rule.text("rule"), rule.text("message"));
    let message_path = path.child("message");
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.push(go::invalid(
            &message_path,
            &json!(message),
            "must be non-empty if specified",
        ));
    } else if has_newline(message.trim()) {
        errors.push(go::invalid(
            &message_path,
            &json!(message),
            "must not contain line breaks",
        ));
    } else if has_newline(expression.trim()) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&message_path, detail));
    }
    let message_expression = rule.text("messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), detail));
    }
    if let Some(reason) = rule
        .get("reason")
        .filter(|reason| !reason.as_str().is_some_and(|r| Reason::NAMES.contains(&r)))
    {
        errors.push(FieldError::not_supported(
            &path.child("reason"),
            reason,
            &Reason::NAMES,
        ));
    }
    let below = rule.text("fieldPath");
    let at = path.child("fieldPath");
    if below.is_empty() {
        return;
    }
    if below.trim().is_empty() {
        errors.push(go::invalid(&at, &json!(below), "must be non-empty if specified"));
    }
    if has_newline(below) {
        errors.push(go::invalid(&at, &json!(below), "must not contain line breaks"));
    }
    if compiled.is_some_and(|schema| field_path(schema, below).is_none()) {
        errors.push(go::invalid(&at, &json!(below), "must be a valid path"));
    }
}

/// A rule as the server's errors show it: with the names of its fields in the server's code.
fn shown_rule(rule: &Value) -> String {
    let text = |name: &str| go::json(&json!(rule.get(name).and_then(Value::as_str).unwrap_or("")));
    let value = |name: &str| go::json(rule.get(name).unwrap_or(&Value::Null));
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        value("reason"),
        text("fieldPath"),
        value("optionalOldSelf"),
    )
}

fn rule_expressions(
    schema: SchemaRef<'_>,
    rule: &Rule,
    written: &Value,
    path: &FieldPath,
    place: &Place,
    found: &mut Found,
) {
    let Found {
        rules: errors, costs, ..
    } = found;
    let resource = place.root || schema.embedded_resource();
    let rule_path = path.child("rule");
    let shown = shown_rule(written);
    match check_rule(schema, resource, rule) {
        Err(problem) => errors.push(go::error(
            FieldErrorKind::Invalid,
            &rule_path,
            Some(&shown),
            &problem,
        )),
        Ok(once) => {
            let times = place.cardinality.unwrap_or_else(|| max_cardinality(schema));
            let cost = once.saturating_mul(times);
            errors.extend(costs.observe(&rule_path, "estimated rule cost", cost));
            if let Some(source) = rule.message_expression.as_deref() {
                let at = path.child("messageExpression");
                match check_message_expression(schema, resource, rule, source) {
                    Err(problem) => {
                        errors.push(go::error(FieldErrorKind::Invalid, &at, Some(&shown), &problem));
                    }
                    Ok(cost) => errors.extend(costs.observe(&at, "estimated messageExpression cost", cost)),
                }
            }
        }
    }
    let uses_old_self = rule.compiled().is_ok_and(|compiled| compiled.uses_old_self);
    if uses_old_self {
        if let Some(within) = &place.uncorrelatable {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            errors.push(go::invalid(&rule_path, &json!(rule.rule), &detail));
        }
    } else if let Some(flag) = rule.optional_old_self {
        let at = path.child("optionalOldSelf");
        errors.push(go::invalid(
            &at,
            &json!(flag),
            "may not be set if oldSelf is not used in rule",
        ));
    }
}
