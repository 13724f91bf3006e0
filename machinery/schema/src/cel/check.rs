//! Checks an expression before it is accepted: names that mean nothing, fields that are not there, types that do not fit.
//!
//! It follows the rules of the server's own checker, with the same words and the same places in the text. A type that is
//! not followed here fits everywhere, so that nothing is refused that the server would take.

use std::collections::HashMap;

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
};

use super::authorizer::{AUTHORIZER, REQUEST_RESOURCE};
use super::macros::PAIR;
use super::overloads;
use super::parse::{Parsed, parse};
use super::program::deep;
use super::rewrite::TYPES;
use super::runtime::{MERGE, PAIRS, PUT};
use super::sizes::Place;
use super::types::{Bindings, CelType, View, applied};
use super::values::escape;
use super::{CelProgram, Rule, cost, literals, runtime};
use crate::schema::{Additional, JsonType, SchemaRef};

/// How many problems of one expression are told.
const MAX_PROBLEMS: usize = 100;

/// The variables of an expression and their types.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    variables: HashMap<String, CelType<'a>>,
}

impl<'a> Scope<'a> {
    /// Declares a variable, or declares it anew.
    pub fn declare(&mut self, name: &str, ty: CelType<'a>) {
        self.variables.insert(name.to_owned(), ty);
    }

    /// Declares `authorizer`.
    pub fn declare_authorizer(&mut self) {
        self.declare(AUTHORIZER, CelType::Named("kubernetes.authorization.Authorizer"));
        self.declare(
            REQUEST_RESOURCE,
            CelType::Named("kubernetes.authorization.ResourceCheck"),
        );
    }

    /// The type of an expression, or what is wrong with it and where.
    pub fn check(&self, source: &str) -> Result<CelType<'a>, String> {
        self.analyse(source, None).map(|(ty, _)| ty)
    }

    /// The type of an expression, and what it costs at most where its variables are at `root`.
    fn analyse(&self, source: &str, root: Option<Place<'a>>) -> Result<(CelType<'a>, u64), String> {
        CelProgram::compile(source)?;
        let Parsed { expression, depth } = parse(source).map_err(|unread| unread.message)?;
        let checked = deep(depth, || {
            let mut checker = Checker {
                declared: &self.variables,
                bound: Vec::new(),
                problems: Vec::new(),
                checked: Checked::default(),
            };
            let result = checker.infer(&expression);
            if checker.problems.is_empty() {
                literals::check(&expression, &mut checker.problems);
            }
            let cost = root.map_or(0, |root| cost::estimate(&expression, &checker.checked, root));
            (result, cost, checker.problems)
        });
        let (result, cost, mut problems) = checked.ok_or("the expression could not be checked")?;
        if problems.is_empty() {
            return Ok((result, cost));
        }
        problems.sort();
        problems.dedup();
        problems.truncate(MAX_PROBLEMS);
        let located: Vec<String> = problems
            .iter()
            .map(|(at, message)| located(source, *at, message))
            .collect();
        Err(located.join("\n"))
    }
}

/// Checks a rule for a schema node and tells what it costs at most, once; the error is the detail of a field error.
pub(crate) fn check_rule(schema: SchemaRef<'_>, root: bool, rule: &Rule) -> Result<u64, String> {
    match of_rule(schema, root, rule).analyse(&rule.rule, Some(Place::Schema(schema, root))) {
        Err(problem) => Err(format!("compilation failed: {problem}")),
        Ok((CelType::Bool | CelType::Unknown, cost)) => Ok(cost),
        Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// The same for the message expression of a rule.
pub(crate) fn check_message_expression(
    schema: SchemaRef<'_>,
    root: bool,
    rule: &Rule,
    source: &str,
) -> Result<u64, String> {
    match of_rule(schema, root, rule).analyse(source, Some(Place::Schema(schema, root))) {
        Err(problem) => Err(format!("messageExpression compilation failed: {problem}")),
        Ok((CelType::Text | CelType::Unknown, cost)) => Ok(cost),
        Ok(_) => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

/// What the rules of a node see.
fn of_rule<'a>(schema: SchemaRef<'a>, root: bool, rule: &Rule) -> Scope<'a> {
    let this = CelType::of_schema(schema, if root { View::Root } else { View::Rule });
    let old = if rule.optional_old_self == Some(true) {
        CelType::Optional(Box::new(this.clone()))
    } else {
        this.clone()
    };
    let mut scope = Scope::default();
    scope.declare("self", this);
    scope.declare("oldSelf", old);
    scope
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

/// What was found out about the parts of an expression, as long as it stays where it is.
#[derive(Default)]
pub(super) struct Checked<'a> {
    types: HashMap<usize, CelType<'a>>,
}

impl<'a> Checked<'a> {
    /// The type of a part; none for a namespace, which is no value.
    pub(super) fn ty(&self, part: &IdedExpr) -> Option<&CelType<'a>> {
        self.types.get(&std::ptr::from_ref(part).addr())
    }
}

struct Checker<'s, 'a> {
    checked: Checked<'a>,
    declared: &'s HashMap<String, CelType<'a>>,
    /// The variables of the loops around, the innermost last.
    bound: Vec<(String, CelType<'a>)>,
    problems: Vec<(usize, String)>,
}

fn place(expression: &IdedExpr) -> usize {
    usize::try_from(expression.id).unwrap_or(0)
}

impl<'a> Checker<'_, 'a> {
    fn problem(&mut self, at: usize, message: String) -> CelType<'a> {
        self.problems.push((at, message));
        CelType::Unknown
    }

    fn infer(&mut self, expression: &IdedExpr) -> CelType<'a> {
        let ty = self.type_of(expression);
        let part = std::ptr::from_ref(expression).addr();
        self.checked.types.insert(part, ty.clone());
        ty
    }

    fn type_of(&mut self, expression: &IdedExpr) -> CelType<'a> {
        let at = place(expression);
        match &expression.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => CelType::Bool,
                LiteralValue::Int(_) => CelType::Int,
                LiteralValue::UInt(_) => CelType::Uint,
                LiteralValue::Double(_) => CelType::Double,
                LiteralValue::String(_) => CelType::Text,
                LiteralValue::Bytes(_) => CelType::Bytes,
                LiteralValue::Null => CelType::Null,
            },
            Expr::Ident(name) => match self.variable(name) {
                Some(ty) => ty,
                None if TYPES.contains(&name.as_str()) => CelType::Type(Box::new(named(name))),
                None => self.undeclared(at, name),
            },
            Expr::Select(select) => {
                if !select.test
                    && let Expr::Ident(name) = &select.operand.expr
                    && let Some(ty) = self.declared.get(&format!("{name}.{}", select.field))
                    && !self.bound.iter().any(|(bound, _)| bound == name)
                {
                    return ty.clone();
                }
                let operand = self.infer(&select.operand);
                let field = self.select(at, operand, &select.field);
                if select.test { CelType::Bool } else { field }
            }
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Call(call) => self.call(at, call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => CelType::Unknown,
        }
    }

    fn variable(&self, name: &str) -> Option<CelType<'a>> {
        let bound = self.bound.iter().rev().find(|(known, _)| known == name);
        bound
            .map(|(_, ty)| ty)
            .or_else(|| self.declared.get(name))
            .cloned()
    }

    fn undeclared(&mut self, at: usize, name: &str) -> CelType<'a> {
        self.problem(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, at: usize, operand: CelType<'a>, field: &str) -> CelType<'a> {
        let found = match &operand {
            CelType::Optional(inner) => {
                let ty = self.select(at, (**inner).clone(), field);
                return match ty {
                    CelType::Optional(_) => ty,
                    ty => CelType::Optional(Box::new(ty)),
                };
            }
            CelType::Unknown | CelType::Free | CelType::Dyn => Some(operand.clone()),
            CelType::Map(_, value) => Some((**value).clone()),
            CelType::Object(schema, view) => of_field(*schema, *view, field),
            CelType::Metadata => matches!(field, "name" | "generateName").then_some(CelType::Text),
            CelType::Struct(object) => object.fields.get(field).cloned(),
            CelType::Named(name) => {
                return self.problem(at, format!("unexpected failed resolution of '{name}'"));
            }
            other => {
                let message = format!("type '{}' does not support field selection", other.name());
                return self.problem(at, message);
            }
        };
        match found {
            Some(ty) => ty,
            None => self.problem(at, format!("undefined field '{field}'")),
        }
    }

    /// The type of elements that must all be of one type.
    fn join(&mut self, element: &IdedExpr, so_far: Option<CelType<'a>>, optional: bool) -> CelType<'a> {
        let mut ty = self.infer(element);
        if let (true, CelType::Optional(inner)) = (optional, &ty) {
            ty = (**inner).clone();
        }
        match so_far {
            None => ty,
            Some(before) if before.fits(&ty) => before.general(ty),
            Some(before) => {
                let message = format!("expected type '{}' but found '{}'", before.name(), ty.name());
                self.problem(place(element), message)
            }
        }
    }

    fn list(&mut self, list: &ListExpr) -> CelType<'a> {
        let mut item = None;
        for (index, element) in list.elements.iter().enumerate() {
            item = Some(self.join(element, item, list.optional_indices.contains(&index)));
        }
        CelType::list(item.unwrap_or(CelType::Free))
    }

    fn map(&mut self, map: &MapExpr) -> CelType<'a> {
        let (mut key, mut value) = (None, None);
        for entry in &map.entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                key = Some(self.join(&entry.key, key, false));
                value = Some(self.join(&entry.value, value, entry.optional));
            }
        }
        let [key, value] = [key, value].map(|ty| Box::new(ty.unwrap_or(CelType::Free)));
        CelType::Map(key, value)
    }

    fn call(&mut self, at: usize, call: &CallExpr) -> CelType<'a> {
        let name = call.func_name.as_str();
        if name == op::OPT_SELECT
            && let [operand, field] = call.args.as_slice()
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            let operand = self.infer(operand);
            return match self.select(at, operand, field.inner()) {
                ty @ CelType::Optional(_) => ty,
                ty => CelType::Optional(Box::new(ty)),
            };
        }
        if let (Some(target), [variable, body], "optMap" | "optFlatMap") =
            (&call.target, call.args.as_slice(), name)
        {
            return self.opt_map(at, target, variable, body, name == "optFlatMap");
        }
        if let (op::INDEX, [pair, index]) = (name, call.args.as_slice())
            && let (Expr::Ident(pair), Expr::Literal(LiteralValue::Int(index))) = (&pair.expr, &index.expr)
            && pair == PAIR
        {
            return self.part(*index.inner());
        }
        if let ("format", Some(target), [list]) = (name, &call.target, call.args.as_slice())
            && let Expr::List(elements) = &list.expr
        {
            // What is printed may be of any types.
            elements.elements.iter().for_each(|element| {
                self.infer(element);
            });
            let target = self.infer(target);
            return self.resolve(at, name, Some(&target), &[CelType::list(CelType::Dyn)]);
        }
        let args: Vec<CelType<'a>> = call.args.iter().map(|argument| self.infer(argument)).collect();
        let Some(target) = &call.target else {
            let result = match (name, args.as_slice()) {
                (op::LOGICAL_AND | op::LOGICAL_OR, _) => {
                    for (argument, ty) in call.args.iter().zip(&args) {
                        if !ty.fits(&CelType::Bool) {
                            let message = format!("expected type 'bool' but found '{}'", ty.name());
                            self.problem(place(argument), message);
                        }
                    }
                    return CelType::Bool;
                }
                (PUT, [CelType::Map(keys, values), key, value]) => CelType::Map(
                    Box::new(key.clone().general((**keys).clone())),
                    Box::new(value.clone().general((**values).clone())),
                ),
                (MERGE, [so_far, more]) => more.clone().general(so_far.clone()),
                _ => self.resolve(at, name, None, &args),
            };
            // What grows in a loop takes its type from what is added first.
            if let Some(Expr::Ident(name)) = call.args.first().map(|argument| &argument.expr)
                && let Some((_, ty)) = self.bound.iter_mut().rev().find(|(known, _)| known == name)
                && ty.is_empty_container()
                && matches!(result, CelType::List(_) | CelType::Map(..))
            {
                *ty = result.clone();
            }
            return result;
        };
        // A namespace such as `sets` looks like a variable and is none.
        if let Expr::Ident(prefix) = &target.expr {
            let whole = format!("{prefix}.{name}");
            if overloads::of(&whole).is_some() {
                return self.resolve(at, &whole, None, &args);
            }
            if prefix == "format" && self.variable(prefix).is_none() && runtime::is_namespace(prefix, name) {
                return CelType::Named("kubernetes.NamedFormat");
            }
        }
        let target = self.infer(target);
        self.resolve(at, name, Some(&target), &args)
    }

    /// The result of the signatures that fit.
    fn resolve(
        &mut self,
        at: usize,
        name: &str,
        target: Option<&CelType<'a>>,
        args: &[CelType<'a>],
    ) -> CelType<'a> {
        let Some(overloads) = overloads::of(name) else {
            return self.undeclared(at, name);
        };
        let given = || target.into_iter().chain(args);
        let mut result: Option<CelType<'a>> = None;
        for overload in overloads {
            if overload.member != target.is_some() || overload.params.len() != given().count() {
                continue;
            }
            let mut bindings = Bindings::default();
            let mut pairs = given().zip(&overload.params);
            if pairs.all(|(argument, wanted)| bindings.accept(argument, wanted)) {
                let ty = bindings.fill(&overload.result);
                result = Some(match result {
                    None => ty,
                    Some(before) if before.same(&ty) => before,
                    Some(CelType::Unknown) => CelType::Unknown,
                    Some(_) => CelType::Dyn,
                });
            }
        }
        match result {
            Some(CelType::Dyn) if given().any(|ty| matches!(ty, CelType::Unknown)) => CelType::Unknown,
            Some(ty) => ty,
            None => {
                let applied = applied(target, args);
                self.problem(
                    at,
                    format!("found no matching overload for '{name}' applied to '{applied}'"),
                )
            }
        }
    }

    fn opt_map(
        &mut self,
        at: usize,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
        flat: bool,
    ) -> CelType<'a> {
        let target = self.infer(target);
        let inner = match &target {
            CelType::Optional(inner) => (**inner).clone(),
            _ => self.resolve(at, "value", Some(&target), &[]),
        };
        let Expr::Ident(name) = &variable.expr else {
            return self.problem(place(variable), "argument must be a simple name".to_owned());
        };
        self.bound.push((name.clone(), inner));
        let ty = self.infer(body);
        self.bound.pop();
        if flat { ty } else { CelType::Optional(Box::new(ty)) }
    }

    /// What a loop over something is at: with both the key or place and the value, or with one of them.
    fn elements(&mut self, range: &IdedExpr, both: bool) -> (CelType<'a>, CelType<'a>) {
        match self.infer(range) {
            CelType::List(item) => (CelType::Int, *item),
            CelType::Map(key, value) if both => (*key, *value),
            CelType::Map(key, _) => (CelType::Unknown, *key),
            ty if ty.is_dyn() => (ty.clone(), ty),
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.name()
                );
                (CelType::Unknown, self.problem(place(range), message))
            }
        }
    }

    /// The key or the value that the innermost loop over pairs is at.
    fn part(&self, index: i64) -> CelType<'a> {
        match self.variable(PAIR) {
            Some(CelType::Struct(pair)) => pair.fields.get(&index.to_string()).cloned(),
            _ => None,
        }
        .unwrap_or(CelType::Unknown)
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> CelType<'a> {
        let item = match &comprehension.iter_range.expr {
            Expr::Call(call) if call.func_name == PAIRS && call.args.len() == 1 => {
                let (key, value) = self.elements(&call.args[0], true);
                CelType::object(PAIR, [("0", key), ("1", value)])
            }
            _ => self.elements(&comprehension.iter_range, false).1,
        };
        let start = self.infer(&comprehension.accu_init);
        let depth = self.bound.len();
        self.bound.push((comprehension.accu_var.clone(), start));
        self.bound.push((comprehension.iter_var.clone(), item));
        self.infer(&comprehension.loop_cond);
        self.infer(&comprehension.loop_step);
        self.bound.truncate(depth + 1);
        let result = self.infer(&comprehension.result);
        self.bound.truncate(depth);
        result
    }
}

/// The type that a name stands for.
fn named<'a>(name: &str) -> CelType<'a> {
    match name {
        "bool" => CelType::Bool,
        "bytes" => CelType::Bytes,
        "double" => CelType::Double,
        "int" => CelType::Int,
        "list" => CelType::list(CelType::Dyn),
        "map" => CelType::Map(Box::new(CelType::Dyn), Box::new(CelType::Dyn)),
        "null_type" => CelType::Null,
        "string" => CelType::Text,
        "uint" => CelType::Uint,
        _ => CelType::Dyn,
    }
}

/// The type of a field that a schema declares.
fn of_field<'a>(schema: SchemaRef<'a>, view: View, field: &str) -> Option<CelType<'a>> {
    if view == View::Root {
        match field {
            "apiVersion" | "kind" => return Some(CelType::Text),
            "metadata" => return Some(CelType::Metadata),
            _ => {}
        }
    }
    let (_, property) = schema
        .properties()
        .find(|(name, _)| escape(name).as_deref() == Some(field))?;
    (view == View::Policy || exposed(property)).then(|| CelType::of_schema(property, view.of(property)))
}

/// An error with the line it is on and a mark below it.
pub(super) fn located(source: &str, at: usize, message: &str) -> String {
    let at = (0..=at.min(source.len()))
        .rev()
        .find(|at| source.is_char_boundary(*at))
        .unwrap_or(0);
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
