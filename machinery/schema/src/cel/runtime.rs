//! Runs expressions: the functions, the budget, and the words for what goes wrong.
//!
//! The functions are registered once for each thread. The budget of the evaluation in progress is kept beside
//! them; evaluations do not nest.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::{Key, Map, ResolveResult};
use kube_cel::cel::{Context, ExecutionError, Value};

use super::authorizer;
use super::pattern::matches;
use super::rewrite::{self, TYPE_PREFIX};

/// The function that every loop calls before each round.
pub(crate) const TICK: &str = "@tick";

/// The function that reads a field and tells which one could not be read.
pub(crate) const FIELD: &str = "@field";

/// The function that makes texts of truth values and leaves everything else as it is.
pub(crate) const PLAIN: &str = "@plain";

/// The functions behind loops with two variables: the pairs of a list or map, and what makes a map of them.
pub(crate) const PAIRS: &str = "@pairs";
pub(crate) const PUT: &str = "@put";
pub(crate) const MERGE: &str = "@merge";

/// What one evaluation may spend, in nodes of the expression visited.
pub(crate) const CALL_BUDGET: i64 = 1_000_000;

/// The longest string that a replacement may make.
const MAX_STRING: usize = 4 << 20;

/// How the server starts its message when an evaluation costs too much.
pub(crate) const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

thread_local! {
    static CONTEXT: Context<'static> = functions();
    static BUDGET: Cell<i64> = const { Cell::new(0) };
    /// What reading a variable costs: the engine copies what it reads.
    static READ_COST: Cell<i64> = const { Cell::new(0) };
}

fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function(TICK, tick);
    context.add_function(FIELD, field);
    context.add_function("type", type_of);
    context.add_function("replace", replace);
    context.add_function("matches", matches);
    context.add_function("lists.range", range);
    context.add_function(PLAIN, plain);
    context.add_function(PAIRS, pairs);
    context.add_function(PUT, put);
    context.add_function(MERGE, merge);
    authorizer::register(&mut context);
    context
}

fn tick(nodes: i64, reads: i64) -> Result<Value, ExecutionError> {
    let cost = nodes.saturating_add(reads.saturating_mul(READ_COST.get())).max(1);
    charge(cost).map(|()| Value::Bool(true))
}

fn charge(cost: i64) -> Result<(), ExecutionError> {
    let left = BUDGET.get().saturating_sub(cost);
    BUDGET.set(left);
    if left < 0 { Err(too_expensive()) } else { Ok(()) }
}

/// Takes what a function costs from the budget.
pub(super) fn spend(cost: usize) -> Result<(), ExecutionError> {
    charge(i64::try_from(cost).unwrap_or(i64::MAX))
}

fn field(value: Value, name: Arc<String>) -> ResolveResult {
    match value {
        Value::Map(map) => {
            let found = map.map.get(&Key::String(name.clone())).cloned();
            found.ok_or(ExecutionError::NoSuchKey(name))
        }
        Value::List(_) => Err(ExecutionError::function_error(
            FIELD,
            "unsupported index type 'string' in list",
        )),
        Value::Opaque(_) | Value::Function(..) => Err(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchKey(name)),
    }
}

fn type_of(value: Value) -> ResolveResult {
    let name = match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Opaque(_) | Value::Function(..) => "dyn",
    };
    Ok(Value::String(Arc::new(format!("{TYPE_PREFIX}{name}"))))
}

fn too_expensive() -> ExecutionError {
    ExecutionError::function_error(TICK, COST_EXCEEDED)
}

/// As the engine's own, but the result is bounded.
fn replace(This(text): This<Arc<String>>, Arguments(args): Arguments) -> ResolveResult {
    let (from, to, limit) = match args.as_slice() {
        [Value::String(from), Value::String(to)] => (from, to, usize::MAX),
        [Value::String(from), Value::String(to), Value::Int(limit)] => {
            (from, to, usize::try_from(*limit).unwrap_or(usize::MAX))
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let count = text.matches(from.as_str()).count().min(limit);
    if text.len() + count.saturating_mul(to.len()) > MAX_STRING {
        return Err(too_expensive());
    }
    Ok(Value::String(Arc::new(text.replacen(from.as_str(), to, limit))))
}

fn plain(value: Value) -> ResolveResult {
    Ok(match value {
        Value::Bool(flag) => Value::String(Arc::new(flag.to_string())),
        other => other,
    })
}

fn pairs(value: Value) -> ResolveResult {
    let pair = |key: Value, value: Value| Value::List(Arc::new(vec![key, value]));
    let pairs: Vec<Value> = match value {
        Value::List(items) => {
            let items = items.iter().cloned().zip(0..);
            items.map(|(item, index)| pair(Value::Int(index), item)).collect()
        }
        Value::Map(map) => {
            let mut entries: Vec<(&Key, &Value)> = map.map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            let entries = entries.into_iter();
            entries
                .map(|(key, value)| pair(key.into(), value.clone()))
                .collect()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    spend(pairs.len())?;
    Ok(Value::List(Arc::new(pairs)))
}

fn put(map: Value, key: Value, value: Value) -> ResolveResult {
    let Value::Map(map) = map else {
        return Err(ExecutionError::NoSuchOverload);
    };
    spend(map.map.len())?;
    let key: Key = key.try_into().map_err(ExecutionError::UnsupportedKeyType)?;
    let mut entries = (*map.map).clone();
    if entries.contains_key(&key) {
        let message = format!("insert failed: key {key} already exists");
        return Err(ExecutionError::function_error(PUT, message));
    }
    entries.insert(key, value);
    Ok(Value::Map(Map {
        map: Arc::new(entries),
    }))
}

fn merge(map: Value, more: Value) -> ResolveResult {
    let Value::Map(more) = more else {
        return Err(ExecutionError::NoSuchOverload);
    };
    more.map
        .iter()
        .try_fold(map, |map, (key, value)| put(map, key.into(), value.clone()))
}

fn range(count: i64) -> ResolveResult {
    if count > BUDGET.get().max(1000) {
        return Err(too_expensive());
    }
    Ok(Value::List(Arc::new((0..count.max(0)).map(Value::Int).collect())))
}

/// The outcome of an evaluation and what it took.
pub(crate) struct Evaluation {
    pub(crate) result: ResolveResult,
    pub(crate) spent: i64,
}

impl Evaluation {
    /// An evaluation that the engine gave up on.
    pub(crate) fn failed() -> Self {
        Self {
            result: Err(ExecutionError::function_error("evaluation", "internal error")),
            spent: CALL_BUDGET,
        }
    }
}

/// Evaluates an expression; `size` is roughly the number of nodes in the variables.
pub(crate) fn evaluate(expression: &IdedExpr, size: usize, variables: Vec<(&str, Value)>) -> Evaluation {
    CONTEXT.with(|context| {
        let mut scope = context.new_inner_scope();
        for (name, value) in variables {
            scope.add_variable_from_value(name, value);
        }
        BUDGET.set(CALL_BUDGET);
        READ_COST.set(i64::try_from(size / 64).unwrap_or(i64::MAX));
        // A defect in the engine must fail the evaluation and nothing else.
        let resolve =
            |expression: &IdedExpr| catch_unwind(AssertUnwindSafe(|| Value::resolve(expression, &scope)));
        let mut result = resolve(expression);
        // A field of something that has none is the usual reason, and then people want to know which.
        if let Ok(Err(ExecutionError::NoSuchOverload | ExecutionError::UnexpectedType { .. })) = &result {
            let again = resolve(&rewrite::spelled_out(expression.clone()));
            if let Ok(Err(told)) = again {
                result = Ok(Err(told));
            }
        }
        match result {
            Ok(result) => Evaluation {
                result,
                spent: CALL_BUDGET - BUDGET.get() + 1,
            },
            Err(_) => Evaluation::failed(),
        }
    })
}

/// Whether an expression without variables has a value.
pub(crate) fn succeeds(expression: &IdedExpr) -> bool {
    evaluate(expression, 0, Vec::new()).result.is_ok()
}

/// Whether `prefix.name` is one function, so that the prefix is no variable.
pub(crate) fn is_namespace(prefix: &str, name: &str) -> bool {
    let target = Some(Box::new(IdedExpr {
        id: 0,
        expr: Expr::Ident(prefix.to_owned()),
    }));
    // Without the namespace the engine would look for the variable.
    !is_undeclared(name, target)
}

/// Calls a function without arguments to see whether it is there.
fn is_undeclared(name: &str, target: Option<Box<IdedExpr>>) -> bool {
    let call = CallExpr {
        func_name: name.to_owned(),
        target,
        args: Vec::new(),
    };
    let expression = IdedExpr {
        id: 0,
        expr: Expr::Call(call),
    };
    matches!(
        evaluate(&expression, 0, Vec::new()).result,
        Err(ExecutionError::UndeclaredReference(_))
    )
}

/// An error in the server's words.
pub(crate) fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "return error for overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedTargetType { .. } => "no such overload".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
