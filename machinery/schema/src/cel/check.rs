//! Checks an expression against the schema it is written for, before it is accepted.
//!
//! This is no full type checker: it follows fields from `self` and `oldSelf` through selections, indexes and
//! loops, and reports what cannot be there. Where it does not know a type it says nothing.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::values::escape;
use super::{CelProgram, Rule, rewrite};
use crate::schema::{Additional, JsonType, SchemaRef};

/// Checks a rule for a schema node; the error is the detail of a field error.
pub(crate) fn check_rule(schema: SchemaRef<'_>, root: bool, rule: &Rule) -> Result<(), String> {
    match check(schema, root, rule, &rule.rule) {
        Err(problem) => Err(format!("compilation failed: {problem}")),
        Ok(Ty::Bool | Ty::Any) => Ok(()),
        Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// Checks the message expression of a rule.
pub(crate) fn check_message_expression(
    schema: SchemaRef<'_>,
    root: bool,
    rule: &Rule,
    source: &str,
) -> Result<(), String> {
    match check(schema, root, rule, source) {
        Err(problem) => Err(format!("messageExpression compilation failed: {problem}")),
        Ok(Ty::Text | Ty::Any) => Ok(()),
        Ok(_) => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

fn check<'a>(schema: SchemaRef<'a>, root: bool, rule: &Rule, source: &str) -> Result<Ty<'a>, String> {
    let program = CelProgram::compile(source).map_err(|problem| problem.replace("\n| ", "\n | "))?;
    if let Some(name) = program.undeclared(&["self", "oldSelf"]) {
        let mut at = word(source, &name);
        // A call is where its parenthesis is.
        if program.undeclared_function() == Some(&name) && source[at..].starts_with(&format!("{name}(")) {
            at += name.len();
        }
        return Err(located(
            source,
            at,
            &format!("undeclared reference to '{name}' (in container '')"),
        ));
    }
    let this = of_schema(schema, root);
    let old = if rule.optional_old_self == Some(true) {
        Ty::Any
    } else {
        this.clone()
    };
    let scope = vec![("self".to_owned(), this), ("oldSelf".to_owned(), old)];
    let mut checker = Checker {
        source,
        scope,
        problems: Vec::new(),
    };
    let result = checker.infer(program.expression());
    if checker.problems.is_empty() {
        Ok(result)
    } else {
        Err(checker.problems.join("\n"))
    }
}

#[derive(Clone)]
enum Ty<'a> {
    Any,
    Bool,
    Int,
    Double,
    Text,
    /// Anything else that is known not to be one of the above.
    Other,
    List(Box<Ty<'a>>),
    /// An object with declared fields, or a map of values of one schema.
    Object(SchemaRef<'a>, bool),
    /// The metadata of a resource.
    Metadata,
}

/// Whether expressions can see values of this schema at all.
fn exposed(schema: SchemaRef<'_>) -> bool {
    if schema.int_or_string() {
        return true;
    }
    match schema.json_type() {
        Some(JsonType::Array) => schema.items().is_some_and(exposed),
        Some(JsonType::Object) => match schema.additional_properties() {
            Additional::Schema(additional) => exposed(additional),
            _ => true,
        },
        Some(_) => true,
        None => false,
    }
}

fn of_schema(schema: SchemaRef<'_>, root: bool) -> Ty<'_> {
    if schema.int_or_string() {
        return Ty::Any;
    }
    match schema.json_type() {
        Some(JsonType::Boolean) => Ty::Bool,
        Some(JsonType::Integer) => Ty::Int,
        Some(JsonType::Number) => Ty::Double,
        Some(JsonType::String) => match schema.format() {
            Some("byte" | "duration" | "date" | "date-time") => Ty::Other,
            _ => Ty::Text,
        },
        Some(JsonType::Array) => match schema.items() {
            Some(items) => Ty::List(Box::new(of_schema(items, items.embedded_resource()))),
            None => Ty::Any,
        },
        Some(JsonType::Object) => Ty::Object(schema, root),
        None => Ty::Any,
    }
}

struct Checker<'s, 'a> {
    source: &'s str,
    scope: Vec<(String, Ty<'a>)>,
    problems: Vec<String>,
}

impl<'a> Checker<'_, 'a> {
    fn infer(&mut self, expression: &IdedExpr) -> Ty<'a> {
        match &expression.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Ty::Bool,
                LiteralValue::Int(_) => Ty::Int,
                LiteralValue::Double(_) => Ty::Double,
                LiteralValue::String(_) => Ty::Text,
                LiteralValue::Bytes(_) | LiteralValue::UInt(_) => Ty::Other,
                LiteralValue::Null => Ty::Any,
            },
            Expr::Ident(name) => self
                .scope
                .iter()
                .rev()
                .find(|(known, _)| known == name)
                .map_or(Ty::Any, |(_, ty)| ty.clone()),
            Expr::Select(select) => {
                let operand = self.infer(&select.operand);
                let before = self.problems.len();
                let field = self.select(operand, &select.field);
                if !select.test {
                    return field;
                }
                // The mark goes to the macro.
                if self.problems.len() > before
                    && let Some(at) =
                        self.source[..word(self.source, &format!(".{}", select.field))].rfind("has(")
                {
                    self.problems.truncate(before);
                    let message = format!("undefined field '{}'", select.field);
                    self.problems.push(located(self.source, at + 3, &message));
                }
                Ty::Bool
            }
            Expr::List(list) => {
                for element in &list.elements {
                    self.infer(element);
                }
                Ty::List(Box::new(Ty::Any))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.infer(&entry.key);
                        self.infer(&entry.value);
                    }
                }
                Ty::Other
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Ty::Any,
        }
    }

    fn select(&mut self, operand: Ty<'a>, field: &str) -> Ty<'a> {
        let kind = match operand {
            Ty::Object(schema, root) => {
                if let Additional::Schema(additional) = schema.additional_properties() {
                    return of_schema(additional, additional.embedded_resource());
                }
                if root {
                    match field {
                        "apiVersion" | "kind" => return Ty::Text,
                        "metadata" => return Ty::Metadata,
                        _ => {}
                    }
                }
                let declared = schema
                    .properties()
                    .find(|(name, _)| escape(name).as_deref() == Some(field));
                if let Some((_, property)) = declared.filter(|(_, property)| exposed(*property)) {
                    return of_schema(property, property.embedded_resource());
                }
                return self.undefined(field);
            }
            Ty::Metadata if matches!(field, "name" | "generateName") => return Ty::Text,
            Ty::Metadata => return self.undefined(field),
            Ty::Any => return Ty::Any,
            other => name(&other),
        };
        self.problem(
            &format!(".{field}"),
            &format!("type '{kind}' does not support field selection"),
        );
        Ty::Any
    }

    fn undefined(&mut self, field: &str) -> Ty<'a> {
        self.problem(&format!(".{field}"), &format!("undefined field '{field}'"));
        Ty::Any
    }

    fn problem(&mut self, token: &str, message: &str) {
        let text = located(self.source, word(self.source, token), message);
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    fn call(&mut self, call: &CallExpr) -> Ty<'a> {
        if let Some((operand, field)) = rewrite::selected(call) {
            let operand = self.infer(operand);
            return self.select(operand, field);
        }
        let target = call.target.as_ref().map(|target| self.infer(target));
        let args: Vec<Ty<'a>> = call.args.iter().map(|argument| self.infer(argument)).collect();
        match (call.func_name.as_str(), args.as_slice()) {
            (
                function @ (op::EQUALS
                | op::NOT_EQUALS
                | op::LESS
                | op::LESS_EQUALS
                | op::GREATER
                | op::GREATER_EQUALS),
                [left, right],
            ) => {
                if differ(left, right) {
                    let applied = format!("'({}, {})'", name(left), name(right));
                    let message = format!("found no matching overload for '{function}' applied to {applied}");
                    self.problem(function.trim_matches('_'), &message);
                }
                Ty::Bool
            }
            (op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT | op::IN | op::NOT_STRICTLY_FALSE, _) => {
                Ty::Bool
            }
            (op::CONDITIONAL, [_, yes, no]) => {
                if matches!(yes, Ty::Any) {
                    no.clone()
                } else {
                    yes.clone()
                }
            }
            (op::INDEX, [Ty::List(item), _]) => (**item).clone(),
            (op::INDEX, [Ty::Object(schema, _), _]) => match schema.additional_properties() {
                Additional::Schema(additional) => of_schema(additional, additional.embedded_resource()),
                _ => Ty::Any,
            },
            (op::OPT_INDEX, [operand @ (Ty::Object(..) | Ty::Metadata), _]) => {
                if let Expr::Literal(LiteralValue::String(field)) = &call.args[1].expr {
                    self.select(operand.clone(), field.inner());
                }
                Ty::Any
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
                match (left, right) {
                    (Ty::Any, other) | (other, _) => other.clone(),
                }
            }
            (op::NEGATE, [operand]) => operand.clone(),
            ("size", _) => Ty::Int,
            ("string", _) => Ty::Text,
            ("matches" | "startsWith" | "endsWith", _) => Ty::Bool,
            ("contains", _) if matches!(target, Some(Ty::Text)) => Ty::Bool,
            _ => Ty::Any,
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Ty<'a> {
        let range = self.infer(&comprehension.iter_range);
        let item = match &range {
            Ty::List(item) => (**item).clone(),
            Ty::Object(..) => Ty::Text,
            _ => Ty::Any,
        };
        let start = self.infer(&comprehension.accu_init);
        let depth = self.scope.len();
        self.scope.push((comprehension.iter_var.clone(), item));
        self.scope.push((comprehension.accu_var.clone(), start));
        self.infer(&comprehension.loop_cond);
        self.infer(&comprehension.loop_step);
        let result = self.infer(&comprehension.result);
        self.scope.truncate(depth);
        result
    }
}

/// Types that no operator compares.
fn differ(left: &Ty<'_>, right: &Ty<'_>) -> bool {
    let numeric = |ty: &Ty<'_>| matches!(ty, Ty::Int | Ty::Double);
    match (left, right) {
        (Ty::Text, Ty::Int | Ty::Double | Ty::Bool) | (Ty::Int | Ty::Double | Ty::Bool, Ty::Text) => true,
        (Ty::Bool, other) | (other, Ty::Bool) => numeric(other),
        _ => false,
    }
}

fn name(ty: &Ty<'_>) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::Int => "int",
        Ty::Double => "double",
        Ty::Text => "string",
        Ty::List(_) => "list",
        Ty::Object(..) | Ty::Metadata => "object",
        Ty::Any | Ty::Other => "dyn",
    }
}

/// Where a token starts that is not part of a longer word.
fn word(source: &str, token: &str) -> usize {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    source
        .match_indices(token)
        .find(|(at, _)| {
            let before = source[..*at].chars().next_back();
            let after = source[at + token.len()..].chars().next();
            let starts_inside = token.starts_with(part) && before.is_some_and(part);
            let ends_inside = token.ends_with(part) && after.is_some_and(part);
            !starts_inside && !ends_inside
        })
        .map_or(0, |(at, _)| at)
}

/// An error with the line it is on and a mark below it.
fn located(source: &str, at: usize, message: &str) -> String {
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let number = source[..at].matches('\n').count() + 1;
    let column = source[start..at].chars().count();
    let line = source[start..].lines().next().unwrap_or("");
    format!(
        "ERROR: <input>:{number}:{}: {message}\n | {line}\n | {}^",
        column + 1,
        ".".repeat(column)
    )
}
