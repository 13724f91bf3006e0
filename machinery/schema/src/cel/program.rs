//! Compiled expressions.

use std::thread;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;
use serde_json::Value;

use super::runtime::Evaluation;
use super::{rewrite, runtime, values};

/// The longest expression that is compiled; the longest in use have a few thousand characters.
const MAX_LENGTH: usize = 16 * 1024;
/// Deeper nesting is beyond the parser, which takes long to find out.
const MAX_BRACKETS: usize = 80;
/// Reserved while an expression is parsed; only what is used is ever backed by memory.
const PARSER_STACK: usize = 512 << 20;
/// Expressions that nest deeper run on a stack of their own: the engine takes many kilobytes for each level.
const INLINE_DEPTH: usize = 24;
const DEEP_STACK: usize = 64 << 20;

/// A CEL expression, parsed once and evaluated often.
#[derive(Debug)]
pub struct CelProgram {
    expression: IdedExpr,
    variables: Vec<Box<str>>,
    functions: Vec<rewrite::FunctionUse>,
    depth: usize,
}

impl CelProgram {
    /// Parses an expression. The error says what is wrong, and where.
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("the expression is longer than {MAX_LENGTH} bytes"));
        }
        if bracket_depth(source) > MAX_BRACKETS {
            return Err(format!(
                "the expression has more than {MAX_BRACKETS} brackets inside each other"
            ));
        }
        // The parser recurses as deep as the expression goes, before anyone can look at the result. It does so on a
        // stack of its own, which no expression of that length fills; what is too deep never leaves it.
        let parsing = || {
            let parser = Parser::new().enable_optional_syntax(true);
            parser
                .parse(source)
                .map_err(|errors| errors.to_string())
                .and_then(rewrite::rewrite)
        };
        let rewritten = thread::scope(|scope| {
            let spawned = thread::Builder::new()
                .stack_size(PARSER_STACK)
                .spawn_scoped(scope, parsing);
            spawned
                .map_err(|error| error.to_string())?
                .join()
                .map_err(|_| "the expression could not be parsed")?
        })?;
        Ok(Self {
            expression: rewritten.expression,
            variables: rewritten.variables,
            functions: rewritten.functions,
            depth: rewritten.depth,
        })
    }

    /// Whether the expression reads this variable.
    pub fn references(&self, variable: &str) -> bool {
        self.variables.iter().any(|known| known.as_ref() == variable)
    }

    /// The variables that the expression reads, by name.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(AsRef::as_ref)
    }

    /// The first variable or function that is neither in `variables` nor known to the engine, if there is one.
    pub fn undeclared(&self, variables: &[&str]) -> Option<String> {
        let unknown = self
            .variables
            .iter()
            .find(|name| !variables.contains(&name.as_ref()));
        unknown
            .map(ToString::to_string)
            .or_else(|| self.undeclared_function().map(str::to_owned))
    }

    /// The first function that the engine does not have.
    pub(crate) fn undeclared_function(&self) -> Option<&str> {
        self.functions
            .iter()
            .find(|function| !runtime::knows(function))
            .map(|function| function.name.as_ref())
    }

    /// Evaluates the expression with these variables. Objects are seen as they are, without a schema.
    pub fn eval(&self, variables: &[(&str, &Value)]) -> Result<Value, String> {
        self.eval_counted(variables).0
    }

    /// The same, and what it took: about as many steps as nodes of the expression were visited.
    pub fn eval_counted(&self, variables: &[(&str, &Value)]) -> (Result<Value, String>, u64) {
        let size = variables.iter().map(|(_, value)| values::size(value)).sum();
        let variables = variables
            .iter()
            .map(|(name, value)| (*name, values::plain(value)))
            .collect();
        let evaluation = self.run(size, variables);
        let result = evaluation
            .result
            .map_err(|error| runtime::describe(&error))
            .and_then(|value| values::to_json(&value));
        (result, u64::try_from(evaluation.spent).unwrap_or(0))
    }

    /// Evaluates an expression that must be true or false.
    pub fn eval_bool(&self, variables: &[(&str, &Value)]) -> Result<bool, String> {
        match self.eval(variables)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }

    pub(crate) fn expression(&self) -> &IdedExpr {
        &self.expression
    }

    /// Evaluates with engine values; `size` is roughly the number of nodes in them.
    pub(crate) fn run(&self, size: usize, variables: Vec<(&str, CelValue)>) -> Evaluation {
        let evaluate = || runtime::evaluate(&self.expression, size, variables);
        if self.depth <= INLINE_DEPTH {
            return evaluate();
        }
        thread::scope(|scope| {
            let spawned = thread::Builder::new()
                .stack_size(DEEP_STACK)
                .spawn_scoped(scope, evaluate);
            spawned
                .ok()
                .and_then(|thread| thread.join().ok())
                .unwrap_or_else(Evaluation::failed)
        })
    }
}

/// How many brackets are open at once, at most. Those in strings do not count.
fn bracket_depth(source: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut quote = None;
    let mut bytes = source.bytes();
    while let Some(b) = bytes.next() {
        match (b, quote) {
            (b'\\', Some(_)) => {
                bytes.next();
            }
            (b'\'' | b'"', None) => quote = Some(b),
            (b, Some(open)) if b == open => quote = None,
            (b'(' | b'[' | b'{', None) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (b')' | b']' | b'}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
