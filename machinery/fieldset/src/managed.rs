//! The list at `metadata.managedFields`: who owns which fields, in which version, since when.
//!
//! An entry is known by its manager, the operation, the subresource and, for updates, the version. Among entries of
//! one identity the last counts.

mod time;

use std::collections::BTreeMap;

use machinery_value::{Map, Value};
use thiserror::Error;

use crate::codec::{self, CodecError};
use crate::go;
use crate::set::FieldSet;
pub use time::Time;

/// More entries than any object has; what lies beyond is malformed.
const MAX_ENTRIES: usize = 10_000;

/// Why a list of managed fields cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManagedError {
    /// It is not a list of objects.
    #[error("managed fields must be a list of objects")]
    NotAList,
    /// There are more entries than any object has.
    #[error("too many entries")]
    TooMany,
    /// A field of an entry has the wrong type.
    #[error("{field} has the wrong type in managed fields entry {entry}")]
    Type {
        /// The field.
        field: &'static str,
        /// The place of the entry.
        entry: usize,
    },
    /// An operation that is none.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry without a version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry that does not say how its fields are written.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingType(usize),
    /// An entry whose fields are written in a way that is not known.
    #[error("invalid fieldsType {kind} in managed fields entry {entry}")]
    UnknownType {
        /// The type, in quotes.
        kind: String,
        /// The place of the entry.
        entry: usize,
    },
    /// The fields themselves cannot be read.
    #[error("error decoding set: {0}")]
    Fields(#[from] CodecError),
}

/// How fields came to be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    /// The name in the list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What an entry is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The name of the manager.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// The version in which it writes; empty for appliers, which have one entry for all versions.
    pub api_version: String,
    /// The subresource through which it writes, empty for the object itself.
    pub subresource: String,
}

impl Identity {
    /// The identity of whoever writes; nameless managers are unknown.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which the server sorts identities: their JSON.
    pub(crate) fn sort_key(&self) -> String {
        let mut key = String::from("{");
        let fields = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.name()),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            if key.len() > 1 {
                key.push(',');
            }
            key.push_str(&format!("\"{name}\":{}", go::json(&Value::from(text))));
        }
        key.push('}');
        key
    }
}

/// How messages name a manager: `"m1"`, or `"kubectl" with subresource "scale" using apps/v1`.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&go::quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", go::quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub fields: FieldSet,
    /// The version whose fields they are.
    pub api_version: String,
    /// When they last changed, if that is known.
    pub time: Option<Time>,
}

/// Who owns which fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    /// The owners.
    pub entries: BTreeMap<Identity, Owned>,
}

impl ManagedFields {
    /// Reads the list; null or nothing is the empty one.
    pub fn decode(list: Option<&Value>) -> Result<Self, ManagedError> {
        let list = match list {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(ManagedError::NotAList),
        };
        if list.len() > MAX_ENTRIES {
            return Err(ManagedError::TooMany);
        }
        let mut entries = BTreeMap::new();
        for (index, entry) in list.iter().enumerate() {
            let (identity, owned) = decode_entry(index, entry)?;
            entries.insert(identity, owned);
        }
        Ok(Self { entries })
    }

    /// Reads the list of an object.
    pub fn of(object: &Value) -> Result<Self, ManagedError> {
        Self::decode(object.get("metadata").and_then(|meta| meta.get("managedFields")))
    }

    /// The list, appliers first, then by time, manager, version and subresource.
    pub fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<(&Identity, &Owned)> = self.entries.iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            let seconds = |owned: &Owned| owned.time.map_or(0, Time::seconds);
            (
                a.operation,
                seconds(x),
                &a.manager,
                &x.api_version,
                &a.subresource,
            )
                .cmp(&(
                    b.operation,
                    seconds(y),
                    &b.manager,
                    &y.api_version,
                    &b.subresource,
                ))
        });
        entries
            .into_iter()
            .map(|(identity, owned)| encode_entry(identity, owned))
            .collect()
    }

    /// Writes the list into an object, or removes it when it is empty.
    pub fn store(&self, object: &mut Value) {
        // Deeper sets could not be read back; nothing is better than something unreadable.
        let deep = |owned: &Owned| owned.fields.depth() > codec::MAX_DEPTH;
        if self.entries.is_empty() || self.entries.values().any(deep) {
            clear(object);
        } else if let Value::Object(map) = object
            && let Value::Object(meta) = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()))
        {
            meta.insert("managedFields".to_owned(), Value::Array(self.encode()));
        }
    }
}

/// Removes the list from an object.
pub fn clear(object: &mut Value) {
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        meta.remove("managedFields");
    }
}

/// Whether a client asks for the list to be emptied: it sends an empty list, or one with an empty entry.
pub(crate) fn is_reset(list: Option<&Value>) -> bool {
    match list {
        Some(Value::Array(list)) => match list.as_slice() {
            [] => true,
            [Value::Object(only)] => only.values().all(|value| match value {
                Value::String(text) => text.is_empty(),
                value => value.is_null(),
            }),
            _ => false,
        },
        _ => false,
    }
}

fn decode_entry(index: usize, entry: &Value) -> Result<(Identity, Owned), ManagedError> {
    let Value::Object(entry) = entry else {
        return Err(ManagedError::NotAList);
    };
    let text = |field: &'static str| match entry.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(ManagedError::Type { field, entry: index }),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedError::Operation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(ManagedError::ApiVersion);
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(ManagedError::MissingType(index)),
        kind => {
            return Err(ManagedError::UnknownType {
                kind: go::quote(kind),
                entry: index,
            });
        }
    }
    let time = match text("time")? {
        "" => None,
        text => Some(Time::parse(text).ok_or(ManagedError::Type {
            field: "time",
            entry: index,
        })?),
    };
    let identity = Identity {
        manager: text("manager")?.to_owned(),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.to_owned(),
        },
        subresource: text("subresource")?.to_owned(),
    };
    let owned = Owned {
        fields: codec::decode(entry.get("fieldsV1").unwrap_or(&Value::Null))?,
        api_version: api_version.to_owned(),
        time,
    };
    Ok((identity, owned))
}

fn encode_entry(identity: &Identity, owned: &Owned) -> Value {
    let mut entry = Map::new();
    let mut text = |field: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(field.to_owned(), Value::from(text));
        }
    };
    text("manager", &identity.manager);
    text("operation", identity.operation.name());
    text("apiVersion", &owned.api_version);
    text("subresource", &identity.subresource);
    text("fieldsType", "FieldsV1");
    if let Some(time) = owned.time {
        text("time", &time.to_string());
    }
    entry.insert("fieldsV1".to_owned(), codec::encode(&owned.fields));
    Value::Object(entry)
}

#[cfg(test)]
mod tests;
