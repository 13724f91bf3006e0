//! Selectors: which templates a policy is about, which clusters a placement names.
//!
//! A selector is matched in one of three ways, and the closer one counts for more: by name, by labels, or all of a kind.
//! A selector that cannot be read matches nothing, so that a slip never sends something somewhere.

pub mod affinity;
pub mod index;
#[cfg(test)]
mod tests;

use lockgate_api::placement;
use lockgate_api::{PropagationPolicy, ResourceSelector};
use machinery_value::labels::{LabelSelector, Operator, Requirement, SelectorError};
use serde_json::Value;

pub use affinity::{CompiledAffinity, matches_cluster};
pub use index::PolicyIndex;

use crate::object;

/// The selector names the template.
pub const BY_NAME: u8 = 3;
/// The selector's labels match the template's, also when it asks for none.
pub const BY_LABELS: u8 = 2;
/// The selector asks for all objects of a kind.
pub const BY_KIND: u8 = 1;

/// How closely a selector matches a template: [`BY_NAME`], [`BY_LABELS`] or [`BY_KIND`]; `None` if it does not.
///
/// An empty namespace means any. Labels are not looked at when a name is given.
pub fn selector_priority(selector: &ResourceSelector, template: &Value) -> Option<u8> {
    let right_kind = selector.api_version == object::text(template, "apiVersion")
        && selector.kind == object::text(template, "kind");
    let right_namespace =
        selector.namespace.is_empty() || selector.namespace == object::meta_text(template, "namespace");
    if !right_kind || !right_namespace {
        return None;
    }
    if !selector.name.is_empty() {
        return (selector.name == object::meta_text(template, "name")).then_some(BY_NAME);
    }
    match &selector.label_selector {
        None => Some(BY_KIND),
        Some(labels) => compile_labels(labels)
            .ok()?
            .matches_labels(object::labels(template))
            .then_some(BY_LABELS),
    }
}

/// How closely the best of several selectors matches a template.
pub fn best_priority(selectors: &[ResourceSelector], template: &Value) -> Option<u8> {
    selectors
        .iter()
        .filter_map(|selector| selector_priority(selector, template))
        .max()
}

/// How closely a policy matches a template.
///
/// A policy that is being deleted matches nothing. A PropagationPolicy is about its own namespace alone, whatever its
/// selectors say, and so never about cluster-scoped templates.
pub fn policy_match(policy: &PropagationPolicy, template: &Value) -> Option<u8> {
    let namespace = &policy.metadata.namespace;
    let out_of_scope = !namespace.is_empty() && namespace != object::meta_text(template, "namespace");
    if policy.metadata.deleting() || out_of_scope {
        return None;
    }
    best_priority(&policy.spec.resource_selectors, template)
}

/// A label selector in the form that is matched often.
pub fn compile_labels(selector: &placement::LabelSelector) -> Result<LabelSelector, SelectorError> {
    let mut requirements = Vec::with_capacity(selector.match_labels.len() + selector.match_expressions.len());
    for (key, value) in &selector.match_labels {
        requirements.push(Requirement::new(key, Operator::Equals, vec![value.clone()])?);
    }
    for expression in &selector.match_expressions {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            // What no Kubernetes client may write; the parser has the words for it.
            _ => {
                let object = serde_json::json!({ "matchExpressions": [expression] });
                return LabelSelector::from_object(Some(&object));
            }
        };
        requirements.push(Requirement::new(
            &expression.key,
            operator,
            expression.values.clone(),
        )?);
    }
    Ok(LabelSelector::new(requirements))
}
