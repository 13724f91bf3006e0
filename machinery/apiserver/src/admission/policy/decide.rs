//! Decides about a request: which policies match, what they demand, and what becomes of it.
//!
//! Everything that is not in the request or the policies comes through [`World`], so that this has no server around
//! it. The first refusal is the answer; what later policies warn of is told with it.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

use machinery_schema::cel::Authorizer;
use machinery_value::Value;
use machinery_value::labels::LabelSelector;
use serde::Serialize;

use super::compile::{Annotation, Binding, Hook, ParamRef, Policy, Reason, Validation};
use super::expression::{Activation, MAX_EVALUATIONS};
use super::matching::{Asked, Kind, Matched, Neighbours};
use crate::audit::to_json;

/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;
/// All warnings of a request together, in characters, and one of them once there is little room.
const MAX_WARNINGS: usize = 4 * 1024;
const SHORT_WARNING: usize = 256;
/// The longest value of an audit annotation.
const MAX_ANNOTATION: usize = 10 * 1024;
/// Under which a failed validation is noted, if its binding audits. The first one stays.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// What policies may ask about beyond the request.
pub(super) trait World: Neighbours {
    /// The new and the old object with their types, as they are where the request matched; null for none.
    fn objects(&self, matched: Matched) -> (Value, Value);
    /// The variable `request`.
    fn request(&self, matched: Matched) -> Value;
    /// Whether objects of a kind have a namespace; none if there is no such kind.
    fn is_namespaced(&self, kind: &Kind) -> Option<bool>;
    /// Who answers what whoever makes the request may do.
    fn authorizer(&self) -> Authorizer;
    /// One parameter object.
    fn param(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value>;
    /// The parameter objects with certain labels.
    fn params(&self, kind: &Kind, namespace: &str, selector: &LabelSelector) -> Vec<Value>;
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) message: String,
    pub(super) reason: Reason,
}

/// What becomes of a request.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The first refusal.
    pub(super) denial: Option<Denial>,
    /// What to warn the client of.
    pub(super) warnings: Vec<String>,
    /// What to note in the audit log.
    pub(super) annotations: BTreeMap<String, String>,
}

/// Asks all policies. `is_audited` says whether anybody wants to know what they have to note.
pub(super) fn decide(hooks: &[Hook], asked: &Asked<'_>, world: &impl World, is_audited: bool) -> Outcome {
    let mut decider = Decider {
        asked,
        world,
        scenes: BTreeMap::new(),
        namespace: OnceCell::new(),
        authorizer: OnceCell::new(),
        budget: Cell::new(MAX_EVALUATIONS),
        is_audited,
        outcome: Outcome::default(),
    };
    for hook in hooks {
        decider.ask(hook);
    }
    decider.outcome
}

struct Decider<'a, W> {
    asked: &'a Asked<'a>,
    world: &'a W,
    scenes: BTreeMap<Matched, Scene>,
    namespace: OnceCell<Value>,
    authorizer: OnceCell<Authorizer>,
    budget: Cell<u32>,
    is_audited: bool,
    outcome: Outcome,
}

/// What expressions see of a request at one place.
struct Scene {
    object: Value,
    old_object: Value,
    request: Value,
}

/// What fails about a request, and how the refusal is called.
struct Failure {
    /// Which of the validations.
    index: usize,
    message: String,
    reason: Reason,
}

/// A failed validation as the audit log tells it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureNote<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

/// The values of a policy's audit annotations, by their keys: one for each binding and parameter, but each only once.
type Notes<'a> = BTreeMap<&'a str, Vec<String>>;

impl<W: World> Decider<'_, W> {
    fn ask(&mut self, hook: &Hook) {
        let policy = &hook.policy;
        let matched = match policy.constraints.find(self.asked, self.world) {
            Ok(Some(matched)) => matched,
            Ok(None) => return,
            Err(problem) => return self.misconfigured(policy, None, &problem),
        };
        if let Some(kind) = &policy.param_kind
            && self.world.is_namespaced(kind).is_none()
        {
            let Kind { group, version, kind } = kind;
            let problem =
                format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'");
            return self.misconfigured(policy, None, &problem);
        }
        let mut notes = Notes::new();
        for binding in &hook.bindings {
            let applies = match &binding.matches {
                Some(resources) => resources
                    .find(self.asked, self.world)
                    .map(|matched| matched.is_some()),
                None => Ok(true),
            };
            let params = applies.and_then(|applies| {
                if applies {
                    self.params(policy, binding)
                } else {
                    Ok(Vec::new())
                }
            });
            match params {
                Ok(params) => {
                    for param in params {
                        self.validate(policy, binding, matched, &param, &mut notes);
                    }
                }
                Err(problem) => self.misconfigured(policy, Some(binding), &problem),
            }
        }
        for (key, values) in notes {
            let key = format!("{}/{key}", policy.name);
            self.outcome.annotations.insert(key, values.join(", "));
        }
    }

    /// A policy that cannot be applied refuses everything it is about, unless it ignores failure.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, problem: &str) {
        if policy.ignores_failure {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        let problem = format!("failed to configure {what}: {problem}");
        self.deny(policy, binding, &problem, Reason::Invalid);
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, message: &str, reason: Reason) {
        self.outcome
            .denial
            .get_or_insert_with(|| denial(policy, binding, message, reason));
    }

    /// The parameters with which a policy runs, once for each; a single null if it takes none.
    fn params(&self, policy: &Policy, binding: &Binding) -> Result<Vec<Value>, String> {
        let (Some(kind), Some(wanted)) = (&policy.param_kind, &binding.param) else {
            return Ok(vec![Value::Null]);
        };
        let ParamRef {
            name,
            namespace,
            selector,
            deny_missing,
        } = wanted;
        let namespace = match (
            self.world.is_namespaced(kind),
            namespace.as_str(),
            self.asked.namespace,
        ) {
            (Some(true), "", "") => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .to_owned(),
                );
            }
            (Some(true), "", own) => own,
            (Some(true), named, _) => named,
            (_, "", _) => "",
            (..) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned(),
                );
            }
        };
        let found = match selector {
            _ if !name.is_empty() => self.world.param(kind, namespace, name).into_iter().collect(),
            Some(selector) => self
                .world
                .params(kind, namespace, selector.as_ref().map_err(Clone::clone)?),
            None => return Err("one of name or selector must be provided".to_owned()),
        };
        if found.is_empty() && *deny_missing {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }

    /// Runs a policy with one parameter.
    fn validate<'p>(
        &mut self,
        policy: &'p Policy,
        binding: &Binding,
        matched: Matched,
        params: &Value,
        notes: &mut Notes<'p>,
    ) {
        let (asked, world) = (self.asked, self.world);
        let authorizer = policy
            .asks
            .then(|| self.authorizer.get_or_init(|| world.authorizer()));
        let namespace = self.namespace.get_or_init(|| namespace_object(asked, world));
        let scene = self.scenes.entry(matched).or_insert_with(|| {
            let (object, old_object) = world.objects(matched);
            Scene {
                object,
                old_object,
                request: world.request(matched),
            }
        });
        let known = |namespace| {
            [
                ("object", &scene.object),
                ("oldObject", &scene.old_object),
                ("request", &scene.request),
                ("namespaceObject", namespace),
                ("params", params),
            ]
        };
        // Conditions do not see the namespace.
        let bare = known(&Value::Null);
        let early = Activation::new(&policy.variables, &bare, &self.budget, authorizer);
        let full = known(namespace);
        let activation = Activation::new(&policy.variables, &full, &self.budget, authorizer);
        // Messages and audit annotations are told nothing of what is allowed.
        let aside = Activation::new(&policy.variables, &full, &self.budget, None);

        let (failures, refused): (Vec<Failure>, _) = match meets_conditions(policy, &early) {
            Ok(false) => return,
            Ok(true) => {
                let failures = policy
                    .validations
                    .iter()
                    .enumerate()
                    .filter_map(|(index, validation)| {
                        let (message, reason) = failure(policy, validation, &activation, &aside)?;
                        Some(Failure {
                            index,
                            message,
                            reason,
                        })
                    })
                    .collect();
                (failures, annotate(policy, &aside, self.is_audited, notes))
            }
            Err(message) => {
                let failure = Failure {
                    index: 0,
                    message,
                    reason: Reason::Invalid,
                };
                (vec![failure], Ok(()))
            }
        };
        for Failure {
            index,
            message,
            reason,
        } in failures
        {
            if self.is_audited && binding.audits {
                let note = FailureNote {
                    message: &message,
                    policy: &policy.name,
                    binding: &binding.name,
                    expression_index: index,
                    validation_actions: &binding.actions,
                };
                let text = || String::from_utf8_lossy(&to_json(&[note])).into_owned();
                let annotations = &mut self.outcome.annotations;
                annotations
                    .entry(VALIDATION_FAILURE.to_owned())
                    .or_insert_with(text);
            }
            if binding.denies {
                self.deny(policy, Some(binding), &message, reason);
            }
            if binding.warns {
                let Policy { name, .. } = policy;
                warn(
                    &mut self.outcome.warnings,
                    &format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{}': {message}",
                        binding.name
                    ),
                );
            }
        }
        if let Err(message) = refused {
            self.deny(policy, Some(binding), &message, Reason::Invalid);
        }
    }
}

/// The namespace as expressions see it; null for what is in none.
fn namespace_object(asked: &Asked<'_>, world: &impl World) -> Value {
    let kind = &asked.place.kind;
    let is_namespace = kind.group.is_empty() && kind.version == "v1" && kind.kind == "Namespace";
    if asked.namespace.is_empty() || is_namespace {
        return Value::Null;
    }
    let mut namespace = world.namespace(asked.namespace).unwrap_or(Value::Null);
    if let Some(metadata) = namespace.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("ownerReferences");
    }
    namespace
}

/// Whether all match conditions hold. One that does not outweighs those that fail.
fn meets_conditions(policy: &Policy, activation: &Activation<'_>) -> Result<bool, String> {
    let mut problems: Vec<String> = Vec::new();
    for condition in &policy.conditions {
        match activation.run(condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        _ if policy.ignores_failure => Ok(false),
        [problem] => Err(problem.clone()),
        problems => Err(format!("[{}]", problems.join(", "))),
    }
}

/// What a validation has to say against the request.
fn failure(
    policy: &Policy,
    validation: &Validation,
    activation: &Activation<'_>,
    aside: &Activation<'_>,
) -> Option<(String, Reason)> {
    match activation.run(&validation.expression) {
        Ok(Value::Bool(true)) => None,
        Ok(_) => Some((message(validation, aside), validation.reason)),
        Err(_) if policy.ignores_failure => None,
        Err(problem) => Some((problem, Reason::Invalid)),
    }
}

fn message(validation: &Validation, activation: &Activation<'_>) -> String {
    if let Some(expression) = &validation.message_expression
        && let Ok(Value::String(text)) = activation.run(expression)
    {
        let text = text.trim();
        if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
            return text.to_owned();
        }
    }
    if validation.message.is_empty() {
        format!("failed expression: {}", validation.expression.text.trim())
    } else {
        validation.message.clone()
    }
}

/// What is to be noted, if anybody reads it. An annotation that fails fails the request; the others are noted all the same.
fn annotate<'p>(
    policy: &'p Policy,
    activation: &Activation<'_>,
    is_audited: bool,
    notes: &mut Notes<'p>,
) -> Result<(), String> {
    let mut refused = Ok(());
    for Annotation { key, value } in &policy.annotations {
        let found = match activation.run(value) {
            Ok(Value::String(text)) => {
                if is_audited {
                    note(notes, key, &text);
                }
                continue;
            }
            Ok(Value::Null) => continue,
            Err(_) if policy.ignores_failure => continue,
            Err(problem) => {
                refused = refused.and(Err(problem));
                continue;
            }
            Ok(Value::Bool(_)) => "bool",
            Ok(Value::Number(number)) if number.is_f64() => "double",
            Ok(Value::Number(_)) => "int",
            Ok(Value::Array(_)) => "list",
            Ok(Value::Object(_)) => "map",
        };
        refused = refused.and_then(|()| {
            Err(format!(
                "valueExpression '{}' resulted in unsupported return type: {found}. Return type must be either string or null.",
                value.text
            ))
        });
    }
    refused
}

/// Notes a value that says anything, as far as there is room for it.
fn note<'p>(notes: &mut Notes<'p>, key: &'p str, text: &str) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let end = (0..=MAX_ANNOTATION.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    let values = notes.entry(key).or_default();
    if !values.iter().any(|value| value == &text[..end]) {
        values.push(text[..end].to_owned());
    }
}

fn denial(policy: &Policy, binding: Option<&Binding>, message: &str, reason: Reason) -> Denial {
    let bound = binding
        .map(|binding| format!(" with binding '{}'", binding.name))
        .unwrap_or_default();
    let message = format!(
        "ValidatingAdmissionPolicy '{}'{bound} denied request: {message}",
        policy.name
    );
    Denial { message, reason }
}

/// Adds a warning as long as there is room; each is said once.
fn warn(warnings: &mut Vec<String>, text: &str) {
    let room = MAX_WARNINGS.saturating_sub(warnings.iter().map(|warning| warning.chars().count()).sum());
    let fits = text.chars().count() <= room;
    let text: String = text
        .chars()
        .take(if fits { room } else { room.min(SHORT_WARNING) })
        .collect();
    if !text.is_empty() && !warnings.contains(&text) {
        warnings.push(text);
    }
}
