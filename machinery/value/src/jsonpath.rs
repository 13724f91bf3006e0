//! JSONPath as kubectl understands it, for printer columns, selectable fields and scale paths.
//!
//! A path is parsed once and evaluated often. Missing keys select nothing. Evaluation is bounded: a path has at
//! most [`MAX_STEPS`] steps, no step of it keeps more than [`MAX_RESULTS`] values, and all of them together, filters
//! included, look at no more than [`MAX_LOOKS`].

mod eval;
mod parser;
#[cfg(test)]
mod tests;

use serde_json::Value;
use thiserror::Error;

/// How long the text of a path may be.
pub const MAX_PATH: usize = 4096;

/// How many steps a path may have, those in filters included.
pub const MAX_STEPS: usize = 128;

/// How many values a path selects at most; further ones are left out.
pub const MAX_RESULTS: usize = 10_000;

/// How many values are looked at to find them; what would need more looks is not found.
pub const MAX_LOOKS: usize = 1_000_000;

/// Why a text is not a path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid JSONPath {path:?}: {reason}")]
pub struct JsonPathError {
    /// The text.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// One step from values to values.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The field of an object; several for `['a','b']`.
    Fields(Vec<String>),
    /// Every element of a list, every value of an object.
    All,
    /// The value and everything inside it, at any depth.
    Recursive,
    /// Elements of a list; several for `[0,2]`.
    Slices(Vec<Slice>),
    /// The elements of a list that pass.
    Filter(Filter),
}

/// A part of a list; a single index is a slice of one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    /// A single index must not fall back to the end of the list.
    single: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// What to compare with; without it, the left side must only exist.
    compare: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    /// A path from the element in question.
    Current(Vec<Step>),
    /// A path from the whole document.
    Root(Vec<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`; braces around it are optional.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parser::parse(text)
            .map(|steps| Self { steps })
            .map_err(|reason| JsonPathError {
                path: text.chars().take(256).collect(),
                reason,
            })
    }

    /// The values that the path selects, in the order of the document.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        eval::find(&self.steps, value)
    }

    /// The first value that the path selects.
    pub fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.find(value).into_iter().next()
    }

    /// The names of the fields, if the path is nothing but fields one below the other.
    ///
    /// Such a path names one place, so that a value can be put there.
    pub fn fields(&self) -> Option<Vec<&str>> {
        fn field(step: &Step) -> Option<&str> {
            match step {
                Step::Fields(names) => match names.as_slice() {
                    [name] => Some(name),
                    _ => None,
                },
                _ => None,
            }
        }
        self.steps.iter().map(field).collect()
    }
}
