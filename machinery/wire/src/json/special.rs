//! Types that parse and print themselves: times, quantities, numbers-or-names, raw JSON, and the choices within a
//! schema.
//!
//! Their errors end the decoding. Those that decode a schema do it as a document of its own, in which unknown
//! fields go unreported.

use machinery_value::Value;
use machinery_value::quantity::Quantity;

use super::{Decoder, Fault, TypeFault, describe, fault};
use crate::time::{self, Layout};
use crate::types::{Kind, Type, TypeRef};

impl Decoder {
    /// A schema, or what may stand in its place: a boolean, or a list of schemas or names. An empty list and
    /// anything else leave neither, except where there would be a boolean, which must be one.
    pub(super) fn choice(&mut self, ty: &'static Type, value: Value) -> Result<Value, Fault> {
        let list = if ty.kind == Kind::SchemaOrArray {
            "JSONSchemas"
        } else {
            "Property"
        };
        match value {
            Value::Object(_) => self.apart(field(ty, "Schema"), value),
            Value::Bool(_) if ty.kind == Kind::SchemaOrBool => Ok(value),
            _ if ty.kind == Kind::SchemaOrBool => {
                Err(Fault::Text("boolean or JSON schema expected".to_owned()))
            }
            Value::Array(items) if !items.is_empty() => self.apart(field(ty, list), Value::Array(items)),
            _ => Ok(Value::Null),
        }
    }

    pub(super) fn time(&self, layout: Layout, value: &Value) -> Result<Value, Fault> {
        let Value::String(text) = value else {
            return Err(self.type_fault(describe(value).to_owned(), "string"));
        };
        let instant = time::parse(layout, text).map_err(Fault::Text)?;
        Ok(if instant.is_zero() {
            Value::Null
        } else {
            Value::String(instant.format(layout))
        })
    }

    pub(super) fn int_or_string(&self, value: Value) -> Result<Value, Fault> {
        let what = match &value {
            Value::String(_) => return Ok(value),
            Value::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
                return Ok(value);
            }
            Value::Number(number) => format!("number {}", fault::literal(number)),
            other => describe(other).to_owned(),
        };
        Err(self.type_fault(what, "int32"))
    }

    /// Decodes a document of its own within this one.
    fn apart(&mut self, ty: Option<TypeRef>, value: Value) -> Result<Value, Fault> {
        let Some(ty) = ty else { return Ok(value) };
        self.deeper()?;
        let mut inner = Self {
            left: self.left,
            depth: self.depth,
            ..Self::default()
        };
        let outcome = inner.run(ty, value);
        self.left = inner.left;
        self.depth -= 1;
        outcome.map_err(|fault| match fault {
            Fault::Type(fault) => Fault::Type(Box::new(self.in_context(*fault))),
            other => other,
        })
    }

    fn type_fault(&self, value: String, target: &str) -> Fault {
        Fault::Type(Box::new(self.in_context(TypeFault::new(value, target))))
    }
}

fn field(ty: &'static Type, name: &str) -> Option<TypeRef> {
    ty.declared()
        .iter()
        .find(|field| field.name == name)
        .map(|field| field.ty)
}

/// A quantity, also where it stands without quotes. Whatever is no text is parsed as the JSON it is, and so fails.
pub(super) fn quantity(value: &Value) -> Result<Value, Fault> {
    let parsed = match value {
        Value::String(text) => Quantity::parse(text.trim()),
        Value::Number(number) => Quantity::parse(&fault::literal(number)),
        _ => Quantity::parse(describe(value)),
    };
    parsed
        .map(|quantity| Value::String(quantity.to_string()))
        .map_err(|error| Fault::Text(error.to_string()))
}
