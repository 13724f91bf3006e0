//! Whether a value fits its shape: the precondition of every other walk.
//!
//! Only what ownership depends on is checked: declared fields, forms, keys of lists.

use std::fmt;

use machinery_value::Value;

use crate::extract::{element_of, has_name};
use crate::go;
use crate::path::PathElement;
use crate::shape::{Elements, Form, Scalar, Shape};

/// No more problems than these are reported.
const MAX_PROBLEMS: usize = 100;

/// What does not fit, in the words of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit(Vec<(String, String)>);

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, (path, problem): &(String, String)| {
            let colon = if path.is_empty() { "" } else { ": " };
            write!(f, "{path}{colon}{problem}")
        };
        if let [only] = self.0.as_slice() {
            return one(f, only);
        }
        f.write_str("errors:")?;
        for problem in &self.0 {
            f.write_str("\n  ")?;
            one(f, problem)?;
        }
        Ok(())
    }
}

/// Checks a value. Stored objects may hold the same key twice, applied ones may not.
pub fn check(shape: Shape<'_>, value: &Value, duplicates: bool) -> Result<(), Misfit> {
    let mut walk = Walk {
        duplicates,
        problems: Vec::new(),
        path: Vec::new(),
    };
    walk.value(shape, value);
    if walk.problems.is_empty() {
        Ok(())
    } else {
        Err(Misfit(walk.problems))
    }
}

/// A step of the path, made into text only when there is something to report.
enum Step<'s, 'v> {
    Field(&'v str),
    Element(Shape<'s>, usize, &'v Value),
}

struct Walk<'s, 'v> {
    duplicates: bool,
    problems: Vec<(String, String)>,
    path: Vec<Step<'s, 'v>>,
}

impl<'s, 'v> Walk<'s, 'v> {
    fn report(&mut self, problem: String) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let path = self
            .path
            .iter()
            .map(|step| match step {
                Step::Field(name) => format!(".{name}"),
                Step::Element(list, index, item) => element_of(*list, item)
                    .unwrap_or(PathElement::Index(*index as i64))
                    .to_string(),
            })
            .collect();
        self.problems.push((path, problem));
    }

    fn value(&mut self, shape: Shape<'s>, value: &'v Value) {
        if value.is_null() {
            return;
        }
        match (shape.form(Some(value)), value) {
            (Form::Object, Value::Object(map)) => {
                for (name, value) in map {
                    self.path.push(Step::Field(name));
                    let declared = shape.declared(name).or_else(|| shape.undeclared());
                    if let Some(shape) = declared {
                        self.value(shape, value);
                    } else {
                        self.report("field not declared in schema".to_owned());
                    }
                    self.path.pop();
                    if declared.is_none() {
                        return;
                    }
                }
            }
            (Form::List, Value::Array(items)) => self.list(shape, items),
            (Form::Object, _) => self.report(format!("expected map, got &{{{}}}", go::plain(value))),
            (Form::List, _) => self.report(format!("expected list, got &{{{}}}", go::plain(value))),
            (Form::Scalar, _) => self.scalar(shape.scalar(), value),
        }
    }

    fn list(&mut self, shape: Shape<'s>, items: &'v [Value]) {
        let atomic = matches!(shape.elements(), Elements::Atomic);
        let mut seen = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if !atomic && let Err(problem) = has_name(shape, item) {
                return self.report(format!("element {index}: {problem}"));
            }
            if !self.duplicates
                && !atomic
                && let Ok(element) = element_of(shape, item)
            {
                match seen.binary_search(&element) {
                    Ok(_) => self.report(format!("duplicate entries for key {element}")),
                    Err(at) => seen.insert(at, element),
                }
            }
            self.path.push(Step::Element(shape, index, item));
            self.value(shape.item(), item);
            self.path.pop();
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Number, Value::Number(_))
            | (Scalar::Text, Value::String(_))
            | (Scalar::Flag, Value::Bool(_))
            | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => {}
            (Scalar::Number, _) => self.report(format!(
                "expected numeric (int or float), got {}",
                go::type_name(value)
            )),
            (Scalar::Text, _) => self.report(format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go::syntax(value)
            )),
            (Scalar::Flag, _) => self.report(format!("expected boolean, got &{{{}}}", go::plain(value))),
            (Scalar::Any, _) => self.report(format!("expected any scalar, got &{{{}}}", go::plain(value))),
        }
    }
}
