//! Protobuf bodies, read by the same table of types.
//!
//! A body is an envelope with the kind and the message. The message is read into the JSON it stands for, which then
//! goes through [`json::decode`], so that both ways in meet the same rules. Numbers of fields that a type does not
//! have are skipped, as in Go; a field of the wrong wire type, or one that ends too early, is an error.

mod message;
mod reader;
mod special;

use machinery_value::Value;

use self::message::Message;
use self::reader::{Reader, Wire};
use crate::types::{TypeRef, lookup};
use crate::{WireError, header, json};

/// What a protobuf body starts with.
const PREFIX: &[u8] = b"k8s\0";
/// The largest body that is looked at: the limit a server has for any request.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// An object that came as protobuf.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtoObject {
    /// The `apiVersion` of the envelope.
    pub api_version: String,
    /// The `kind` of the envelope.
    pub kind: String,
    /// The object as JSON, with `apiVersion` and `kind`, already in the form that [`json::decode`] gives.
    pub value: Value,
}

/// The envelope of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What the sender says it is; may be empty, and then the path of the request decides.
    pub api_version: String,
    /// What the sender says it is; may be empty, and then the path of the request decides.
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

/// Reads a body whose envelope names a kind of the table.
///
/// # Errors
/// When the bytes are no such message, the kind is not in the table, or a value does not fit its type.
pub fn decode_proto(body: &[u8]) -> Result<ProtoObject, WireError> {
    let Envelope {
        api_version,
        kind,
        raw,
    } = decode_envelope(body)?;
    let (group, version) = header::split(&api_version)?;
    let Some(ty) = lookup(group, version, &kind) else {
        return Err(WireError::NotRegistered { api_version, kind });
    };
    let mut value = decode_message(ty, raw)?;
    if let Value::Object(fields) = &mut value {
        for (name, text) in [("apiVersion", &api_version), ("kind", &kind)] {
            if !text.is_empty() {
                fields.insert(name.to_owned(), Value::String(text.clone()));
            }
        }
    }
    Ok(ProtoObject {
        api_version,
        kind,
        value,
    })
}

/// Reads the envelope alone.
///
/// # Errors
/// When the bytes are no envelope, or more than [`MAX_BODY`].
pub fn decode_envelope(body: &[u8]) -> Result<Envelope<'_>, WireError> {
    let fail = |text: &str| Err(WireError::Malformed(text.to_owned()));
    if body.is_empty() {
        return fail("empty data");
    }
    let Some(data) = body.strip_prefix(PREFIX) else {
        return fail(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        );
    };
    if data.is_empty() {
        return fail("empty body");
    }
    if body.len() > MAX_BODY {
        return fail("the protobuf message is too large");
    }
    let mut envelope = Envelope {
        api_version: String::new(),
        kind: String::new(),
        raw: &[],
    };
    let mut reader = Reader::new(data);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => {
                let mut meta = Reader::new(reader.bytes(wire, "TypeMeta")?);
                while let Some((number, wire)) = meta.tag()? {
                    match number {
                        1 => envelope.api_version = text(meta.bytes(wire, "APIVersion")?),
                        2 => envelope.kind = text(meta.bytes(wire, "Kind")?),
                        _ => meta.skip(wire)?,
                    }
                }
            }
            2 => envelope.raw = reader.bytes(wire, "Raw")?,
            _ => reader.skip(wire)?,
        }
    }
    Ok(envelope)
}

/// Reads a message of a type, without envelope.
///
/// # Errors
/// When the bytes are no such message, or a value does not fit its type.
pub fn decode_message(ty: TypeRef, raw: &[u8]) -> Result<Value, WireError> {
    let value = Message::default().read(ty, raw)?;
    Ok(json::decode(ty, value)?.value)
}

/// Text, each byte that is no UTF-8 replaced as Go's JSON encoder does it.
fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

/// The error for a field whose wire type is not the one its Go type has.
fn wrong_wire(wire: Wire, field: &str) -> WireError {
    WireError::Malformed(format!(
        "proto: wrong wireType = {} for field {field}",
        wire.number()
    ))
}
