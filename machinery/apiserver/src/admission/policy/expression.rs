//! Expressions of a policy: compiled once, run with the values of one request.
//!
//! A policy's variables are evaluated when an expression that names them runs, and once. Their values travel as JSON.
//! A variable whose value JSON cannot hold (a time, a quantity, an optional value) is put in place of its name
//! instead, so that nothing is lost on the way.

use std::cell::{Cell, OnceCell};

use machinery_schema::cel::{Authorizer, CelProgram};
use machinery_value::{Map, Value};

use super::source::{Shape, Source};

/// How many expressions one request may evaluate; each is bounded in itself.
pub(super) const MAX_EVALUATIONS: u32 = 10_000;
/// The longest expression that a variable is put into.
const MAX_PLACED: usize = 16 * 1024;
/// How far variables may refer to variables that refer to variables.
const MAX_DEPTH: usize = 100;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The variables that may be null.
const NULLABLE: [&str; 4] = ["object", "oldObject", "namespaceObject", "params"];

/// The functions that make values which JSON does not have.
const NATIVE: [&str; 10] = [
    "bytes",
    "cidr",
    "duration",
    "ip",
    "quantity",
    "semver",
    "timestamp",
    "type",
    "uint",
    "url",
];

/// An expression, ready to run.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    program: Result<CelProgram, String>,
    /// The variables that it gets by value.
    values: Vec<usize>,
    /// The variables whose expressions were put into it.
    placed: Vec<usize>,
    /// Which of [`NULLABLE`] it only asks for their fields.
    selected: [bool; NULLABLE.len()],
}

/// A named expression.
#[derive(Debug)]
pub(super) struct Variable {
    name: String,
    expression: Expression,
    /// What stands for its name, if not its value.
    place: Option<String>,
    depth: usize,
}

impl Variable {
    /// Whether its expression asks what is allowed.
    pub(super) fn asks(&self) -> bool {
        self.expression.asks()
    }

    /// Adds a variable that may use those before it.
    pub(super) fn push(variables: &mut Vec<Self>, name: &str, text: &str) {
        let source = Source::scan(text);
        let (values, placed) = uses(&source, variables);
        let native = !placed.is_empty() || is_native(&source);
        let place = native
            .then(|| place(&source, variables))
            .filter(|text| text.len() <= MAX_PLACED);
        let depth = 1 + values
            .iter()
            .chain(&placed)
            .map(|i| variables[*i].depth)
            .max()
            .unwrap_or(0);
        let mut expression = Expression::new(text, variables);
        if depth > MAX_DEPTH {
            expression.program = Err(format!(
                "variables refer to each other more than {MAX_DEPTH} deep"
            ));
        }
        variables.push(Self {
            name: name.to_owned(),
            expression,
            place,
            depth,
        });
    }
}

impl Expression {
    /// Compiles `text`, which may use `variables`.
    pub(super) fn new(text: &str, variables: &[Variable]) -> Self {
        let source = Source::scan(text);
        let (values, placed) = uses(&source, variables);
        if placed.is_empty() {
            return Self::compile(text, &source, values, placed);
        }
        let whole = place(&source, variables);
        let source = Source::scan(&whole);
        // What was put in place may name further variables.
        let (values, _) = uses(&source, variables);
        Self::compile(text, &source, values, placed)
    }

    fn compile(text: &str, source: &Source<'_>, values: Vec<usize>, placed: Vec<usize>) -> Self {
        let bare = |name: &str| {
            let mut places =
                (0..source.tokens.len()).filter(|at| source.at(*at) == name && source.is_variable(*at));
            places.any(|at| source.at(at + 1) != "[" && source.fields(at).next().is_none())
        };
        Self {
            text: text.to_owned(),
            program: CelProgram::compile(source.text),
            values,
            placed,
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

/// The variables that an expression names: those passed by value, and those to put in place.
fn uses(source: &Source<'_>, variables: &[Variable]) -> (Vec<usize>, Vec<usize>) {
    let mut found: Vec<usize> = (0..source.tokens.len())
        .filter(|at| source.at(*at) == "variables" && source.is_variable(*at))
        .filter_map(|at| source.fields(at).next())
        .filter_map(|(_, name)| variables.iter().rposition(|variable| variable.name == name))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .partition(|index| variables[*index].place.is_none())
}

/// The expression with the variables in it that cannot be passed by value.
fn place(source: &Source<'_>, variables: &[Variable]) -> String {
    let mut out = String::with_capacity(source.text.len());
    let mut copied = 0;
    for at in 0..source.tokens.len() {
        if source.at(at) != "variables" || !source.is_variable(at) {
            continue;
        }
        let Some((_, name)) = source.fields(at).next().filter(|_| source.at(at + 2) != "?") else {
            continue;
        };
        let named = variables.iter().rev().find(|variable| variable.name == name);
        if let Some(text) = named.and_then(|variable| variable.place.as_deref()) {
            out.push_str(&source.text[copied..source.tokens[at].span.start]);
            out.push('(');
            out.push_str(text);
            // On a line of its own, as the expression may end with a comment.
            out.push_str("\n)");
            copied = source.tokens[at + 2].span.end;
        }
        // What is too long for the compiler is left for it to refuse.
        if out.len() > 4 * MAX_PLACED {
            break;
        }
    }
    out.push_str(&source.text[copied..]);
    out
}

/// Whether an expression works with values that JSON does not have.
fn is_native(source: &Source<'_>) -> bool {
    source
        .tokens
        .iter()
        .enumerate()
        .any(|(at, token)| match token.shape {
            Shape::Bytes => true,
            Shape::Name => match source.at(at) {
                "optional" | "authorizer" => source.is_variable(at),
                name => source.at(at + 1) == "(" && NATIVE.contains(&name),
            },
            Shape::Sign => source.at(at + 1) == "?" && matches!(source.at(at), "." | "["),
            Shape::Int => source.at(at).ends_with(['u', 'U']),
            Shape::Double | Shape::Text => false,
        })
}

/// The values of one request for the expressions of one policy.
pub(super) struct Activation<'a> {
    variables: &'a [Variable],
    known: &'a [(&'static str, &'a Value)],
    memo: Vec<OnceCell<Result<Value, String>>>,
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
                .map_err(|error| format!("expression '{}' resulted in error: {error}", expression.text)),
        }
    }

    fn evaluate(&self, program: &CelProgram, expression: &Expression) -> Result<Value, String> {
        let mut variables = Map::new();
        for index in &expression.values {
            // One that fails is left out: the expression then fails where it reads it, and only if it does.
            if let Ok(value) = self.value(*index) {
                variables.insert(self.variables[*index].name.clone(), value.clone());
            }
        }
        let left = self.budget.get().checked_sub(1).ok_or(OUT_OF_BUDGET)?;
        self.budget.set(left);
        let variables = Value::Object(variables);
        let none = Value::Object(Map::new());
        let all = self.known.iter().copied().chain([("variables", &variables)]);
        let read: Vec<(&str, &Value)> = all
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
        let result = match self.authorizer.filter(|_| expression.asks()) {
            Some(authorizer) => program.eval_with(&read, authorizer),
            None => program.eval(&read),
        };
        result.map_err(|error| self.blame(expression, error))
    }

    fn value(&self, index: usize) -> &Result<Value, String> {
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
        let error = read.map_or(error, composited);
        let mut inside = expression.placed.iter().filter_map(failed);
        let inside = inside.find(|(_, why)| why.ends_with(&error));
        inside.map_or(error, composited)
    }
}
