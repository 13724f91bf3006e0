//! Policies decided by tables: a policy, a request, and what the real server answers.

mod annotations;
mod expressions;
mod matches;
mod server;
mod variables;
mod vetting;

use std::sync::Arc;

use machinery_schema::cel::{Authority, Authorizer, Question, Verdict};
use machinery_value::Value;
use machinery_value::labels::LabelSelector;
use serde_json::json;

use super::compile::hooks;
use super::decide::{Denial, Outcome, World, decide};
use super::matching::{Asked, Kind, Matched, Neighbours, Place};
use crate::admission::Operation;

fn configmap(key: &str) -> Value {
    json!({"metadata": {"name": "c", "namespace": "t"}, "data": {"k": key}})
}

/// A request and a small world around it.
struct Scenario {
    operation: Operation,
    place: Place,
    others: Vec<Place>,
    subresource: &'static str,
    namespace: &'static str,
    name: &'static str,
    new: Option<Value>,
    old: Option<Value>,
    namespaces: Vec<Value>,
    params: Vec<Value>,
}

fn place(group: &str, version: &str, resource: &str, kind: &str) -> Place {
    Place {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        kind: Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        },
    }
}

impl Scenario {
    /// The creation of a ConfigMap.
    fn create(object: Value) -> Self {
        Self {
            operation: Operation::Create,
            place: place("", "v1", "configmaps", "ConfigMap"),
            others: Vec::new(),
            subresource: "",
            namespace: "t",
            name: "c",
            new: Some(object),
            old: None,
            namespaces: vec![json!({"metadata": {"name": "t", "labels": {"team": "a"}}})],
            params: Vec::new(),
        }
    }

    fn delete(object: Value) -> Self {
        Self {
            operation: Operation::Delete,
            new: None,
            old: Some(object),
            ..Self::create(Value::Null)
        }
    }

    fn asked(&self) -> Asked<'_> {
        let Self {
            operation,
            place,
            subresource,
            namespace,
            name,
            new,
            old,
            ..
        } = self;
        Asked {
            operation: *operation,
            place,
            subresource,
            namespace,
            name,
            new: new.as_ref(),
            old: old.as_ref(),
        }
    }

    fn outcome(&self, policies: &[Value], bindings: &[Value]) -> Outcome {
        decide(&hooks(policies, bindings), &self.asked(), self, true)
    }

    fn decide(&self, policies: &[Value], bindings: &[Value]) -> Result<Vec<String>, Denial> {
        let outcome = self.outcome(policies, bindings);
        outcome.denial.map_or(Ok(outcome.warnings), Err)
    }

    /// The answer of a policy with one binding that denies.
    fn answer(&self, spec: Value) -> String {
        match self.decide(&[policy("p", spec)], &[binding("b", json!({"policyName": "p"}))]) {
            Ok(warnings) if warnings.is_empty() => "allowed".to_owned(),
            Ok(warnings) => warnings.join("\n"),
            Err(denial) => denial.message,
        }
    }
}

impl Neighbours for Scenario {
    fn equivalents(&self) -> &[Place] {
        &self.others
    }

    fn namespace(&self, name: &str) -> Option<Value> {
        self.namespaces
            .iter()
            .find(|namespace| namespace["metadata"]["name"] == name)
            .cloned()
    }
}

impl World for Scenario {
    fn objects(&self, matched: Matched) -> (Value, Value) {
        let version = match matched {
            Matched::Itself => &self.place,
            Matched::Equivalent(index) => &self.others[index],
        };
        let whole = |object: &Option<Value>| {
            let Some(mut object) = object.clone() else {
                return Value::Null;
            };
            object["kind"] = json!(version.kind.kind);
            object["apiVersion"] = json!(version.kind.api_version());
            object
        };
        (whole(&self.new), whole(&self.old))
    }

    fn request(&self, _: Matched) -> Value {
        let mut request = json!({"operation": self.operation.name(), "name": self.name});
        if !self.namespace.is_empty() {
            request["namespace"] = json!(self.namespace);
        }
        request
    }

    fn is_namespaced(&self, kind: &Kind) -> Option<bool> {
        match kind.kind.as_str() {
            "ConfigMap" => Some(true),
            "Limit" => Some(false),
            _ => None,
        }
    }

    fn authorizer(&self) -> Authorizer {
        let request = Question {
            group: self.place.group.clone(),
            resource: self.place.resource.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            ..Question::default()
        };
        Authorizer::new(Arc::new(Told), request)
    }

    fn param(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
        let everything = LabelSelector::everything();
        self.params(kind, namespace, &everything)
            .into_iter()
            .find(|param| param["metadata"]["name"] == name)
    }

    fn params(&self, kind: &Kind, namespace: &str, selector: &LabelSelector) -> Vec<Value> {
        let fits = |param: &&Value| {
            param["kind"] == json!(kind.kind)
                && param["metadata"]["namespace"].as_str().unwrap_or("") == namespace
                && selector.matches_labels(param["metadata"]["labels"].as_object())
        };
        self.params.iter().filter(fits).cloned().collect()
    }
}

/// Says what it was asked. Everything is allowed but the verb `no`; the verb `fail` fails.
struct Told;

impl Authority for Told {
    fn answer(&self, question: &Question) -> Verdict {
        let who = question
            .account
            .as_ref()
            .map(|(namespace, name)| format!("{namespace}/{name} "))
            .unwrap_or_default();
        let what = question.path.clone().unwrap_or_else(|| {
            let Question {
                group,
                resource,
                subresource,
                namespace,
                name,
                ..
            } = question;
            format!("{group}|{resource}|{subresource}|{namespace}|{name}")
        });
        Verdict {
            allowed: question.verb != "no",
            reason: format!("{who}{} {what}", question.verb),
            error: (question.verb == "fail").then(|| "broken".to_owned()),
        }
    }
}

/// A policy about everything, if `spec` does not say otherwise.
fn policy(name: &str, mut spec: Value) -> Value {
    if spec["matchConstraints"].is_null() {
        let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
        spec["matchConstraints"] = json!({"resourceRules": [rule]});
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A binding that denies, if `spec` does not say otherwise.
fn binding(name: &str, mut spec: Value) -> Value {
    if spec["validationActions"].is_null() {
        spec["validationActions"] = json!(["Deny"]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}
