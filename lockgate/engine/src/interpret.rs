//! How kinds are read by those who know them: scripts of ResourceInterpreterCustomizations, in the place of what this crate
//! knows itself.
//!
//! What always holds: a script is a pure function in bounded steps and memory; one that fails, answers with nonsense or makes
//! another object of an object is an [`InterpretError`] that names the customization and the field, and concerns only the
//! object that it was asked about.

mod components;
mod kube;
mod requirements;
mod running;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lockgate_api::InterpreterCustomization;
use lockgate_api::binding::AggregatedStatusItem;
use lockgate_script::{Limits, ScriptError};
use machinery_value::encode::encoded_len;
use machinery_value::hash::canonical_hash;
use machinery_value::labels::{LabelSelector, SelectorError};
use serde_json::{Value, json};
use thiserror::Error;

use crate::dependencies::{self, Dependency, settled};
use crate::object::{self, TemplateId};
use crate::observe::{Health, STATUS_BYTES, cut};
use crate::render::Workload;

pub use running::Runner;
use running::Running;

/// The most replicas that anybody may ask for.
const REPLICAS: i64 = i32::MAX as i64;
/// The longest message about an answer, in characters.
const MESSAGE: usize = 1024;

/// A question that a script answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// What a member's object keeps.
    Retain,
    /// How many replicas a template asks for.
    Replicas,
    /// Which parts of it have replicas of their own.
    Components,
    /// The manifest with a cluster's share of replicas.
    Revise,
    /// Which part of a member's status is kept.
    Reflect,
    /// The template's status.
    Aggregate,
    /// Whether a member's object is well.
    Health,
    /// What a template needs beside itself.
    Dependencies,
}

impl Operation {
    /// The field of the customization, and the function that its script defines.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Retain => ("retention", "Retain"),
            Self::Replicas => ("replicaResource", "GetReplicas"),
            Self::Components => ("componentResource", "GetComponents"),
            Self::Revise => ("replicaRevision", "ReviseReplica"),
            Self::Reflect => ("statusReflection", "ReflectStatus"),
            Self::Aggregate => ("statusAggregation", "AggregateStatus"),
            Self::Health => ("healthInterpretation", "InterpretHealth"),
            Self::Dependencies => ("dependencyInterpretation", "GetDependencies"),
        }
    }
}

/// A script that has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("ResourceInterpreterCustomization {customization}, {field}: {error}")]
pub struct InterpretError {
    /// The customization's name.
    pub customization: String,
    /// The field with the script.
    pub field: &'static str,
    /// What is wrong.
    pub error: ScriptError,
}

/// A script, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    customization: Arc<str>,
    operation: Operation,
    source: Arc<str>,
    running: Running,
}

/// How the objects of one kind are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpreter {
    scripts: BTreeMap<Operation, Script>,
}

/// How the objects of all customized kinds are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpreters {
    by_kind: HashMap<(String, String), Arc<Interpreter>>,
    shadowed: HashMap<String, Vec<Shadowed>>,
}

/// A script that nobody asks, because another customization has one for the same question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The field with the script.
    pub field: &'static str,
    /// The customization whose script counts.
    pub by: Arc<str>,
}

impl Interpreters {
    /// What these customizations say together: of two scripts for one question about one kind, that of the smaller name.
    /// Customizations that are going say nothing.
    pub fn of<'a>(customizations: impl IntoIterator<Item = &'a InterpreterCustomization>) -> Self {
        Self::run_by(None, customizations)
    }

    /// The same, with scripts that somebody runs.
    pub fn run_by<'a>(
        runner: Option<&Arc<dyn Runner>>,
        customizations: impl IntoIterator<Item = &'a InterpreterCustomization>,
    ) -> Self {
        let mut all: Vec<_> = customizations
            .into_iter()
            .filter(|one| !one.metadata.deleting())
            .collect();
        all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut by_kind: HashMap<(String, String), Interpreter> = HashMap::new();
        let mut shadowed: HashMap<String, Vec<Shadowed>> = HashMap::new();
        for one in all {
            let target = &one.spec.target;
            let interpreter = by_kind
                .entry((target.api_version.clone(), target.kind.clone()))
                .or_default();
            for script in scripts(one, runner) {
                if let Some(other) = interpreter.scripts.get(&script.operation) {
                    let name = one.metadata.name.clone();
                    shadowed.entry(name).or_default().push(Shadowed {
                        field: script.operation.names().0,
                        by: other.customization.clone(),
                    });
                } else {
                    interpreter.scripts.insert(script.operation, script);
                }
            }
        }
        Self {
            shadowed,
            by_kind: by_kind
                .into_iter()
                .map(|(kind, one)| (kind, Arc::new(one)))
                .collect(),
        }
    }

    /// The scripts of a customization that nobody asks.
    pub fn shadowed(&self, customization: &str) -> &[Shadowed] {
        self.shadowed.get(customization).map_or(&[], Vec::as_slice)
    }

    /// How objects of a kind are read; none if as usual.
    pub fn get(&self, api_version: &str, kind: &str) -> Option<Arc<Interpreter>> {
        if self.by_kind.is_empty() {
            return None;
        }
        self.by_kind
            .get(&(api_version.to_owned(), kind.to_owned()))
            .cloned()
    }

    /// How an object is read.
    pub fn of_object(&self, object: &Value) -> Option<Arc<Interpreter>> {
        self.get(object::text(object, "apiVersion"), object::text(object, "kind"))
    }

    /// The kinds that are read in a way of their own.
    pub fn kinds(&self) -> impl Iterator<Item = &(String, String)> {
        self.by_kind.keys()
    }
}

/// The scripts of a customization.
fn scripts(customization: &InterpreterCustomization, runner: Option<&Arc<dyn Runner>>) -> Vec<Script> {
    let given = &customization.spec.customizations;
    let name: Arc<str> = customization.metadata.name.as_str().into();
    let all = [
        (Operation::Retain, &given.retention),
        (Operation::Replicas, &given.replica_resource),
        (Operation::Components, &given.component_resource),
        (Operation::Revise, &given.replica_revision),
        (Operation::Reflect, &given.status_reflection),
        (Operation::Aggregate, &given.status_aggregation),
        (Operation::Health, &given.health_interpretation),
        (Operation::Dependencies, &given.dependency_interpretation),
    ];
    let given = all.into_iter().filter_map(|(operation, script)| {
        let source = script.as_ref()?.lua_script.as_str();
        Some(Script {
            customization: name.clone(),
            operation,
            source: source.into(),
            running: Running::by(runner),
        })
    });
    given.collect()
}

/// What is wrong with a customization's scripts, as far as can be told without an object.
pub fn check(customization: &InterpreterCustomization) -> Vec<InterpretError> {
    let scripts = scripts(customization, None);
    let checked = scripts.iter().filter_map(|script| {
        let (_, function) = script.operation.names();
        let checked = lockgate_script::check(&script.source, function, &[kube::MODULE], Limits::default());
        checked.err().map(|error| script.failed(error))
    });
    checked.collect()
}

impl Interpreter {
    /// The script for a question.
    pub fn script(&self, operation: Operation) -> Option<&Script> {
        self.scripts.get(&operation)
    }

    /// The replicas of a template, if a script says so.
    pub fn replicas(&self, template: &Value) -> Option<Result<Workload, InterpretError>> {
        let script = self.script(Operation::Replicas)?;
        Some(script.call(&[template], &[]).and_then(|answer| {
            let replicas = match answer.first() {
                Some(Value::Number(number)) => number.as_i64().filter(|n| (0..=REPLICAS).contains(n)),
                Some(Value::Null) | None => Some(0),
                _ => None,
            };
            let Some(replicas) = replicas else {
                return Err(script.nonsense(&answer, "a number of replicas"));
            };
            let requirements = requirements::read(script, answer.get(1))?;
            Ok(Workload {
                replicas,
                requirements,
            })
        }))
    }

    /// The parts of a template that have replicas of their own, if a script says so.
    pub fn components(&self, template: &Value) -> Option<Result<Vec<Value>, InterpretError>> {
        let script = self.script(Operation::Components)?;
        Some(
            script
                .call(&[template], &[])
                .and_then(|answer| components::read(script, &answer)),
        )
    }

    /// The object to be written to a member, if a script says so.
    pub fn retain(&self, desired: &Value, live: &Value) -> Option<Result<Value, InterpretError>> {
        let script = self.script(Operation::Retain)?;
        Some(
            script
                .call(&[desired, live], &[desired, live])
                .and_then(|answer| script.same_object(desired, answer)),
        )
    }

    /// The part of a member's status that is kept, if a script says so.
    pub fn reflect(&self, live: &Value) -> Option<Result<Option<Value>, InterpretError>> {
        let script = self.script(Operation::Reflect)?;
        let like = &live["status"];
        Some(
            script
                .call(&[live], &[like])
                .and_then(|answer| match answer.into_iter().next() {
                    None | Some(Value::Null) => Ok(None),
                    Some(status @ Value::Object(_)) => match encoded_len(&status) {
                        0..=STATUS_BYTES => Ok(Some(status)),
                        bytes => Err(script.wrong(&format!(
                            "ReflectStatus must return a status of at most {STATUS_BYTES} bytes, and returns one of {bytes}"
                        ))),
                    },
                    Some(other) => Err(script.nonsense(&[other], "a status")),
                }),
        )
    }

    /// Whether a member's object is well, if a script says so.
    pub fn health(&self, live: &Value) -> Option<Result<Health, InterpretError>> {
        let script = self.script(Operation::Health)?;
        Some(script.call(&[live], &[]).and_then(|answer| match answer.first() {
            Some(Value::Bool(true)) => Ok(Health::Healthy),
            Some(Value::Bool(false)) => Ok(Health::Unhealthy),
            _ => Err(script.nonsense(&answer, "true or false")),
        }))
    }

    /// The template's status, if a script says so; none if it is as it was.
    pub fn aggregate(
        &self,
        template: &Value,
        items: &[AggregatedStatusItem],
    ) -> Option<Result<Option<Value>, InterpretError>> {
        let script = self.script(Operation::Aggregate)?;
        let items = json!(items);
        let answer = script
            .call(&[template, &items], &[template])
            .and_then(|answer| script.same_object(template, answer));
        Some(answer.and_then(|mut answer| match answer["status"].take() {
            Value::Null => Ok(None),
            status @ Value::Object(_) => Ok((status != template["status"]).then_some(status)),
            other => Err(script.nonsense(&[other], "the object with a map as its status")),
        }))
    }

    /// What a template needs, if a script says so.
    pub fn dependencies(&self, template: &Value) -> Option<Result<Vec<Dependency>, InterpretError>> {
        let script = self.script(Operation::Dependencies)?;
        Some(script.call(&[template], &[]).and_then(|answer| {
            let list = match answer.first() {
                None | Some(Value::Null) => return Ok(Vec::new()),
                Some(Value::Object(map)) if map.is_empty() => return Ok(Vec::new()),
                Some(list) => list.clone(),
            };
            let found: Vec<Dependency> =
                serde_json::from_value(list).map_err(|_| script.nonsense(&answer, "a list of objects"))?;
            let named = found.iter().all(|needed| {
                !needed.api_version.is_empty()
                    && !needed.kind.is_empty()
                    && (!needed.name.is_empty() || needed.label_selector.is_some())
            });
            if !named {
                return Err(script.nonsense(&answer, "a list of objects with apiVersion, kind and name"));
            }
            if let Some((needed, error)) = found.iter().find_map(unreadable) {
                return Err(script.wrong(&format!(
                    "GetDependencies names a {} by a labelSelector that cannot be read: {error}",
                    needed.kind
                )));
            }
            let found = settled(found, &TemplateId::of(template));
            match dependencies::too_many(&found) {
                None => Ok(found),
                Some(why) => Err(script.wrong(&format!("GetDependencies returns {why}"))),
            }
        }))
    }
}

/// A dependency whose selector is none, and why. It would mean nothing, and nobody would say so.
fn unreadable(needed: &Dependency) -> Option<(&Dependency, SelectorError)> {
    let selector = needed.label_selector.as_ref()?;
    let error = LabelSelector::from_object(Some(selector)).err()?;
    Some((needed, error))
}

impl Script {
    /// What changes when the script does, for digests.
    pub fn digest(&self) -> String {
        canonical_hash(&json!(&*self.source)).to_string()
    }

    /// The manifest with a cluster's share of replicas.
    pub fn revise(&self, manifest: &Value, replicas: i64) -> Result<Value, InterpretError> {
        let answer = self.call(&[manifest, &json!(replicas)], &[manifest])?;
        self.same_object(manifest, answer)
    }

    /// The hub does not store what the script answered, for this reason.
    pub fn refused(&self, why: &str) -> InterpretError {
        let (_, function) = self.operation.names();
        self.wrong(&format!("the hub refuses what {function} makes: {why}"))
    }

    fn call(&self, arguments: &[&Value], like: &[&Value]) -> Result<Vec<Value>, InterpretError> {
        let (_, function) = self.operation.names();
        let modules = [kube::MODULE];
        let call = || {
            lockgate_script::call(
                &self.source,
                function,
                arguments,
                like,
                &modules,
                Limits::default(),
            )
        };
        self.running
            .ask(arguments, call)
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ScriptError) -> InterpretError {
        InterpretError {
            customization: self.customization.to_string(),
            field: self.operation.names().0,
            error,
        }
    }

    /// An answer that means nothing, in words that may repeat some of it.
    fn wrong(&self, what: &str) -> InterpretError {
        self.failed(ScriptError::Nonsense(cut(what, MESSAGE).to_owned()))
    }

    fn nonsense(&self, answer: &[Value], wanted: &str) -> InterpretError {
        let kind = match answer.first() {
            None | Some(Value::Null) => "nothing",
            Some(Value::Bool(_)) => "true or false",
            Some(Value::Number(_)) => "a number that does not fit",
            Some(Value::String(_)) => "a text",
            Some(Value::Array(_)) => "a list",
            Some(Value::Object(_)) => "a map",
        };
        let (_, function) = self.operation.names();
        self.failed(ScriptError::Nonsense(format!(
            "{function} must return {wanted}, and returns {kind}"
        )))
    }

    /// The answer, which must be the same object in another state.
    fn same_object(&self, before: &Value, answer: Vec<Value>) -> Result<Value, InterpretError> {
        let Some(object @ Value::Object(_)) = answer.first() else {
            return Err(self.nonsense(&answer, "the object"));
        };
        if TemplateId::of(object) != TemplateId::of(before) {
            let (_, function) = self.operation.names();
            return Err(self.failed(ScriptError::Nonsense(format!(
                "{function} makes {} of {}",
                TemplateId::of(object),
                TemplateId::of(before)
            ))));
        }
        Ok(answer.into_iter().next().unwrap_or_default())
    }
}
