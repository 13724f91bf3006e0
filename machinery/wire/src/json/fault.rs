//! What can be wrong with a value, in the words of Go's decoder.

use std::fmt;

use machinery_value::{Number, Value};

use crate::WireError;

/// Why decoding stopped, or would have.
#[derive(Debug)]
pub(super) enum Fault {
    /// A value of a wrong type.
    Type(Box<TypeFault>),
    /// The error of a type that parses itself.
    Text(String),
    /// A limit of ours.
    Limit(WireError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(fault) => fault.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

/// A value of a wrong type, and where.
#[derive(Debug)]
pub(super) struct TypeFault {
    value: String,
    target: String,
    structure: &'static str,
    field: String,
}

impl TypeFault {
    pub(super) fn new(value: String, target: &str) -> Self {
        Self {
            value,
            target: target.to_owned(),
            structure: "",
            field: String::new(),
        }
    }

    /// Puts the fault into the struct whose field was being decoded. A fault that comes from a decoding within
    /// that field has a path of its own, which is kept at the end.
    pub(super) fn within(mut self, structure: &'static str, stack: &[&str]) -> Self {
        let mut field = stack.join(".");
        if !self.field.is_empty() {
            field.push('.');
            field.push_str(&self.field);
        }
        self.structure = structure;
        self.field = field;
        self
    }
}

impl fmt::Display for TypeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            value,
            target,
            structure,
            field,
        } = self;
        write!(f, "json: cannot unmarshal {value} into Go ")?;
        if structure.is_empty() && field.is_empty() {
            write!(f, "value of type {target}")
        } else {
            write!(f, "struct field {structure}.{field} of type {target}")
        }
    }
}

/// The sort of a JSON value as errors name it.
pub(crate) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number as it stood in the document, as far as that is still known: a float keeps its fraction, and a whole
/// number that fits no integer is written out.
pub(super) fn literal(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() >= 9e18 => {
            format!("{value:.0}")
        }
        _ => number.to_string(),
    }
}
