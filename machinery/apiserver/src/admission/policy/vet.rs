//! Vets a policy before it is accepted: its expressions must compile, name only what there is, and be of the right type.

mod types;
mod warnings;

use std::collections::BTreeSet;
use std::sync::Arc;

use machinery_schema::cel::{CelType, Struct};
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::{Value, names};

use crate::meta;

pub(crate) use warnings::expression_warnings;

const MAX_CONDITIONS: usize = 64;
const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION_EXPRESSION: usize = 5 * 1024;

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

struct Vet {
    errors: Vec<FieldError>,
    /// Whether the policy takes parameters.
    params: bool,
    /// The variables declared so far; none where there cannot be any.
    variables: Option<Struct<'static>>,
}

impl Vet {
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

    fn variables(&mut self, list: &Value, path: &FieldPath) {
        for (index, variable) in items(list).enumerate() {
            let path = path.index(index);
            self.variables.get_or_insert_with(|| Struct {
                name: types::VARIABLES,
                ..Struct::default()
            });
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
            let ty = self.expression(expression, &path.child("expression"), &[], true);
            if let Some(variables) = &mut self.variables {
                variables.fields.insert(name.to_owned(), ty);
            }
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
    /// Returns its type, as far as that is known.
    fn expression(
        &mut self,
        text: &str,
        path: &FieldPath,
        types: &[&str],
        authorizer: bool,
    ) -> CelType<'static> {
        if text.trim().is_empty() {
            return CelType::Unknown;
        }
        let mut scope = types::scope(CelType::Dyn, self.params.then_some(CelType::Dyn));
        if authorizer {
            scope.declare_authorizer();
        }
        if let Some(variables) = &self.variables {
            scope.declare("variables", CelType::Struct(Arc::new(variables.clone())));
        }
        let (ty, detail) = match scope.check(text) {
            Err(problem) => (CelType::Unknown, Some(format!("compilation failed: {problem}"))),
            Ok(ty) => {
                let wrong = types::wrong_type(&ty, types);
                (ty, wrong)
            }
        };
        if let Some(detail) = detail {
            self.errors.push(FieldError::invalid(path, &text.into(), detail));
        }
        ty
    }
}

fn is_identifier(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(letters)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !machinery_schema::cel::RESERVED.contains(&name)
}
