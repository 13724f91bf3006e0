//! What is done to an expression before the engine gets it.
//!
//! - `a.b` becomes `a['b']`, which also fails where `a` is null or a scalar; the engine would take such a field for false;
//! - `a.?b` becomes `a[?'b']`, which the engine also evaluates when `b` is missing;
//! - the names of types become the values that `type()` gives;
//! - what `string` is called with goes through a function that knows truth values, which the engine's does not, and what
//!   some functions are called with is evaluated before, since they do not tell what went wrong with it;
//! - `authorizer.requestResource` becomes one variable;
//! - `optMap` and `optFlatMap` become the conditions they stand for;
//! - the condition of every loop first counts against the budget of the evaluation;
//! - what the engine cannot evaluate is refused.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::authorizer::{AUTHORIZER, REQUEST_RESOURCE};
use super::macros::{RESULT, bind};
use super::parse::MAX_DEPTH;
use super::runtime::{FIELD, PLAIN, TICK};

/// A chain of more loops and bindings than this could build values out of all proportion.
const MAX_LOOPS: usize = 24;

/// Functions of the engine that do not tell why their first argument has no value. It gets its value before they are called.
const MASKING: [&str; 6] = ["double", "int", "matches", "size", "string", "uint"];
/// The variable that holds it.
const OPERAND: &str = "@operand";

/// Types as values. To the engine, which has none, they are strings that no object holds.
pub(crate) const TYPES: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];
/// What the strings start with that stand for types.
pub(crate) const TYPE_PREFIX: &str = "\0type:";

fn text_of(key: &IdedExpr) -> Option<&str> {
    match &key.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// The same expression with fields read by a function that says which of them it was that could not be read. It is slow:
/// only what has failed is evaluated so.
pub(crate) fn spelled_out(mut expression: IdedExpr) -> IdedExpr {
    fn walk(expression: &mut IdedExpr) {
        match &mut expression.expr {
            Expr::Call(found) => {
                if found.func_name == op::INDEX && found.args.get(1).is_some_and(|key| text_of(key).is_some())
                {
                    found.func_name = FIELD.to_owned();
                }
                found.target.iter_mut().for_each(|target| walk(target));
                found.args.iter_mut().for_each(walk);
            }
            Expr::Select(select) => walk(&mut select.operand),
            Expr::List(list) => list.elements.iter_mut().for_each(walk),
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        walk(&mut entry.key);
                        walk(&mut entry.value);
                    }
                }
            }
            Expr::Comprehension(comprehension) => {
                let ComprehensionExpr {
                    iter_range,
                    accu_init,
                    loop_cond,
                    loop_step,
                    result,
                    ..
                } = &mut **comprehension;
                [iter_range, accu_init, loop_cond, loop_step, result]
                    .into_iter()
                    .for_each(walk);
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
        }
    }
    walk(&mut expression);
    expression
}

/// A rewritten expression and what it refers to.
pub(crate) struct Rewritten {
    pub(crate) expression: IdedExpr,
    pub(crate) variables: Vec<Box<str>>,
    pub(crate) depth: usize,
}

pub(crate) fn rewrite(mut expression: IdedExpr) -> Result<Rewritten, String> {
    let mut rewriter = Rewriter::default();
    rewriter.visit(&mut expression)?;
    rewriter.variables.sort_unstable();
    rewriter.variables.dedup();
    Ok(Rewritten {
        expression,
        variables: rewriter.variables,
        depth: rewriter.deepest,
    })
}

#[derive(Default)]
struct Rewriter {
    bound: Vec<String>,
    variables: Vec<Box<str>>,
    loops: usize,
    depth: usize,
    deepest: usize,
    /// Nodes visited, and how many of them read a variable of the evaluation.
    nodes: i64,
    reads: i64,
}

impl Rewriter {
    fn visit(&mut self, expression: &mut IdedExpr) -> Result<(), String> {
        self.nodes += 1;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > MAX_DEPTH {
            return Err(format!("the expression nests more than {MAX_DEPTH} levels deep"));
        }
        expand(expression)?;
        let result = self.visit_expanded(expression);
        self.depth -= 1;
        result
    }

    fn visit_expanded(&mut self, expression: &mut IdedExpr) -> Result<(), String> {
        match &mut expression.expr {
            Expr::Unspecified => Err("the expression is incomplete".to_owned()),
            Expr::Struct(structure) => Err(format!(
                "undeclared reference to '{}' (in container '')",
                structure.type_name
            )),
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => {
                if TYPES.contains(&name.as_str()) && !self.bound.contains(name) {
                    let name = format!("{TYPE_PREFIX}{name}");
                    expression.expr = Expr::Literal(LiteralValue::String(name.as_str().into()));
                    return Ok(());
                }
                if !name.starts_with('@') && !self.bound.contains(name) {
                    self.reads += 1;
                    self.variables.push(Box::from(name.as_str()));
                }
                Ok(())
            }
            Expr::Select(select) => {
                self.visit(&mut select.operand)?;
                if let Expr::Ident(name) = &select.operand.expr
                    && name == AUTHORIZER
                    && !select.test
                    && !self.bound.contains(name)
                    && REQUEST_RESOURCE.ends_with(&format!(".{}", select.field))
                {
                    expression.expr = Expr::Ident(REQUEST_RESOURCE.to_owned());
                } else if !select.test {
                    let operand = std::mem::take(&mut *select.operand);
                    let field = IdedExpr {
                        id: 0,
                        expr: Expr::Literal(LiteralValue::String(select.field.as_str().into())),
                    };
                    *expression = call(op::INDEX, vec![operand, field]);
                }
                Ok(())
            }
            Expr::List(list) => list
                .elements
                .iter_mut()
                .try_for_each(|element| self.visit(element)),
            Expr::Map(map) => map
                .entries
                .iter_mut()
                .try_for_each(|entry| match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        self.visit(&mut entry.key)?;
                        self.visit(&mut entry.value)
                    }
                    EntryExpr::StructField(_) => Err("a map cannot hold fields".to_owned()),
                }),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn call(&mut self, call: &mut CallExpr) -> Result<(), String> {
        if call.func_name == op::OPT_SELECT {
            call.func_name = op::OPT_INDEX.to_owned();
        }
        let prefix = match call.target.as_deref() {
            Some(IdedExpr {
                expr: Expr::Ident(name),
                ..
            }) => Some(name),
            _ => None,
        };
        // A namespace such as `math` looks like a variable and is none.
        let namespace = prefix.is_some_and(|prefix| super::runtime::is_namespace(prefix, &call.func_name));
        if let Some(target) = call.target.as_mut().filter(|_| !namespace) {
            self.visit(target)?;
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))
    }

    fn comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.loops += usize::from(comprehension.accu_var != OPERAND);
        if self.loops > MAX_LOOPS {
            return Err(format!("the expression has more than {MAX_LOOPS} loops"));
        }
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        let scope = self.bound.len();
        self.bound.push(comprehension.iter_var.clone());
        self.bound.extend(comprehension.iter_var2.clone());
        if comprehension.accu_var != RESULT {
            self.bound.push(comprehension.accu_var.clone());
        }
        let (nodes, reads) = (self.nodes, self.reads);
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        let cost = [self.nodes - nodes, self.reads - reads];
        self.visit(&mut comprehension.result)?;
        self.bound.truncate(scope);

        let condition = std::mem::take(&mut comprehension.loop_cond);
        let tick = call(
            TICK,
            cost.map(|cost| literal(LiteralValue::Int(cost.into()))).into(),
        );
        let stop = literal(LiteralValue::Boolean(false.into()));
        comprehension.loop_cond = call(op::CONDITIONAL, vec![tick, condition, stop]);
        Ok(())
    }
}

/// Replaces the macros that the parser leaves as calls.
fn expand(expression: &mut IdedExpr) -> Result<(), String> {
    let Expr::Call(found) = &mut expression.expr else {
        return Ok(());
    };
    match (found.func_name.as_str(), found.args.len()) {
        ("optMap" | "optFlatMap", 2) if found.target.is_some() => {
            let flat = found.func_name == "optFlatMap";
            let target = found.target.take().map(|target| *target).unwrap_or_default();
            let mut args = std::mem::take(&mut found.args).into_iter();
            let (Some(Expr::Ident(variable)), body) = (
                args.next().map(|argument| argument.expr),
                args.next().unwrap_or_default(),
            ) else {
                return Err("argument must be a simple name".to_owned());
            };
            let present = method(target.clone(), "hasValue");
            let value = method(target, "value");
            let body = if flat {
                body
            } else {
                namespaced("optional", "of", vec![body])
            };
            let none = namespaced("optional", "none", Vec::new());
            *expression = call(
                op::CONDITIONAL,
                vec![present, bind(0, &variable, value, body), none],
            );
        }
        (name, count) if found.target.is_none() && count > 0 && MASKING.contains(&name) => {
            let text = name == "string";
            if let [operand, ..] = found.args.as_mut_slice() {
                let simple = matches!(operand.expr, Expr::Ident(_) | Expr::Literal(_))
                    || matches!(&operand.expr, Expr::Call(inner) if inner.func_name == PLAIN);
                let mut value = std::mem::take(operand);
                if text && !matches!(&value.expr, Expr::Call(inner) if inner.func_name == PLAIN) {
                    value = call(PLAIN, vec![value]);
                }
                if simple {
                    *operand = value;
                } else {
                    *operand = node(Expr::Ident(OPERAND.to_owned()));
                    if text {
                        *operand = call(PLAIN, vec![std::mem::take(operand)]);
                    }
                    let called = std::mem::take(expression);
                    *expression = bind(0, OPERAND, value, called);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn literal(value: LiteralValue) -> IdedExpr {
    node(Expr::Literal(value))
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}

fn method(target: IdedExpr, name: &str) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args: Vec::new(),
    }))
}

fn namespaced(namespace: &str, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let target = Some(Box::new(node(Expr::Ident(namespace.to_owned()))));
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target,
        args,
    }))
}
