//! What a column of a table is.

use std::borrow::Cow;

use machinery_value::Value;
use serde_json::json;

/// Described so by every table whose first column is the object's name.
pub(crate) const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating \
    resources, although some resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be \
    updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Described so by every column that shows when the object was created.
pub(crate) const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when \
    this object was created. It is not guaranteed to be set in happens-before order across separate operations. \
    Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. \
    Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// One column definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// The OpenAPI type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: Cow<'static, str>,
    /// An OpenAPI format; `name` marks the primary identifier.
    pub format: Cow<'static, str>,
    /// A sentence for people; may be empty.
    pub description: Cow<'static, str>,
    /// Zero is shown always, anything above only in wide output.
    pub priority: i32,
}

impl Column {
    const fn new(
        name: &'static str,
        r#type: &'static str,
        format: &'static str,
        description: &'static str,
        priority: i32,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            r#type: Cow::Borrowed(r#type),
            format: Cow::Borrowed(format),
            description: Cow::Borrowed(description),
            priority,
        }
    }

    /// A column of text.
    pub(crate) const fn string(name: &'static str) -> Self {
        Self::new(name, "string", "", "", 0)
    }

    /// A column of whole numbers.
    pub(crate) const fn integer(name: &'static str) -> Self {
        Self::new(name, "integer", "", "", 0)
    }

    /// A column of truth values.
    pub(crate) const fn boolean(name: &'static str) -> Self {
        Self::new(name, "boolean", "", "", 0)
    }

    /// A column of text that only wide output shows.
    pub(crate) const fn wide(name: &'static str) -> Self {
        Self::new(name, "string", "", "", 1)
    }

    /// The definition as it stands in a table.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.r#type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

/// The column nearly every table starts with.
pub(crate) const NAME: Column = Column::new("Name", "string", "name", NAME_DESCRIPTION, 0);
/// The name where it is not what people look for first.
pub(crate) const WIDE_NAME: Column = Column::new("Name", "string", "name", NAME_DESCRIPTION, 1);
/// The name of another thing, marked as a name all the same.
pub(crate) const ATTACHER: Column = Column::new("Attacher", "string", "name", "", 0);
/// How old the object is.
pub(crate) const AGE: Column = Column::new("Age", "string", "", CREATED_DESCRIPTION, 0);
/// When the object was created, for kinds that have no table of their own.
pub(crate) const CREATED_AT: Column = Column::new("Created At", "date", "", CREATED_DESCRIPTION, 0);
