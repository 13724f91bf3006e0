//! Label selectors: the query-string grammar and the `LabelSelector` object, with the server's error texts.
//!
//! A selector is parsed once and matched often; its requirements are sorted by key, so that two ways of writing
//! the same selector print alike. Field selectors are in [`fields`].

pub mod fields;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::names;

/// How long the text of a selector may be.
pub const MAX_SELECTOR: usize = 64 * 1024;

/// Why a selector is refused; the text is for the client.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SelectorError(String);

impl SelectorError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// What a requirement asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// It has the value (`=`).
    Equals,
    /// It has the value (`==`).
    DoubleEquals,
    /// It has one of the values.
    In,
    /// It does not have the value, or is not there (`!=`).
    NotEquals,
    /// It has none of the values, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
    /// It is an integer greater than the value.
    GreaterThan,
    /// It is an integer less than the value.
    LessThan,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// A requirement, if its key and its values are good and as many as the operator wants.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        let mut invalid = |field: &str, value: String, detail: &str| {
            errors.push(format!("{field}: Invalid value: {value}: {detail}"));
        };
        let key_errors = names::qualified_name(key);
        if !key_errors.is_empty() {
            invalid("key", format!("{key:?}"), &key_errors.join("; "));
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                invalid(
                    "values",
                    go_strings(&values),
                    "for 'in', 'notin' operators, values set can't be empty",
                );
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                invalid(
                    "values",
                    go_strings(&values),
                    "exact-match compatibility requires one single value",
                );
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                invalid(
                    "values",
                    go_strings(&values),
                    "values set must be empty for exists and does not exist",
                );
            }
            Operator::GreaterThan | Operator::LessThan => {
                if values.len() != 1 {
                    let detail = "for 'Gt', 'Lt' operators, exactly one value is required";
                    invalid("values", go_strings(&values), detail);
                }
                for (index, value) in values
                    .iter()
                    .enumerate()
                    .filter(|(_, value)| value.parse::<i64>().is_err())
                {
                    let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                    invalid(&format!("values[{index}]"), format!("{value:?}"), detail);
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let value_errors = names::label_value(value);
            if !value_errors.is_empty() {
                invalid(
                    &format!("values[{index}][{key}]"),
                    format!("{value:?}"),
                    &value_errors.join("; "),
                );
            }
        }
        match errors.as_slice() {
            [] => Ok(Self {
                key: key.to_owned(),
                operator,
                values,
            }),
            [only] => Err(SelectorError::new(only)),
            several => Err(SelectorError::new(format!("[{}]", several.join(", ")))),
        }
    }

    /// The label in question.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is asked of it.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// With which values.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value, or without one, fulfils the requirement.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let has = |label: &str| self.values.iter().any(|value| value == label);
        let compared = |label: &str| {
            Some((
                label.parse::<i64>().ok()?,
                self.values.first()?.parse::<i64>().ok()?,
            ))
        };
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(has),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label
                .and_then(compared)
                .is_some_and(|(label, value)| label > value),
            Operator::LessThan => label
                .and_then(compared)
                .is_some_and(|(label, value)| label < value),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// A label selector: all its requirements must be fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector {
    /// None if nothing matches at all.
    requirements: Option<Vec<Requirement>>,
}

impl LabelSelector {
    /// The selector that matches everything.
    pub fn everything() -> Self {
        Self {
            requirements: Some(Vec::new()),
        }
    }

    /// The selector that matches nothing.
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// A selector of these requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            requirements: Some(requirements),
        }
    }

    /// Parses what a query string says: `a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j,k>1,l<2`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR {
            return Err(SelectorError::new(format!(
                "a selector may have {MAX_SELECTOR} bytes, got {}",
                text.len()
            )));
        }
        parser::parse(text).map(Self::new)
    }

    /// The selector that a `LabelSelector` object means: nothing if there is none, everything if it is empty.
    pub fn from_object(object: Option<&Value>) -> Result<Self, SelectorError> {
        let map = match object {
            None | Some(Value::Null) => return Ok(Self::nothing()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(SelectorError::new("a label selector must be an object")),
        };
        let mut requirements = Vec::new();
        for (key, value) in entries(map, "matchLabels")? {
            let Value::String(value) = value else {
                return Err(SelectorError::new(format!("matchLabels[{key}] must be a string")));
            };
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.clone()])?);
        }
        for expression in items(map, "matchExpressions")? {
            requirements.push(from_expression(expression)?);
        }
        Ok(Self::new(requirements))
    }

    /// Whether this matches everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements; none if nothing matches at all.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        self.requirements.as_deref()
    }

    /// Whether labels match; `label` gives the value of a label by its key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match &self.requirements {
            None => false,
            Some(requirements) => requirements
                .iter()
                .all(|requirement| requirement.matches(label(&requirement.key))),
        }
    }

    /// Whether `metadata.labels` match, which may be missing.
    pub fn matches_labels(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().flatten().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

fn from_expression(expression: &Value) -> Result<Requirement, SelectorError> {
    let Value::Object(expression) = expression else {
        return Err(SelectorError::new("matchExpressions must be objects"));
    };
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let operator = match text("operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            return Err(SelectorError::new(format!(
                "{other:?} is not a valid label selector operator"
            )));
        }
    };
    let values = items(expression, "values")?.iter().map(|value| match value {
        Value::String(value) => Ok(value.clone()),
        _ => Err(SelectorError::new("values must be strings")),
    });
    Requirement::new(text("key"), operator, values.collect::<Result<_, _>>()?)
}

fn entries<'v>(
    map: &'v Map<String, Value>,
    name: &str,
) -> Result<impl Iterator<Item = (&'v String, &'v Value)>, SelectorError> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(entries)) => Ok(Some(entries).into_iter().flatten()),
        Some(_) => Err(SelectorError::new(format!("{name} must be an object"))),
    }
}

fn items<'v>(map: &'v Map<String, Value>, name: &str) -> Result<&'v [Value], SelectorError> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(SelectorError::new(format!("{name} must be a list"))),
    }
}

/// A list of strings as Go's `%#v` shows it.
fn go_strings(values: &[String]) -> String {
    if values.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}
