//! Override policies: which rules matter for a template and a cluster, in which order, and what they change.
//!
//! ClusterOverridePolicies come first, then the OverridePolicies of the template's namespace, so that what is closer to
//! the template wins. Among the policies of a kind the less specific selector comes first, then the smaller name. Later
//! rules see what earlier ones made.

mod containers;
mod fields;
mod image;
mod metadata;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use lockgate_api::overrides::{Overriders, PlaintextOverrider};
use lockgate_api::{Cluster, OverridePolicy, keys};
use machinery_value::json_patch;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::AppliedRule;
use crate::object::{self, TemplateId};
use crate::selector;

/// A rule that matters for one template in one cluster.
#[derive(Clone, Copy, Debug)]
pub struct SelectedRule<'a> {
    /// The policy that it comes from.
    pub policy: &'a Arc<OverridePolicy>,
    /// Its place in `overrideRules`; 0 for a policy of the older form.
    pub rule: usize,
    /// What it changes.
    pub overriders: &'a Overriders,
}

/// An override that does not fit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{policy}, {rule}, for cluster {cluster}: {path}: {message}")]
pub struct OverrideError {
    /// The policy's kind and name.
    pub policy: String,
    /// The rule's place in the policy.
    pub rule: String,
    /// The cluster.
    pub cluster: String,
    /// Where in the template.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// What is wrong, and where in the template.
struct Misfit {
    path: String,
    message: String,
}

impl Misfit {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// The rules that matter for a template in a cluster, in the order in which they are applied.
pub fn relevant_overrides<'a>(
    template: &Value,
    cluster: &Cluster,
    overrides: &'a [Arc<OverridePolicy>],
) -> Vec<SelectedRule<'a>> {
    rules_for_cluster(&matching_policies(template, overrides), cluster)
}

/// Whether override policies may say how many replicas a template has in some cluster.
pub fn may_set_replicas(template: &Value, overrides: &[Arc<OverridePolicy>]) -> bool {
    matching_policies(template, overrides).into_iter().any(|policy| {
        let rules = policy.spec.override_rules.iter().map(|rule| &rule.overriders);
        rules.chain([&policy.spec.overriders]).any(may_set)
    })
}

/// Whether rules may say how many replicas there are.
pub(super) fn rules_may_set_replicas(rules: &[SelectedRule<'_>]) -> bool {
    rules.iter().any(|rule| may_set(rule.overriders))
}

/// Kinds count replicas in `spec`, and pod templates hold none.
fn may_set(overriders: &Overriders) -> bool {
    overriders.plaintext.iter().any(|patch| {
        let path = patch.path.as_str();
        (path.is_empty() || path == "/spec" || path.starts_with("/spec/"))
            && !path.starts_with("/spec/template/")
    })
}

/// The policies that are about a template, in the order in which they are applied. The same for all clusters.
pub fn matching_policies<'a>(
    template: &Value,
    overrides: &'a [Arc<OverridePolicy>],
) -> Vec<&'a Arc<OverridePolicy>> {
    let mut found: Vec<_> = overrides
        .iter()
        .filter_map(|policy| Some((closeness(policy, template)?, policy)))
        .collect();
    found.sort_by_key(|(closeness, policy)| {
        (
            !policy.metadata.namespace.is_empty(),
            *closeness,
            &policy.metadata.name,
        )
    });
    found.into_iter().map(|(_, policy)| policy).collect()
}

/// How closely a policy matches a template; none if it does not.
fn closeness(policy: &OverridePolicy, template: &Value) -> Option<u8> {
    let namespace = &policy.metadata.namespace;
    if !namespace.is_empty() && namespace != object::meta_text(template, "namespace") {
        return None;
    }
    if policy.spec.resource_selectors.is_empty() {
        return Some(selector::BY_KIND);
    }
    selector::best_priority(&policy.spec.resource_selectors, template)
}

/// The rules of these policies that are for a cluster. Rules that change nothing are left out.
pub fn rules_for_cluster<'a>(
    policies: &[&'a Arc<OverridePolicy>],
    cluster: &Cluster,
) -> Vec<SelectedRule<'a>> {
    let mut found = Vec::new();
    for &policy in policies {
        let spec = &policy.spec;
        let older = (0, spec.target_cluster.as_ref(), &spec.overriders);
        let older = spec.override_rules.is_empty().then_some(older);
        let rules = spec.override_rules.iter().enumerate();
        let rules = rules.map(|(index, rule)| (index, rule.target_cluster.as_ref(), &rule.overriders));
        for (rule, target, overriders) in rules.chain(older) {
            let right_cluster = target.is_none_or(|target| selector::matches_cluster(target, cluster));
            if right_cluster && !overriders.is_empty() {
                found.push(SelectedRule {
                    policy,
                    rule,
                    overriders,
                });
            }
        }
    }
    found
}

impl SelectedRule<'_> {
    pub(super) fn applied(&self) -> AppliedRule {
        AppliedRule {
            namespace: self.policy.metadata.namespace.clone(),
            name: self.policy.metadata.name.clone(),
            rule: self.rule,
        }
    }

    fn applied_whole(&self) -> Applied<'_> {
        Applied {
            policy_name: &self.policy.metadata.name,
            overriders: self.overriders,
            rule: None,
        }
    }

    fn applied_by_name<'b>(&'b self, nothing: &'b Overriders) -> Applied<'b> {
        Applied {
            overriders: nothing,
            rule: Some(self.rule_text()),
            ..self.applied_whole()
        }
    }

    pub(super) fn policy_text(&self) -> String {
        let metadata = &self.policy.metadata;
        if metadata.namespace.is_empty() {
            format!("ClusterOverridePolicy {}", metadata.name)
        } else {
            format!("OverridePolicy {}/{}", metadata.namespace, metadata.name)
        }
    }

    pub(super) fn rule_text(&self) -> String {
        if self.policy.spec.override_rules.is_empty() {
            "overriders".to_owned()
        } else {
            format!("overrideRules[{}]", self.rule)
        }
    }
}

/// Applies the rules to a manifest.
pub(super) fn apply(
    manifest: &mut Value,
    rules: &[SelectedRule<'_>],
    cluster: &str,
    warnings: &mut Vec<String>,
) -> Result<(), OverrideError> {
    let identity = Identity::of(manifest);
    for rule in rules {
        let mut found = Vec::new();
        apply_rule(manifest, rule.overriders, &mut found)
            .and_then(|()| identity.check(manifest))
            .map_err(|misfit| OverrideError {
                policy: rule.policy_text(),
                rule: rule.rule_text(),
                cluster: cluster.to_owned(),
                path: misfit.path,
                message: misfit.message,
            })?;
        let place = || format!("{}, {}", rule.policy_text(), rule.rule_text());
        warnings.extend(found.into_iter().map(|warning| format!("{}: {warning}", place())));
    }
    Ok(())
}

fn apply_rule(
    manifest: &mut Value,
    overriders: &Overriders,
    warnings: &mut Vec<String>,
) -> Result<(), Misfit> {
    for overrider in &overriders.image_overrider {
        image::apply(manifest, overrider, warnings)?;
    }
    for overrider in &overriders.command_overrider {
        containers::apply(manifest, "command", overrider)?;
    }
    for overrider in &overriders.args_overrider {
        containers::apply(manifest, "args", overrider)?;
    }
    for overrider in &overriders.labels_overrider {
        metadata::apply(manifest, "labels", overrider)?;
    }
    for overrider in &overriders.annotations_overrider {
        metadata::apply(manifest, "annotations", overrider)?;
    }
    for overrider in &overriders.field_overrider {
        fields::apply(manifest, overrider)?;
    }
    plaintext(manifest, &overriders.plaintext)
}

/// Applies JSON patches to the manifest, as one.
fn plaintext(manifest: &mut Value, overriders: &[PlaintextOverrider]) -> Result<(), Misfit> {
    let operations = overriders.iter().map(|overrider| {
        (
            overrider.path.as_str(),
            overrider.operator.as_str(),
            overrider.value.as_ref(),
        )
    });
    patch(manifest, operations)
}

/// Applies operations to a document, wholly or not at all. What is replaced or removed must be there.
fn patch<'a>(
    document: &mut Value,
    operations: impl Iterator<Item = (&'a str, &'a str, Option<&'a Value>)>,
) -> Result<(), Misfit> {
    let mut steps = Vec::new();
    let mut origins = Vec::new();
    for (path, operator, value) in operations {
        let remove = || json!({"op": "remove", "path": path});
        let add = || json!({"op": "add", "path": path, "value": value});
        match operator {
            "add" => steps.push(add()),
            "remove" => steps.push(remove()),
            // The server's dialect replaces also what is not there; removing first refuses that.
            "replace" => steps.extend([remove(), add()]),
            other => return Err(Misfit::new(path, unknown_operator(other))),
        }
        origins.resize(steps.len(), (path, operator));
    }
    if steps.is_empty() {
        return Ok(());
    }
    let steps = Value::Array(steps);
    json_patch::apply(document, &steps).map_err(|error| {
        let (path, operator) = origins[failing_step(document, &steps).min(origins.len() - 1)];
        Misfit::new(path, format!("{operator} does not apply: {error}"))
    })
}

/// The first step that does not apply: a search among the beginnings of a patch that fails as a whole.
fn failing_step(document: &Value, steps: &Value) -> usize {
    let steps = steps.as_array().map_or(&[][..], Vec::as_slice);
    let applies = |count: usize| {
        json_patch::apply(&mut document.clone(), &Value::Array(steps[..count].to_vec())).is_ok()
    };
    let (mut good, mut bad) = (0, steps.len());
    while good + 1 < bad {
        let middle = good.midpoint(bad);
        if applies(middle) {
            good = middle
        } else {
            bad = middle
        }
    }
    good
}

fn unknown_operator(operator: &str) -> String {
    format!("there is no operator {operator:?} here")
}

/// Which object a manifest is. The Work and everything that looks for it on members is named after it.
struct Identity {
    has_version: bool,
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn of(manifest: &Value) -> Self {
        Self {
            has_version: !object::text(manifest, "apiVersion").is_empty(),
            group: TemplateId::of(manifest).group().to_owned(),
            kind: object::text(manifest, "kind").to_owned(),
            namespace: object::meta_text(manifest, "namespace").to_owned(),
            name: object::meta_text(manifest, "name").to_owned(),
        }
    }

    fn check(&self, manifest: &Value) -> Result<(), Misfit> {
        // Another version is fine where the member has another.
        if self.has_version && object::text(manifest, "apiVersion").is_empty() {
            let message = "an override must leave a text here: no server takes an object without its version";
            return Err(Misfit::new("/apiVersion", message));
        }
        if TemplateId::of(manifest).group() != self.group {
            let message =
                "an override may change the version here, and not the group: that would be another object";
            return Err(Misfit::new("/apiVersion", message));
        }
        let parts = [
            ("/kind", object::text(manifest, "kind"), &self.kind),
            (
                "/metadata/namespace",
                object::meta_text(manifest, "namespace"),
                &self.namespace,
            ),
            ("/metadata/name", object::meta_text(manifest, "name"), &self.name),
        ];
        match parts.into_iter().find(|(_, now, before)| now != before) {
            None => Ok(()),
            Some((path, ..)) => Err(Misfit::new(
                path,
                "an override must not make it another object: propagate a template of that name instead",
            )),
        }
    }
}

/// What the annotations may weigh that name the rules: a server takes 256 KiB of annotations on an object, and a Work has others.
const APPLIED_LIMIT: usize = (256 - 32) * 1024;

/// A rule as the Work's annotations name it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied<'a> {
    policy_name: &'a str,
    overriders: &'a Overriders,
    /// Which one it is, where what it changes is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

/// The annotations of the Work that name the rules. Where they would be too long for a server, they name as many as there is
/// room for, and do not say what those change: the policies say that, and an override works however large it is.
pub(super) fn applied_annotations(rules: &[SelectedRule<'_>]) -> Vec<(String, String)> {
    let nothing = Overriders::default();
    let whole = annotations_of(rules.iter().map(|rule| (rule, rule.applied_whole())));
    if weight(&whole) <= APPLIED_LIMIT {
        return whole;
    }
    // Two keys and two pairs of brackets.
    let mut room = APPLIED_LIMIT - keys::APPLIED_CLUSTER_OVERRIDES.len() - keys::APPLIED_OVERRIDES.len() - 4;
    let named = rules.iter().map(|rule| (rule, rule.applied_by_name(&nothing)));
    annotations_of(named.take_while(|(_, applied)| {
        // With a comma.
        let length = written(applied).len() + 1;
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    }))
}

/// The annotations for ClusterOverridePolicies and for OverridePolicies, as far as there are any.
fn annotations_of<'a>(
    rules: impl Iterator<Item = (&'a SelectedRule<'a>, Applied<'a>)>,
) -> Vec<(String, String)> {
    let is_far = |(rule, _): &(&SelectedRule<'_>, Applied<'_>)| rule.policy.metadata.namespace.is_empty();
    let (far, near): (Vec<_>, Vec<_>) = rules.partition(is_far);
    [
        (keys::APPLIED_CLUSTER_OVERRIDES, far),
        (keys::APPLIED_OVERRIDES, near),
    ]
    .into_iter()
    .filter(|(_, rules)| !rules.is_empty())
    .map(|(key, rules)| {
        let applied: Vec<Applied<'_>> = rules.into_iter().map(|(_, applied)| applied).collect();
        (key.to_owned(), written(&applied))
    })
    .collect()
}

fn weight(annotations: &[(String, String)]) -> usize {
    let each = annotations.iter().map(|(key, value)| key.len() + value.len());
    each.sum()
}

fn written(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    go_escaped(text.expect("strings, lists and maps with string keys are always written"))
}

/// JSON as Go writes it: what could be markup is escaped. Such characters stand in strings only.
fn go_escaped(json: String) -> String {
    const ESCAPED: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    ESCAPED.iter().fold(json, |json, (character, escape)| {
        if json.contains(*character) {
            json.replace(*character, escape)
        } else {
            json
        }
    })
}
