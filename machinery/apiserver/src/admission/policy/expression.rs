//! Expressions of a policy: compiled once, run with the values of one request.
//!
//! A policy's variables are evaluated when an expression that names them runs, and once. Their values stay what they are on the
//! way: a time, a quantity, a map whose keys are numbers.

use std::cell::{Cell, OnceCell};

use machinery_schema::cel::{Authorizer, CelProgram, Native};
use machinery_value::{Map, Value};

use super::source::Source;

/// How many expressions one request may evaluate; each is bounded in itself.
pub(super) const MAX_EVALUATIONS: u32 = 10_000;
/// How far variables may refer to variables that refer to variables.
const MAX_DEPTH: usize = 100;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The variables that may be null.
const NULLABLE: [&str; 4] = ["object", "oldObject", "namespaceObject", "params"];

/// An expression, ready to run.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    program: Result<CelProgram, String>,
    /// The variables that it names.
    values: Vec<usize>,
    /// Which of [`NULLABLE`] it only asks for their fields.
    selected: [bool; NULLABLE.len()],
}

/// A named expression.
#[derive(Debug)]
pub(super) struct Variable {
    name: String,
    expression: Expression,
    depth: usize,
}

impl Variable {
    /// Whether its expression asks what is allowed.
    pub(super) fn asks(&self) -> bool {
        self.expression.asks()
    }

    /// Adds a variable that may use those before it.
    pub(super) fn push(variables: &mut Vec<Self>, name: &str, text: &str) {
        let mut expression = Expression::new(text, variables);
        let named = expression.values.iter();
        let depth = 1 + named.map(|i| variables[*i].depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            expression.program = Err(format!(
                "variables refer to each other more than {MAX_DEPTH} deep"
            ));
        }
        variables.push(Self {
            name: name.to_owned(),
            expression,
            depth,
        });
    }
}

impl Expression {
    /// Compiles `text`, which may use `variables`.
    pub(super) fn new(text: &str, variables: &[Variable]) -> Self {
        let source = Source::scan(text);
        let bare = |name: &str| {
            let mut places =
                (0..source.tokens.len()).filter(|at| source.at(*at) == name && source.is_variable(*at));
            places.any(|at| source.at(at + 1) != "[" && source.fields(at).next().is_none())
        };
        Self {
            text: text.to_owned(),
            program: CelProgram::compile(text),
            values: uses(&source, variables),
            selected: NULLABLE.map(|name| !bare(name)),
        }
    }

    /// Whether it asks what is allowed.
    pub(super) fn asks(&self) -> bool {
        self.program
            .as_ref()
            .is_ok_and(|program| program.references("authorizer"))
    }

    /// Whether a variable is only ever asked for its fields.
    fn only_selects(&self, name: &str) -> bool {
        NULLABLE
            .iter()
            .zip(self.selected)
            .any(|(known, selected)| *known == name && selected)
    }
}

/// The variables that an expression names.
fn uses(source: &Source<'_>, variables: &[Variable]) -> Vec<usize> {
    let mut found: Vec<usize> = (0..source.tokens.len())
        .filter(|at| source.at(*at) == "variables" && source.is_variable(*at))
        .filter_map(|at| source.fields(at).next())
        .filter_map(|(_, name)| variables.iter().rposition(|variable| variable.name == name))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The values of one request for the expressions of one policy.
pub(super) struct Activation<'a> {
    variables: &'a [Variable],
    known: &'a [(&'static str, &'a Value)],
    memo: Vec<OnceCell<Result<Native, String>>>,
    budget: &'a Cell<u32>,
    authorizer: Option<&'a Authorizer>,
}

impl<'a> Activation<'a> {
    /// `known` are the variables that every policy has; `budget` counts evaluations down; without an authorizer, nothing can
    /// be asked.
    pub(super) fn new(
        variables: &'a [Variable],
        known: &'a [(&'static str, &'a Value)],
        budget: &'a Cell<u32>,
        authorizer: Option<&'a Authorizer>,
    ) -> Self {
        Self {
            variables,
            known,
            memo: vec![OnceCell::new(); variables.len()],
            budget,
            authorizer,
        }
    }

    /// Runs an expression. The error is what clients see.
    pub(super) fn run(&self, expression: &Expression) -> Result<Value, String> {
        match &expression.program {
            Err(problem) => Err(format!("compilation error: compilation failed: {problem}")),
            Ok(_) if self.budget.get() == 0 => Err(OUT_OF_BUDGET.to_owned()),
            Ok(program) => self
                .evaluate(program, expression)
                .and_then(|value| value.to_json())
                .map_err(|error| format!("expression '{}' resulted in error: {error}", expression.text)),
        }
    }

    fn evaluate(&self, program: &CelProgram, expression: &Expression) -> Result<Native, String> {
        // One that fails is left out: the expression then fails where it reads it, and only if it does.
        let named = expression.values.iter().filter_map(|index| {
            let value = self.value(*index).as_ref().ok()?;
            Some((self.variables[*index].name.as_str(), value.clone()))
        });
        let named = named.collect();
        let left = self.budget.get().checked_sub(1).ok_or(OUT_OF_BUDGET)?;
        self.budget.set(left);
        let none = Value::Object(Map::new());
        let known = self.known.iter().copied();
        let read: Vec<(&str, &Value)> = known
            .filter(|(name, _)| program.references(name))
            // To the engine the fields of null are null; they are missing, and reading one is an error.
            .map(|(name, value)| {
                if value.is_null() && expression.only_selects(name) {
                    (name, &none)
                } else {
                    (name, value)
                }
            })
            .collect();
        let authorizer = self.authorizer.filter(|_| expression.asks());
        let result = program.eval_native(&read, ("variables", named), authorizer);
        result.map_err(|error| self.blame(expression, error))
    }

    fn value(&self, index: usize) -> &Result<Native, String> {
        let expression = &self.variables[index].expression;
        self.memo[index].get_or_init(|| match &expression.program {
            Ok(program) => self.evaluate(program, expression),
            Err(problem) => Err(format!("compilation failed: {problem}")),
        })
    }

    /// Names the variable that an error comes from.
    fn blame(&self, expression: &Expression, error: String) -> String {
        let failed = |index: &usize| Some((&self.variables[*index].name, self.value(*index).as_ref().err()?));
        let composited = |(name, why): (&String, &String)| {
            format!("composited variable {name:?} fails to evaluate: {why}")
        };
        let mut read = expression.values.iter().filter_map(failed);
        let read = read.find(|(name, _)| error == format!("no such key: {name}"));
        read.map_or(error, composited)
    }
}
