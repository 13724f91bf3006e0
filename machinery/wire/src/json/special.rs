//! Types that parse and print themselves: times, quantities, numbers-or-names, raw JSON, and the choices within a
//! schema.
//!
//! Their errors end the decoding. Those that decode a schema do it as a document of its own, in which unknown
//! fields go unreported.

use machinery_value::Value;

use super::{Decoder, Fault, TypeFault, describe, fault};
use crate::time::{self, Layout};
use crate::types::{Kind, Type, TypeRef};

impl Decoder {
    /// Decodes a value that is not null, except into a [`Kind::SchemaOrBool`].
    pub(super) fn special(&mut self, ty: &'static Type, value: Value) -> Result<Value, Fault> {
        match ty.kind {
            Kind::Time => self.time(Layout::Seconds, &value),
            Kind::MicroTime => self.time(Layout::Micros, &value),
            Kind::Quantity => quantity(&value),
            Kind::IntOrString => self.int_or_string(value),
            Kind::SchemaOrArray | Kind::SchemaOrStrings => self.schema_or_list(ty, value),
            Kind::SchemaOrBool => match value {
                Value::Bool(_) => Ok(value),
                Value::Object(_) => self.apart(field(ty, "Schema"), value),
                _ => Err(Fault::Text("boolean or JSON schema expected".to_owned())),
            },
            _ => Ok(value),
        }
    }

    fn time(&self, layout: Layout, value: &Value) -> Result<Value, Fault> {
        let Value::String(text) = value else {
            return Err(self.type_fault(describe(value).to_owned(), "string"));
        };
        let instant = time::parse(layout, text).map_err(Fault::Text)?;
        Ok(if instant.is_zero() { Value::Null } else { Value::String(instant.format(layout)) })
    }

    fn int_or_string(&self, value: Value) -> Result<Value, Fault> {
        let what = match &value {
            Value::String(_) => return Ok(value),
            Value::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => return Ok(value),
            Value::Number(number) => format!("number {}", fault::literal(number)),
            other => describe(other).to_owned(),
        };
        Err(self.type_fault(what, "int32"))
    }

    /// A schema, or a list of schemas or names. An empty list and anything else leave neither.
    fn schema_or_list(&mut self, ty: &'static Type, value: Value) -> Result<Value, Fault> {
        let list = if ty.kind == Kind::SchemaOrArray { "JSONSchemas" } else { "Property" };
        match value {
            Value::Object(_) => self.apart(field(ty, "Schema"), value),
            Value::Array(items) if !items.is_empty() => self.apart(field(ty, list), Value::Array(items)),
            _ => Ok(Value::Null),
        }
    }

    /// Decodes a document of its own within this one.
    fn apart(&mut self, ty: Option<TypeRef>, value: Value) -> Result<Value, Fault> {
        let Some(ty) = ty else { return Ok(value) };
        let mut inner = Self { left: self.left, depth: self.depth, ..Self::default() };
        let outcome = inner.run(ty, value);
        self.left = inner.left;
        outcome.map_err(|fault| match fault {
            Fault::Type(fault) => Fault::Type(self.in_context(fault)),
            other => other,
        })
    }

    fn type_fault(&self, value: String, target: &str) -> Fault {
        Fault::Type(self.in_context(TypeFault::new(value, target)))
    }
}

fn field(ty: &'static Type, name: &str) -> Option<TypeRef> {
    ty.declared().iter().find(|field| field.name == name).map(|field| field.ty)
}

fn quantity(value: &Value) -> Result<Value, Fault> {
    Ok(value.clone())
}
