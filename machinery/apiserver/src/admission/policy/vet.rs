//! Vets a policy before it is accepted: its expressions must compile and name only what there is.
//!
//! Types are followed only where they are plain to see: a policy that the real server refuses for a type deeper inside
//! is accepted here and fails, by its failure policy, when it runs.

mod types;

use std::collections::BTreeSet;

use machinery_schema::cel::CelProgram;
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::{Value, names};

use super::source::Source;
use crate::meta;

const MAX_CONDITIONS: usize = 64;
const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION_EXPRESSION: usize = 5 * 1024;

/// The functions of the variable `authorizer` and of what they return.
const AUTHORIZER: [&str; 14] = [
    "allowed",
    "check",
    "error",
    "errored",
    "fieldSelector",
    "group",
    "labelSelector",
    "name",
    "namespace",
    "path",
    "reason",
    "resource",
    "serviceAccount",
    "subresource",
];

/// What is wrong with the expressions of a ValidatingAdmissionPolicy.
pub(crate) fn check_policy(content: &Value) -> Vec<FieldError> {
    let spec = &content["spec"];
    let path = FieldPath::new("spec");
    let mut vet = Vet {
        errors: Vec::new(),
        params: !spec["paramKind"].is_null(),
        variables: None,
    };
    vet.conditions(&spec["matchConditions"], &path.child("matchConditions"));
    vet.variables(&spec["variables"], &path.child("variables"));
    for (index, validation) in items(&spec["validations"]).enumerate() {
        let path = path.child("validations").index(index);
        vet.expression(
            text(&validation["expression"]),
            &path.child("expression"),
            &["bool"],
            true,
        );
        let message = text(&validation["messageExpression"]);
        let at = path.child("messageExpression");
        if !message.is_empty() && message.trim().is_empty() {
            vet.errors.push(FieldError::invalid(
                &at,
                &message.into(),
                "must be non-empty if specified",
            ));
        }
        vet.expression(message, &at, &["string"], false);
    }
    vet.annotations(
        meta::name(content),
        &spec["auditAnnotations"],
        &path.child("auditAnnotations"),
    );
    vet.errors
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

struct Vet<'a> {
    errors: Vec<FieldError>,
    /// Whether the policy takes parameters.
    params: bool,
    /// The variables declared so far; none where there cannot be any.
    variables: Option<Vec<&'a str>>,
}

impl<'a> Vet<'a> {
    fn conditions(&mut self, list: &Value, path: &FieldPath) {
        let count = items(list).count();
        if count > MAX_CONDITIONS {
            self.errors
                .push(FieldError::too_many(path, count, MAX_CONDITIONS));
        }
        let mut seen = BTreeSet::new();
        for (index, condition) in items(list).enumerate() {
            let path = path.index(index);
            let expression = text(&condition["expression"]).trim();
            if expression.is_empty() {
                self.errors
                    .push(FieldError::required(&path.child("expression"), ""));
            }
            self.expression(expression, &path.child("expression"), &["bool"], true);
            let (at, name) = (path.child("name"), text(&condition["name"]));
            if name.is_empty() {
                self.errors.push(FieldError::required(&at, ""));
                continue;
            }
            for problem in names::qualified_name(name) {
                self.errors.push(FieldError::invalid(&at, &name.into(), problem));
            }
            if !seen.insert(name) {
                self.errors.push(FieldError::duplicate(&at, &name.into()));
            }
        }
    }

    fn variables(&mut self, list: &'a Value, path: &FieldPath) {
        for (index, variable) in items(list).enumerate() {
            let path = path.index(index);
            self.variables.get_or_insert_default();
            let name = text(&variable["name"]);
            if name.trim().is_empty() {
                self.errors
                    .push(FieldError::required(&path.child("name"), "name is not specified"));
            } else if !is_identifier(name) {
                let detail = "must be a valid CEL identifier";
                self.errors
                    .push(FieldError::invalid(&path.child("name"), &name.into(), detail));
            }
            let expression = text(&variable["expression"]);
            if expression.trim().is_empty() {
                self.errors.push(FieldError::required(
                    &path.child("expression"),
                    "expression is not specified",
                ));
            }
            self.expression(expression, &path.child("expression"), &[], true);
            self.variables.get_or_insert_default().push(name);
        }
    }

    fn annotations(&mut self, policy: &str, list: &Value, path: &FieldPath) {
        if items(list).count() > MAX_ANNOTATIONS {
            let detail = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
            self.errors.push(FieldError::invalid(path, list, detail));
        }
        let mut seen = BTreeSet::new();
        for (index, annotation) in items(list).enumerate() {
            let path = path.index(index);
            let key = text(&annotation["key"]);
            let name = format!("{policy}/{key}");
            for problem in names::qualified_name(&name) {
                self.errors.push(FieldError::invalid(
                    &path.child("key"),
                    &name.as_str().into(),
                    problem,
                ));
            }
            let at = path.child("valueExpression");
            let expression = text(&annotation["valueExpression"]).trim();
            if expression.is_empty() {
                self.errors
                    .push(FieldError::required(&at, "valueExpression is not specified"));
            } else if expression.len() > MAX_ANNOTATION_EXPRESSION {
                let detail = format!("must not exceed {MAX_ANNOTATION_EXPRESSION} bytes in length");
                self.errors.push(FieldError::required(&at, detail));
            } else {
                self.expression(expression, &at, &["string", "null_type"], true);
            }
            if !seen.insert(key) {
                self.errors
                    .push(FieldError::duplicate(&path.child("key"), &key.into()));
            }
        }
    }

    /// Checks an expression whose value must be of one of these types, or of any; an empty one is for others to judge.
    fn expression(&mut self, text: &str, path: &FieldPath, types: &[&str], authorizer: bool) {
        if text.trim().is_empty() {
            return;
        }
        let source = Source::scan(text);
        let detail = match CelProgram::compile(text) {
            // The engine starts the lines of its snippets without the space.
            Err(problem) => Some(format!(
                "compilation failed: {}",
                problem.replace("\n| ", "\n | ")
            )),
            Ok(program) => self
                .undeclared(&source, &program, authorizer)
                .or_else(|| types::wrong_type(&source, types)),
        };
        if let Some(detail) = detail {
            self.errors.push(FieldError::invalid(path, &text.into(), detail));
        }
    }

    /// The names in an expression that mean nothing, each with its place.
    fn undeclared(&self, source: &Source<'_>, program: &CelProgram, authorizer: bool) -> Option<String> {
        let declared = |name: &str| match name {
            "object" | "oldObject" | "request" | "namespaceObject" => true,
            "params" => self.params,
            "authorizer" => authorizer,
            "variables" => self.variables.is_some(),
            _ => false,
        };
        let read: Vec<&str> = program.variables().collect();
        let mut problems: Vec<(usize, String)> = Vec::new();
        let undeclared = |name: &str| format!("undeclared reference to '{name}' (in container '')");
        for name in read.iter().filter(|name| !declared(name)) {
            let places = places(source, |at| source.at(at) == *name && source.is_variable(at));
            problems.extend(places.into_iter().map(|at| (at, undeclared(name))));
        }
        if let Some(function) = program.undeclared(&read)
            && !(program.references("authorizer") && AUTHORIZER.contains(&function.as_str()))
        {
            let called = |at: usize| at > 0 && source.at(at) == "(" && source.at(at - 1) == function;
            problems.extend(
                places(source, called)
                    .into_iter()
                    .map(|at| (at, undeclared(&function))),
            );
        }
        for at in 0..source.tokens.len() {
            if source.is_variable(at) && declared(source.at(at)) {
                problems.extend(self.undefined(source, at));
            }
        }
        problems.sort();
        let located: Vec<String> = problems
            .iter()
            .map(|(at, message)| source.located(*at, message))
            .collect();
        (!located.is_empty()).then(|| format!("compilation failed: {}", located.join("\n")))
    }

    /// The first field selected from the variable at `at` that its type does not have.
    fn undefined(&self, source: &Source<'_>, at: usize) -> Option<(usize, String)> {
        let mut path = vec![source.at(at)];
        for (dot, field) in source.fields(at) {
            let known = match path.as_slice() {
                ["variables"] => self.variables.as_deref()?.contains(&field),
                path => types::fields(path)?.contains(&field),
            };
            if !known {
                return Some((dot, format!("undefined field '{field}'")));
            }
            path.push(field);
        }
        None
    }
}

/// Where pieces of an expression are for which something holds; the start if there are none.
fn places(source: &Source<'_>, holds: impl Fn(usize) -> bool) -> Vec<usize> {
    let found: Vec<usize> = (0..source.tokens.len())
        .filter(|at| holds(*at))
        .map(|at| source.tokens[at].span.start)
        .collect();
    if found.is_empty() { vec![0] } else { found }
}

fn is_identifier(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(letters)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !machinery_schema::cel::RESERVED.contains(&name)
}
