//! Compiled expressions.

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{ExecutionError, Value as CelValue};
use serde_json::Value;

use super::{rewrite, runtime, values};

/// The longest expression that is compiled; the longest in use have a few thousand characters.
const MAX_LENGTH: usize = 32 * 1024;

/// A CEL expression, parsed once and evaluated often.
#[derive(Debug)]
pub struct CelProgram {
    expression: IdedExpr,
    variables: Vec<Box<str>>,
    functions: Vec<rewrite::FunctionUse>,
}

impl CelProgram {
    /// Parses an expression. The error says what is wrong, and where.
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("the expression is longer than {MAX_LENGTH} bytes"));
        }
        let parsed = runtime::guarded(|| Parser::new().enable_optional_syntax(true).parse(source))
            .map_err(|()| "the expression could not be parsed".to_owned())?;
        let expression = parsed.map_err(|errors| errors.to_string())?;
        let rewritten = rewrite::rewrite(expression)?;
        Ok(Self {
            expression: rewritten.expression,
            variables: rewritten.variables,
            functions: rewritten.functions,
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
        let size = variables.iter().map(|(_, value)| values::size(value)).sum();
        let result = self.run(
            size,
            variables
                .iter()
                .map(|(name, value)| (*name, values::plain(value))),
        );
        result
            .map_err(|error| runtime::describe(&error))
            .and_then(|value| values::to_json(&value))
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
    pub(crate) fn run<'a>(
        &self,
        size: usize,
        variables: impl Iterator<Item = (&'a str, CelValue)>,
    ) -> Result<CelValue, ExecutionError> {
        runtime::evaluate(&self.expression, size, variables)
    }
}
