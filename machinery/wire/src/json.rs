//! JSON values through a Go type: decoded and encoded again, as a server does with every body.
//!
//! One pass over the value builds what Go would write. A value of a wrong type does not end the pass, as in Go: the
//! first such error is kept and reported, unless a type with a parser of its own (a time, a quantity) fails later,
//! which does end it. Objects are walked in the order of their sorted keys, which is also the order that clients
//! send when they convert from YAML.

mod fault;
mod special;
mod strict;

use machinery_value::{Map, Number, Value};

pub(crate) use self::fault::describe;
use self::fault::{Fault, TypeFault};
pub use self::strict::strict_findings;
use crate::time::Layout;
use crate::types::{Field, Kind, Type, TypeRef};
use crate::{MAX_VALUES, WireError, base64};

/// How deep objects and lists may be nested within typed fields: as deep as a document can be when it is read.
const MAX_DEPTH: usize = 128;
/// How many unknown fields are reported, as on the server.
const MAX_UNKNOWN: usize = 100;

/// A value as Go would write it.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    /// The object, without what the type does not know, with what it always writes.
    pub value: Value,
    /// The paths of the fields that the type does not know, such as `spec.template.spec.containers[0].bogus`; the
    /// first hundred of them.
    pub unknown: Vec<String>,
}

/// Decodes a value into a type and encodes it again.
///
/// # Errors
/// In the words of Go's decoder when a value does not fit its type; or when the value is too deep or too large.
pub fn decode(ty: TypeRef, value: Value) -> Result<Normalized, WireError> {
    let mut decoder = Decoder {
        strict: true,
        left: MAX_VALUES,
        ..Decoder::default()
    };
    match decoder.run(ty, value) {
        Ok(value) => Ok(Normalized {
            value,
            unknown: decoder.unknown,
        }),
        Err(Fault::Limit(error)) => Err(error),
        Err(fault) => Err(WireError::Decode(fault.to_string())),
    }
}

/// The state of one decoding.
#[derive(Default)]
struct Decoder {
    /// Whether unknown fields are noted; within types that parse themselves they are not.
    strict: bool,
    unknown: Vec<String>,
    /// The path of the value at hand, for unknown fields.
    path: String,
    /// The struct whose field is at hand, and the names of all fields on the way to it, for errors.
    structure: Option<&'static str>,
    stack: Vec<&'static str>,
    /// The first value of a wrong type.
    saved: Option<TypeFault>,
    saved_text: Option<String>,
    depth: usize,
    /// How many values may still be made.
    left: usize,
}

impl Decoder {
    fn run(&mut self, ty: TypeRef, value: Value) -> Result<Value, Fault> {
        let value = self.value(ty, value)?;
        if let Some(fault) = self.saved.take() {
            return Err(Fault::Type(Box::new(fault)));
        }
        match self.saved_text.take() {
            Some(text) => Err(Fault::Text(text)),
            None => Ok(value),
        }
    }

    /// Containers are told from scalars here, in a frame of its own, because this is what recursion goes through.
    fn value(&mut self, ty: TypeRef, value: Value) -> Result<Value, Fault> {
        let mut ty = ty.get();
        self.count()?;
        while ty.kind == Kind::Pointer && !value.is_null() {
            ty = ty.elem().get();
        }
        match (ty.kind, value) {
            (Kind::Slice | Kind::SliceMessage, Value::Array(items)) => self.array(ty, items),
            (Kind::Map, Value::Object(entries)) => self.map(ty, entries),
            (Kind::Struct, Value::Object(fields)) => self.object(ty, fields),
            (Kind::SchemaOrArray | Kind::SchemaOrBool | Kind::SchemaOrStrings, value) => {
                self.choice(ty, value)
            }
            (_, value) => self.scalar(ty, value),
        }
    }

    fn scalar(&mut self, ty: &'static Type, value: Value) -> Result<Value, Fault> {
        match (ty.kind, value) {
            (_, Value::Null) => self.zero(ty),
            (Kind::Bool, value @ Value::Bool(_)) | (Kind::String, value @ Value::String(_)) => Ok(value),
            (Kind::Int32, Value::Number(number)) => {
                Ok(self.integer(number, i32::MIN.into(), i32::MAX.into(), ty))
            }
            (Kind::Int64, Value::Number(number)) => Ok(self.integer(number, i64::MIN, i64::MAX, ty)),
            (Kind::Float64, Value::Number(number)) => Ok(Value::Number(float(&number))),
            (Kind::Bytes, Value::String(text)) => Ok(self.bytes(&text)),
            (Kind::Bytes, Value::Array(items)) => Ok(self.byte_array(items)),
            (Kind::Time, value) => self.time(Layout::Seconds, &value),
            (Kind::MicroTime, value) => self.time(Layout::Micros, &value),
            (Kind::Quantity, value) => special::quantity(&value),
            (Kind::IntOrString, value) => self.int_or_string(value),
            (Kind::Raw, value) => Ok(value),
            (_, value) => Ok(self.mismatch(describe(&value).to_owned(), ty.name)),
        }
    }

    fn object(&mut self, ty: &'static Type, fields: Map<String, Value>) -> Result<Value, Fault> {
        self.deeper()?;
        let known = ty.fields();
        let mut out = Map::new();
        let outer = (self.structure, self.stack.len(), self.path.len());
        for (key, value) in fields {
            let Ok(at) = known.binary_search_by(|field| field.name.cmp(&key)) else {
                self.note_unknown(&key);
                continue;
            };
            let field = &known[at];
            if value.is_null() {
                // Set to zero, as if it were not there: what follows writes it if it must be.
                continue;
            }
            self.enter(ty, field);
            let value = self.value(field.ty, value)?;
            self.structure = outer.0;
            self.stack.truncate(outer.1);
            self.path.truncate(outer.2);
            if !omitted(field, &value) {
                out.insert(key, value);
            }
        }
        for field in known.iter().filter(|field| field.writes_zero) {
            if !out.contains_key(field.name) {
                let zero = self.zero(field.ty.get())?;
                out.insert(field.name.to_owned(), zero);
            }
        }
        self.depth -= 1;
        Ok(Value::Object(out))
    }

    fn array(&mut self, ty: &'static Type, items: Vec<Value>) -> Result<Value, Fault> {
        self.deeper()?;
        let start = self.path.len();
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            if self.strict {
                self.path.push_str(&format!("[{index}]"));
            }
            out.push(self.value(ty.elem(), item)?);
            self.path.truncate(start);
        }
        self.depth -= 1;
        Ok(Value::Array(out))
    }

    fn map(&mut self, ty: &'static Type, entries: Map<String, Value>) -> Result<Value, Fault> {
        self.deeper()?;
        let start = self.path.len();
        let mut out = Map::new();
        for (key, value) in entries {
            self.push_path(&key);
            let value = self.value(ty.elem(), value)?;
            self.path.truncate(start);
            out.insert(key, value);
        }
        self.depth -= 1;
        Ok(Value::Object(out))
    }

    fn integer(&mut self, number: Number, min: i64, max: i64, ty: &'static Type) -> Value {
        match number.as_i64() {
            Some(value) if (min..=max).contains(&value) => Value::Number(number),
            _ => self.mismatch(format!("number {}", fault::literal(&number)), ty.name),
        }
    }

    fn bytes(&mut self, text: &str) -> Value {
        match base64::canonical(text) {
            Ok(text) => Value::String(text),
            Err(text) => {
                if self.saved.is_none() && self.saved_text.is_none() {
                    self.saved_text = Some(text);
                }
                Value::Null
            }
        }
    }

    /// Go takes a list of small numbers for bytes as well.
    fn byte_array(&mut self, items: Vec<Value>) -> Value {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Null => bytes.push(0),
                Value::Number(number) => match number.as_u64().and_then(|n| u8::try_from(n).ok()) {
                    Some(byte) => bytes.push(byte),
                    None => drop(self.mismatch(format!("number {}", fault::literal(&number)), "uint8")),
                },
                other => drop(self.mismatch(describe(&other).to_owned(), "uint8")),
            }
        }
        Value::String(base64::encode(&bytes))
    }

    /// What Go writes for a value that was never set.
    fn zero(&mut self, ty: &'static Type) -> Result<Value, Fault> {
        self.count()?;
        Ok(match ty.kind {
            Kind::Bool | Kind::SchemaOrBool => Value::Bool(false),
            Kind::String => Value::String(String::new()),
            Kind::Int32 | Kind::Int64 | Kind::Float64 | Kind::IntOrString => Value::from(0),
            Kind::Quantity => Value::from("0"),
            Kind::Struct => {
                let mut out = Map::new();
                for field in ty.fields().iter().filter(|field| field.writes_zero) {
                    out.insert(field.name.to_owned(), self.zero(field.ty.get())?);
                }
                Value::Object(out)
            }
            Kind::Bytes
            | Kind::Pointer
            | Kind::Slice
            | Kind::SliceMessage
            | Kind::Map
            | Kind::Time
            | Kind::MicroTime
            | Kind::Raw
            | Kind::SchemaOrArray
            | Kind::SchemaOrStrings => Value::Null,
        })
    }

    fn enter(&mut self, ty: &'static Type, field: &'static Field) {
        self.structure = Some(ty.short_name());
        if !field.via.is_empty() {
            self.stack.push(&field.via);
        }
        self.stack.push(field.name);
        self.push_path(field.name);
    }

    fn push_path(&mut self, key: &str) {
        if self.strict {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(key);
        }
    }

    fn note_unknown(&mut self, key: &str) {
        if self.strict && self.unknown.len() < MAX_UNKNOWN {
            let start = self.path.len();
            self.push_path(key);
            self.unknown.push(self.path.clone());
            self.path.truncate(start);
        }
    }

    /// Keeps the first value of a wrong type, and goes on with none.
    fn mismatch(&mut self, value: String, target: &str) -> Value {
        if self.saved.is_none() && self.saved_text.is_none() {
            self.saved = Some(self.in_context(TypeFault::new(value, target)));
        }
        Value::Null
    }

    fn in_context(&self, fault: TypeFault) -> TypeFault {
        match self.structure {
            Some(structure) => fault.within(structure, &self.stack),
            None => fault,
        }
    }

    /// Goes one container deeper; the caller comes back up by itself.
    fn deeper(&mut self) -> Result<(), Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Limit(WireError::TooDeep));
        }
        self.depth += 1;
        Ok(())
    }

    fn count(&mut self) -> Result<(), Fault> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(Fault::Limit(WireError::TooLarge(MAX_VALUES)))?;
        Ok(())
    }
}

/// Whether Go leaves the field out although it was there.
fn omitted(field: &Field, value: &Value) -> bool {
    if !field.omit_empty {
        // Only a zero time reaches this with null and without being written.
        return value.is_null() && !field.writes_zero;
    }
    if field.ty.get().kind == Kind::Pointer {
        return false;
    }
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

/// A number as Go writes a `float64`: whole numbers without a fraction.
fn float(number: &Number) -> Number {
    let Some(value) = number.as_f64() else {
        return number.clone();
    };
    let negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && value.abs() < 9e18 && !negative_zero {
        return Number::from(value as i64);
    }
    Number::from_f64(value).unwrap_or_else(|| number.clone())
}
