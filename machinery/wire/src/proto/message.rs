//! Messages to JSON by the table.

use machinery_value::{Map, Number, Value};

use super::reader::{Reader, Wire};
use super::{text, wrong_wire};
use crate::types::{Declared, Kind, Type, TypeRef};
use crate::{MAX_VALUES, WireError, base64};

/// How deep messages may be nested. A schema that nests deeper by its properties is too deep as JSON already.
const MAX_DEPTH: usize = 80;

/// The state of one reading.
pub(super) struct Message {
    depth: usize,
    /// How many values may still be made.
    left: usize,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            depth: 0,
            left: MAX_VALUES,
        }
    }
}

impl Message {
    /// Reads a message into the JSON that stands for it.
    pub(super) fn read(&mut self, ty: TypeRef, bytes: &[u8]) -> Result<Value, WireError> {
        let mut out = Map::new();
        self.fields(ty.get(), bytes, &mut out)?;
        Ok(Value::Object(out))
    }

    /// Reads the fields of a message into an object, which may already have some: what comes twice is merged.
    pub(super) fn fields(
        &mut self,
        ty: &'static Type,
        bytes: &[u8],
        out: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        if self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        self.depth += 1;
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match ty.declared().iter().find(|field| field.number == number) {
                Some(field) => self.field(field, wire, &mut reader, out)?,
                None => reader.skip(wire)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Declared,
        wire: Wire,
        reader: &mut Reader<'_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        let mut ty = field.ty.get();
        if ty.kind == Kind::Pointer {
            ty = ty.elem().get();
        }
        match ty.kind {
            Kind::Struct if field.inline => self.fields(ty, reader.bytes(wire, field.name)?, out),
            Kind::Struct => {
                let bytes = reader.bytes(wire, field.name)?;
                self.count()?;
                match out.entry(field.name).or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(fields) => self.fields(ty, bytes, fields),
                    _ => Ok(()),
                }
            }
            Kind::Slice => {
                let mut items = Vec::new();
                self.items(ty.elem().get(), field.name, wire, reader, &mut items)?;
                if let Value::Array(all) = out.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
                    all.append(&mut items);
                }
                Ok(())
            }
            Kind::Map => {
                let (key, value) = self.entry(ty.elem().get(), reader.bytes(wire, field.name)?)?;
                if let Value::Object(entries) =
                    out.entry(field.name).or_insert_with(|| Value::Object(Map::new()))
                {
                    entries.insert(key, value);
                }
                Ok(())
            }
            _ => {
                let value = self.value(ty, field.name, wire, reader)?;
                out.insert(field.name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// The elements that one field of a list holds: one, or many when numbers are packed.
    fn items(
        &mut self,
        elem: &'static Type,
        name: &str,
        wire: Wire,
        reader: &mut Reader<'_>,
        out: &mut Vec<Value>,
    ) -> Result<(), WireError> {
        let packed = match elem.kind {
            Kind::Bool | Kind::Int32 | Kind::Int64 => Some(Wire::Varint),
            Kind::Float64 => Some(Wire::Fixed64),
            _ => None,
        };
        match packed {
            Some(each) if wire == Wire::Bytes => {
                let mut inner = Reader::new(reader.bytes(wire, name)?);
                while !inner.is_empty() {
                    out.push(self.value(elem, name, each, &mut inner)?);
                }
            }
            _ => out.push(self.value(elem, name, wire, reader)?),
        }
        Ok(())
    }

    /// A map's entry: a message of key and value, either of which may be missing.
    fn entry(&mut self, elem: &'static Type, bytes: &[u8]) -> Result<(String, Value), WireError> {
        self.count()?;
        let mut reader = Reader::new(bytes);
        let mut key = String::new();
        let mut value = None;
        while let Some((number, wire)) = reader.tag()? {
            match number {
                1 => key = text(reader.bytes(wire, "key")?),
                2 => value = Some(self.value(elem, "value", wire, &mut reader)?),
                _ => reader.skip(wire)?,
            }
        }
        let value = value.unwrap_or_else(|| match elem.kind {
            // Go makes these empty, not absent.
            Kind::Bytes => Value::String(String::new()),
            Kind::SliceMessage => Value::Array(Vec::new()),
            _ => Value::Null,
        });
        Ok((key, value))
    }

    /// One value that stands for itself: a scalar, or a message that is no list.
    pub(super) fn value(
        &mut self,
        ty: &'static Type,
        name: &str,
        wire: Wire,
        reader: &mut Reader<'_>,
    ) -> Result<Value, WireError> {
        self.count()?;
        Ok(match ty.kind {
            Kind::Bool => Value::Bool(reader.integer(wire, name)? != 0),
            // Go keeps the lower half, whatever the sender put into the upper.
            Kind::Int32 => Value::from(reader.integer(wire, name)? as u32 as i32),
            Kind::Int64 => Value::from(reader.integer(wire, name)? as i64),
            Kind::Float64 => {
                let value = f64::from_bits(reader.fixed64(wire, name)?);
                let unsupported = || WireError::Malformed(format!("json: unsupported value: {value}"));
                Value::Number(Number::from_f64(value).ok_or_else(unsupported)?)
            }
            Kind::String => Value::String(text(reader.bytes(wire, name)?)),
            Kind::Bytes => Value::String(base64::encode(reader.bytes(wire, name)?)),
            Kind::Struct => {
                let mut fields = Map::new();
                self.fields(ty, reader.bytes(wire, name)?, &mut fields)?;
                Value::Object(fields)
            }
            Kind::Pointer => return self.value(ty.elem().get(), name, wire, reader),
            // Protobuf has no list of lists and no list of maps.
            Kind::Slice | Kind::Map => return Err(wrong_wire(wire, name)),
            _ => self.special(ty, reader.bytes(wire, name)?)?,
        })
    }

    pub(super) fn count(&mut self) -> Result<(), WireError> {
        self.left = self.left.checked_sub(1).ok_or(WireError::TooLarge(MAX_VALUES))?;
        Ok(())
    }
}
