//! Messages that stand for a single JSON value.

use machinery_value::{Map, Value};

use super::message::Message;
use super::reader::Reader;
use super::text;
use crate::WireError;
use crate::time::{FIRST_SECONDS, Instant, LAST_SECONDS, Layout, ZERO_SECONDS};
use crate::types::{Kind, Type};

impl Message {
    /// Reads the message of a type with a JSON form of its own.
    pub(super) fn special(&mut self, ty: &'static Type, bytes: &[u8]) -> Result<Value, WireError> {
        match ty.kind {
            Kind::Time => time(bytes, Layout::Seconds),
            Kind::MicroTime => time(bytes, Layout::Micros),
            Kind::Quantity => quantity(bytes),
            Kind::Raw => raw(bytes),
            Kind::SliceMessage => {
                let mut items = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((number, wire)) = reader.tag()? {
                    if number == 1 {
                        items.push(self.value(ty.elem().get(), "items", wire, &mut reader)?);
                    } else {
                        reader.skip(wire)?;
                    }
                }
                Ok(Value::Array(items))
            }
            _ => {
                // The rest are structs to protobuf; which field counts is for the type to say.
                let mut fields = Map::new();
                self.fields(ty, bytes, &mut fields)?;
                choose(ty.kind, fields)
            }
        }
    }
}

fn choose(kind: Kind, mut fields: Map<String, Value>) -> Result<Value, WireError> {
    let mut take = |name: &str| fields.remove(name);
    Ok(match kind {
        Kind::IntOrString => match take("Type").and_then(|v| v.as_i64()).unwrap_or(0) {
            0 => take("IntVal").unwrap_or_else(|| Value::from(0)),
            1 => take("StrVal").unwrap_or_else(|| Value::from("")),
            _ => return Err(WireError::Malformed("impossible IntOrString.Type".to_owned())),
        },
        Kind::SchemaOrBool => take("Schema")
            .or_else(|| take("Allows"))
            .unwrap_or(Value::Bool(false)),
        // An empty list stands for neither, where null would take away the pointer to it.
        Kind::SchemaOrArray => take("JSONSchemas")
            .or_else(|| take("Schema"))
            .unwrap_or(Value::Array(Vec::new())),
        Kind::SchemaOrStrings => take("Property")
            .or_else(|| take("Schema"))
            .unwrap_or(Value::Array(Vec::new())),
        _ => Value::Null,
    })
}

/// A timestamp. An empty one is Go's zero time, which as text stays apart from no time at all.
fn time(bytes: &[u8], layout: Layout) -> Result<Value, WireError> {
    let mut instant = Instant {
        seconds: if bytes.is_empty() { ZERO_SECONDS } else { 0 },
        nanos: 0,
    };
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => instant.seconds = reader.integer(wire, "Seconds")? as i64,
            2 => {
                let nanos = reader.integer(wire, "Nanos")? as u32 as i32;
                instant.nanos = u32::try_from(nanos)
                    .ok()
                    .filter(|n| *n < 1_000_000_000)
                    .ok_or_else(out_of_range)?;
            }
            _ => reader.skip(wire)?,
        }
    }
    if !(FIRST_SECONDS..=LAST_SECONDS).contains(&instant.seconds) {
        return Err(out_of_range());
    }
    Ok(Value::String(instant.format(layout)))
}

fn out_of_range() -> WireError {
    WireError::Malformed("proto: timestamp out of range".to_owned())
}

fn quantity(bytes: &[u8]) -> Result<Value, WireError> {
    let mut value = Value::from("0");
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => value = Value::String(text(reader.bytes(wire, "String_")?)),
            _ => reader.skip(wire)?,
        }
    }
    Ok(value)
}

/// JSON carried as bytes.
fn raw(bytes: &[u8]) -> Result<Value, WireError> {
    let mut json: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => json = reader.bytes(wire, "Raw")?,
            _ => reader.skip(wire)?,
        }
    }
    if json.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(json).map_err(|error| WireError::Malformed(format!("raw JSON: {error}")))
}
