//! What is done to an expression before the engine gets it.
//!
//! - `a.b` becomes `a['b']`, which also fails where `a` is null or a scalar; the engine would take such a field for false;
//! - `a.?b` becomes `a[?'b']`, which the engine also evaluates when `b` is missing;
//! - the names of types become the values that `type()` gives;
//! - `optMap` and `optFlatMap` become the conditions they stand for;
//! - the condition of every loop first counts against the budget of the evaluation;
//! - what the engine cannot evaluate is refused.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue,
};

use super::runtime::{FIELD, TICK};

/// The engine recurses as deep as the expression nests.
const MAX_DEPTH: usize = 250;
/// A chain of more loops and bindings than this could build values out of all proportion.
const MAX_LOOPS: usize = 24;

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

/// The variable that holds the result of a loop.
const RESULT: &str = "@result";

/// Marks the key of an index that is written as a field.
const SELECTED: u64 = u64::MAX;

/// The field that is selected, if the call is what a selection became.
pub(crate) fn selected(call: &CallExpr) -> Option<(&IdedExpr, &str)> {
    match call.args.as_slice() {
        [operand, key] if call.func_name == op::INDEX && key.id == SELECTED => Some((operand, text_of(key)?)),
        _ => None,
    }
}

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

/// A function as it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FunctionUse {
    /// The identifier before the dot, if there is one: a namespace or a variable.
    pub(crate) prefix: Option<Box<str>>,
    pub(crate) name: Box<str>,
    /// Whether it is called on a value.
    pub(crate) method: bool,
}

/// A rewritten expression and what it refers to.
pub(crate) struct Rewritten {
    pub(crate) expression: IdedExpr,
    pub(crate) variables: Vec<Box<str>>,
    pub(crate) functions: Vec<FunctionUse>,
    pub(crate) depth: usize,
}

pub(crate) fn rewrite(mut expression: IdedExpr) -> Result<Rewritten, String> {
    let mut rewriter = Rewriter::default();
    rewriter.visit(&mut expression)?;
    rewriter.variables.sort_unstable();
    rewriter.variables.dedup();
    rewriter.functions.sort_unstable();
    rewriter.functions.dedup();
    Ok(Rewritten {
        expression,
        variables: rewriter.variables,
        functions: rewriter.functions,
        depth: rewriter.deepest,
    })
}

#[derive(Default)]
struct Rewriter {
    bound: Vec<String>,
    variables: Vec<Box<str>>,
    functions: Vec<FunctionUse>,
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
                if !select.test {
                    let operand = std::mem::take(&mut *select.operand);
                    let field = IdedExpr {
                        id: SELECTED,
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
            }) => Some(Box::from(name.as_str())),
            _ => None,
        };
        if call.func_name.starts_with(char::is_alphabetic) {
            let name = Box::from(call.func_name.as_str());
            self.functions.push(FunctionUse {
                prefix: prefix.clone(),
                name,
                method: call.target.is_some(),
            });
        }
        // A namespace such as `math` looks like a variable and is none.
        let namespace = prefix.is_some_and(|prefix| super::runtime::is_namespace(&prefix, &call.func_name));
        if let Some(target) = call.target.as_mut().filter(|_| !namespace) {
            self.visit(target)?;
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))
    }

    fn comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.loops += 1;
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
            let (variable, body) = (args.next(), args.next().unwrap_or_default());
            let present = method(target.clone(), "hasValue");
            let value = method(target, "value");
            let body = if flat {
                body
            } else {
                namespaced("optional", "of", vec![body])
            };
            let none = namespaced("optional", "none", Vec::new());
            *expression = call(op::CONDITIONAL, vec![present, bind(variable, value, body)?, none]);
        }
        _ => {}
    }
    Ok(())
}

/// The body with a name for a value in it: a loop over nothing whose accumulator is the variable.
fn bind(variable: Option<IdedExpr>, value: IdedExpr, body: IdedExpr) -> Result<IdedExpr, String> {
    let Some(IdedExpr {
        expr: Expr::Ident(variable),
        ..
    }) = variable
    else {
        return Err("argument must be a simple name".to_owned());
    };
    Ok(node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable.clone(),
        accu_init: value,
        loop_cond: literal(LiteralValue::Boolean(false.into())),
        loop_step: node(Expr::Ident(variable)),
        result: body,
    }))))
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
