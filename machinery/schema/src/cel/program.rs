//! Compiled expressions.

use std::thread;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;
use serde_json::Value;

use super::authorizer::Authorizer;
use super::check::located;
use super::lex::Unread;
use super::parse::{Parsed, parse};
use super::runtime::Evaluation;
use super::{rewrite, runtime, values};

/// The longest expression that is compiled; the longest in use have a few thousand characters.
const MAX_LENGTH: usize = 16 * 1024;
/// Longer texts, and those with more brackets, are refused in words of our own.
const MAX_TOLD: usize = 512;
const MAX_TOLD_BRACKETS: usize = 16;
/// The engine's parser recurses many times for each bracket.
const PARSER_STACK: usize = 64 << 20;
/// Expressions that nest deeper run on a stack of their own: the engine takes many kilobytes for each level.
const INLINE_DEPTH: usize = 24;
const DEEP_STACK: usize = 64 << 20;

/// The largest value that is passed on, in nodes; each may hold some text.
const MAX_NATIVE: usize = 1 << 20;

/// What an expression gave, as other expressions see it: times, quantities and keys that are no text included.
#[derive(Clone, Debug)]
pub struct Native {
    value: CelValue,
    size: usize,
}

impl Native {
    /// The value as JSON.
    ///
    /// # Errors
    /// If JSON has nothing for it.
    pub fn to_json(&self) -> Result<Value, String> {
        values::to_json(&self.value)
    }
}

/// A CEL expression, parsed once and evaluated often.
#[derive(Debug)]
pub struct CelProgram {
    expression: IdedExpr,
    variables: Vec<Box<str>>,
    depth: usize,
}

impl CelProgram {
    /// Parses an expression. The error says what is wrong, and where.
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("the expression is longer than {MAX_LENGTH} bytes"));
        }
        let Parsed { expression, depth } = parse(source).map_err(|unread| refusal(source, &unread))?;
        let rewritten =
            deep(depth, || rewrite::rewrite(expression)).ok_or("the expression could not be compiled")??;
        Ok(Self {
            expression: rewritten.expression,
            variables: rewritten.variables,
            depth: rewritten.depth,
        })
    }

    /// Whether the expression reads this variable.
    pub fn references(&self, variable: &str) -> bool {
        self.variables.iter().any(|known| known.as_ref() == variable)
    }

    /// Evaluates the expression with these variables. Objects are seen as they are, without a schema.
    pub fn eval(&self, variables: &[(&str, &Value)]) -> Result<Value, String> {
        self.eval_counted(variables).0
    }

    /// The same for an expression that uses what others gave, as fields of one more variable, and may ask what is allowed.
    ///
    /// # Errors
    /// If the evaluation fails, or if what it gives is too large to be used further.
    pub fn eval_native(
        &self,
        variables: &[(&str, &Value)],
        (name, fields): (&str, Vec<(&str, Native)>),
        authorizer: Option<&Authorizer>,
    ) -> Result<Native, String> {
        let given: usize = fields.iter().map(|(_, field)| field.size).sum();
        let known: usize = variables.iter().map(|(_, value)| values::size(value)).sum();
        let fields = fields.into_iter().map(|(name, field)| (name, field.value));
        let mut all: Vec<(&str, CelValue)> = vec![(name, values::fields(fields))];
        all.extend(
            variables
                .iter()
                .map(|(name, value)| (*name, values::plain(value))),
        );
        if let Some(authorizer) = authorizer {
            all.extend(authorizer.variables());
        }
        let value = self
            .run(given + known, all)
            .result
            .map_err(|error| runtime::describe(&error))?;
        match values::size_up_to(&value, MAX_NATIVE) {
            size if size < MAX_NATIVE => Ok(Native { value, size }),
            _ => Err(runtime::COST_EXCEEDED.to_owned()),
        }
    }

    /// Evaluates the expression and tells what it took: about as many steps as nodes of it were visited.
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

    /// Evaluates with engine values; `size` is roughly the number of nodes in them.
    pub(crate) fn run(&self, size: usize, variables: Vec<(&str, CelValue)>) -> Evaluation {
        deep(self.depth, || {
            runtime::evaluate(&self.expression, size, variables)
        })
        .unwrap_or_else(Evaluation::failed)
    }
}

/// Runs what recurses as deep as an expression does, on a stack of its own where it is deep.
pub(super) fn deep<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= INLINE_DEPTH {
        return Some(work());
    }
    on_stack(DEEP_STACK, work)
}

/// Runs something on a stack of its own; only what is used of it is ever backed by memory.
fn on_stack<T: Send>(size: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new().stack_size(size).spawn_scoped(scope, work);
        spawned.ok().and_then(|thread| thread.join().ok())
    })
}

/// Why an expression cannot be read. The engine's parser has the server's words for it, and is asked for them as long as that
/// is quick.
fn refusal(source: &str, unread: &Unread) -> String {
    let syntax = unread.message.starts_with("Syntax error");
    let brackets = source.bytes().filter(|b| b"([{?".contains(b)).count();
    let asked = (syntax && source.len() <= MAX_TOLD && brackets <= MAX_TOLD_BRACKETS).then(|| {
        on_stack(PARSER_STACK, || {
            let parser = Parser::new().enable_optional_syntax(true);
            parser.parse(source).err().map(|errors| errors.to_string())
        })
    });
    match asked.flatten().flatten() {
        // The engine starts the lines of its snippets without the space.
        Some(words) => words.replace("\n| ", "\n | "),
        None => located(source, unread.at, &unread.message),
    }
}
