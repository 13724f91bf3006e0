//! Between JSON and the values of the engine.
//!
//! With a schema, an expression sees what the schema declares: formats become times, durations and bytes, numbers
//! become doubles, names of fields are escaped where CEL reserves them, undeclared fields are invisible. Without
//! one, it sees everything as it is.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::Value as CelValue;
use kube_cel::cel::functions;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use serde_json::Value;

use crate::schema::{Additional, JsonType, SchemaRef};

/// Words that cannot be names in an expression.
pub const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The name by which an expression reaches a field; nothing if it cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
    {
        return None;
    }
    if !name.contains("__") && !name.contains(['.', '-', '/']) {
        return Some(name.to_owned());
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}

fn text(text: &str) -> CelValue {
    CelValue::String(Arc::new(text.to_owned()))
}

fn map(entries: HashMap<Key, CelValue>) -> CelValue {
    CelValue::Map(Map {
        map: Arc::new(entries),
    })
}

fn key(name: String) -> Key {
    Key::String(Arc::new(name))
}

/// A value without a schema.
pub(crate) fn plain(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(int) => CelValue::Int(int),
            None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(value) => text(value),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(fields) => map(fields
            .iter()
            .map(|(name, value)| (key(name.clone()), plain(value)))
            .collect()),
    }
}

/// A value as its schema declares it. At the root of a resource, version, kind and name are visible, too.
pub(crate) fn typed(schema: SchemaRef<'_>, value: &Value, root: bool) -> CelValue {
    match value {
        Value::String(value) => typed_text(schema, value),
        Value::Number(number) if schema.json_type() == Some(JsonType::Number) => {
            CelValue::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        Value::Number(number) => match number.as_f64() {
            // A whole double is an integer where the schema wants one.
            Some(float) if number.as_i64().is_none() && schema.json_type() == Some(JsonType::Integer) => {
                CelValue::Int(float as i64)
            }
            _ => plain(value),
        },
        Value::Array(items) => match schema.items() {
            Some(schema) => {
                let embedded = schema.embedded_resource();
                CelValue::List(Arc::new(
                    items.iter().map(|item| typed(schema, item, embedded)).collect(),
                ))
            }
            None => plain(value),
        },
        Value::Object(fields) => {
            let mut entries = HashMap::with_capacity(fields.len());
            if let Additional::Schema(schema) = schema.additional_properties() {
                let embedded = schema.embedded_resource();
                for (name, value) in fields {
                    entries.insert(key(name.clone()), typed(schema, value, embedded));
                }
                return map(entries);
            }
            for (name, value) in fields {
                if root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    let value = if name == "metadata" {
                        visible_metadata(value)
                    } else {
                        plain(value)
                    };
                    entries.insert(key(name.clone()), value);
                } else if let (Some(property), Some(escaped)) = (schema.property(name), escape(name)) {
                    let embedded = property.embedded_resource();
                    entries.insert(key(escaped), typed(property, value, embedded));
                }
            }
            map(entries)
        }
        other => plain(other),
    }
}

/// Of metadata, rules see the name only.
fn visible_metadata(metadata: &Value) -> CelValue {
    let visible = ["name", "generateName"].into_iter().filter_map(|name| {
        let value = metadata.get(name)?.as_str()?;
        Some((key(name.to_owned()), text(value)))
    });
    map(visible.collect())
}

fn typed_text(schema: SchemaRef<'_>, value: &str) -> CelValue {
    if schema.int_or_string() {
        return text(value);
    }
    let parsed = match schema.format() {
        Some("date-time") => functions::timestamp(Arc::new(value.to_owned())).ok(),
        Some("date") => functions::timestamp(Arc::new(format!("{value}T00:00:00Z"))).ok(),
        Some("duration") => functions::duration(Arc::new(value.to_owned())).ok(),
        Some("byte") => STANDARD
            .decode(value)
            .ok()
            .map(|bytes| CelValue::Bytes(Arc::new(bytes))),
        _ => None,
    };
    parsed.unwrap_or_else(|| text(value))
}

/// An optional value.
pub(crate) fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(
        value.map_or_else(OptionalValue::none, OptionalValue::of),
    ))
}

/// Roughly the number of nodes in a value.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

/// A map of named values.
pub(crate) fn fields<'a>(fields: impl Iterator<Item = (&'a str, CelValue)>) -> CelValue {
    map(fields
        .map(|(name, value)| (key(name.to_owned()), value))
        .collect())
}

/// Roughly the number of nodes in a value of the engine, counted up to `limit`: a value that holds another one many times shares
/// it, and may be larger than any memory.
pub(crate) fn size_up_to(value: &CelValue, limit: usize) -> usize {
    let mut count = 1;
    match value {
        CelValue::String(text) => count += text.len() / 64,
        CelValue::Bytes(bytes) => count += bytes.len() / 64,
        CelValue::List(items) => {
            for item in items.iter() {
                if count >= limit {
                    break;
                }
                count += size_up_to(item, limit - count);
            }
        }
        CelValue::Map(map) => {
            for item in map.map.values() {
                if count >= limit {
                    break;
                }
                count += size_up_to(item, limit - count);
            }
        }
        _ => {}
    }
    count.min(limit)
}

/// A result as JSON.
pub(crate) fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(flag) => Value::Bool(*flag),
        CelValue::Int(int) => Value::from(*int),
        CelValue::UInt(int) => Value::from(*int),
        CelValue::Float(float) => Value::from(*float),
        CelValue::String(text) => Value::String(text.to_string()),
        CelValue::Bytes(bytes) => Value::String(STANDARD.encode(bytes.as_slice())),
        CelValue::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        CelValue::Map(map) => {
            let entry =
                |(name, value): (&Key, &CelValue)| Ok::<_, String>((name.to_string(), to_json(value)?));
            Value::Object(map.map.iter().map(entry).collect::<Result<_, _>>()?)
        }
        CelValue::Timestamp(time) => Value::String(time.to_rfc3339()),
        CelValue::Duration(duration) => match duration.num_nanoseconds() {
            Some(nanos) if nanos % 1_000_000_000 == 0 => Value::String(format!("{}s", nanos / 1_000_000_000)),
            Some(nanos) => Value::String(format!("{}s", nanos as f64 / 1e9)),
            None => return Err("the duration is too long".to_owned()),
        },
        CelValue::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => optional.value().map_or(Ok(Value::Null), to_json)?,
            None => return Err("the result cannot be shown as JSON".to_owned()),
        },
        CelValue::Function(..) => return Err("the result is a function".to_owned()),
    })
}
