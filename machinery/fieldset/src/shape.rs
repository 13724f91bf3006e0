//! What a schema says about ownership.
//!
//! A [`Shape`] is one place in a schema. It knows which forms a value may have there (object, list, scalar), whether
//! the parts of objects and lists are owned one by one, and the shapes of those parts. What a schema leaves open is
//! deduced: objects field by field, lists as a whole.

use std::borrow::Cow;
use std::sync::OnceLock;

use machinery_schema::{Additional, JsonType, ListType, MapType, SchemaRef, SchemaSet};
use machinery_value::Value;

/// ObjectMeta, which every custom resource has whatever its schema says.
static OBJECT_META: &str = include_str!("shape/objectmeta.json");
const OBJECT_META_NAME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// One place in a schema.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a>(Place<'a>);

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// Of a built-in kind.
    BuiltIn(SchemaRef<'a>),
    /// Of a custom resource.
    Custom {
        schema: SchemaRef<'a>,
        /// Whether it, or something above it, keeps unknown fields.
        open: bool,
        /// Whether it is a whole object, which has a kind and metadata.
        object: bool,
    },
    /// A string.
    Text,
    /// Anything: objects are owned field by field, lists as a whole.
    Deduced,
    /// Anything, owned as a whole.
    Opaque,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    List,
    Scalar,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Number,
    Text,
    Flag,
    Any,
}

/// How the elements of a list are owned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elements<'a> {
    /// All together.
    Atomic,
    /// Each by its value.
    Set,
    /// Each by these fields.
    Keyed(&'a [Box<str>]),
}

impl<'a> Shape<'a> {
    /// The shape of a built-in kind.
    pub fn built_in(schema: SchemaRef<'a>) -> Self {
        // Only raw extensions are objects that say nothing about their fields, and those have one owner.
        let raw = schema.json_type() == Some(JsonType::Object)
            && schema.properties().next().is_none()
            && matches!(schema.additional_properties(), Additional::Unspecified);
        Self(if raw {
            Place::Opaque
        } else {
            Place::BuiltIn(schema)
        })
    }

    /// The shape of a custom resource, from the schema of one version of its definition.
    pub fn custom(schema: SchemaRef<'a>) -> Self {
        Self::custom_at(schema, false, true)
    }

    /// The shape of a custom resource without a schema.
    pub fn deduced() -> Self {
        Self(Place::Deduced)
    }

    fn custom_at(schema: SchemaRef<'a>, open: bool, object: bool) -> Self {
        Self(Place::Custom {
            schema,
            open: open || schema.preserves_unknown(),
            object: object || schema.embedded_resource(),
        })
    }

    fn schema(self) -> Option<SchemaRef<'a>> {
        match self.0 {
            Place::BuiltIn(schema) | Place::Custom { schema, .. } => Some(schema),
            _ => None,
        }
    }

    /// The shape of a part of this one.
    fn part(self, schema: SchemaRef<'a>) -> Self {
        match self.0 {
            Place::Custom { open, .. } => Self::custom_at(schema, open, false),
            _ => Self::built_in(schema),
        }
    }

    /// Whether values may have any form here.
    fn any_form(self) -> bool {
        match self.0 {
            Place::Deduced | Place::Opaque => true,
            Place::Text => false,
            Place::BuiltIn(schema) | Place::Custom { schema, .. } => schema.json_type().is_none(),
        }
    }

    /// As which form `value` is handled here; null, and what does not belong here, as the first form that there is.
    pub(crate) fn form(self, value: Option<&Value>) -> Form {
        if !self.any_form() {
            return match self.schema().and_then(SchemaRef::json_type) {
                Some(JsonType::Object) => Form::Object,
                Some(JsonType::Array) => Form::List,
                _ => Form::Scalar,
            };
        }
        match value {
            Some(Value::Array(_)) => Form::List,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Form::Scalar,
            Some(Value::Object(_) | Value::Null) | None => Form::Object,
        }
    }

    pub(crate) fn scalar(self) -> Scalar {
        match self.0 {
            Place::Text => Scalar::Text,
            Place::Deduced | Place::Opaque => Scalar::Any,
            Place::BuiltIn(schema) | Place::Custom { schema, .. } => match schema.json_type() {
                Some(JsonType::Integer | JsonType::Number) => Scalar::Number,
                Some(JsonType::Boolean) => Scalar::Flag,
                Some(JsonType::String) if matches!(schema.format(), None | Some("byte")) => Scalar::Text,
                _ => Scalar::Any,
            },
        }
    }

    /// How the elements of a list are owned.
    pub(crate) fn elements(self) -> Elements<'a> {
        let Some(schema) = self.schema() else {
            return Elements::Atomic;
        };
        match schema.list_type() {
            Some(ListType::Set) => Elements::Set,
            Some(ListType::Map) if !schema.list_map_keys().is_empty() => {
                Elements::Keyed(schema.list_map_keys())
            }
            _ => Elements::Atomic,
        }
    }

    /// The shape of the elements of a list.
    pub(crate) fn item(self) -> Self {
        match self.schema().and_then(SchemaRef::items) {
            Some(items) => self.part(items),
            None => Self(Place::Opaque),
        }
    }

    /// Whether an object has one owner.
    pub(crate) fn atomic_object(self) -> bool {
        match self.0 {
            Place::Opaque => true,
            Place::Deduced | Place::Text => false,
            Place::BuiltIn(schema) | Place::Custom { schema, .. } => {
                schema.map_type() == Some(MapType::Atomic)
            }
        }
    }

    /// The shape of a declared field.
    pub(crate) fn declared(self, name: &str) -> Option<Shape<'a>> {
        match self.0 {
            Place::Custom { object: true, .. } if matches!(name, "apiVersion" | "kind") => {
                Some(Self(Place::Text))
            }
            Place::Custom { object: true, .. } if name == "metadata" => object_meta(),
            Place::BuiltIn(schema) | Place::Custom { schema, .. } => {
                schema.property(name).map(|schema| self.part(schema))
            }
            _ => None,
        }
    }

    /// The shape of fields that are not declared, if there may be some.
    pub(crate) fn undeclared(self) -> Option<Shape<'a>> {
        let (schema, open, bare) = match self.0 {
            Place::Deduced => return Some(self),
            Place::Opaque => return Some(self),
            Place::Text => return None,
            Place::BuiltIn(schema) => (schema, false, true),
            Place::Custom { schema, open, object } => (schema, open, !object),
        };
        match schema.additional_properties() {
            Additional::Schema(schema) => Some(self.part(schema)),
            Additional::Any => Some(Self(Place::Deduced)),
            Additional::Forbidden => None,
            Additional::Unspecified => {
                let free = open || bare && schema.properties().next().is_none();
                free.then_some(Self(Place::Deduced))
            }
        }
    }

    /// The shape of the field `name`; that of a field which may not be there is opaque.
    pub(crate) fn field(self, name: &str) -> Self {
        self.declared(name)
            .or_else(|| self.undeclared())
            .unwrap_or(Self(Place::Opaque))
    }

    /// Whether an object says nothing about its fields and what is below them.
    pub(crate) fn unknown_object(self) -> bool {
        let Some(below) = self.undeclared() else {
            return false;
        };
        let declares = match self.0 {
            Place::Custom { object: true, .. } => true,
            _ => self
                .schema()
                .is_some_and(|schema| schema.properties().next().is_some()),
        };
        // What a custom resource says about further fields is written in place, and an untyped scalar there counts as
        // nothing said; built-in kinds refer to such types by name.
        let nothing = match below.0 {
            Place::Deduced => true,
            Place::Custom { .. } => {
                below.any_form() || below.form(None) == Form::Scalar && below.scalar() == Scalar::Any
            }
            _ => false,
        };
        !declares && nothing
    }

    /// The default of a value here.
    pub(crate) fn default_value(self) -> Option<&'a Value> {
        self.schema().and_then(SchemaRef::default_value)
    }
}

fn object_meta() -> Option<Shape<'static>> {
    static SCHEMAS: OnceLock<Option<SchemaSet>> = OnceLock::new();
    SCHEMAS
        .get_or_init(|| SchemaSet::from_components(&serde_json::from_str(OBJECT_META).ok()?).ok())
        .as_ref()?
        .root(OBJECT_META_NAME)
        .map(Shape::built_in)
}

/// The versions of one kind.
///
/// Fields are owned in the version in which they were written, so that a write looks at the object in the version of
/// every entry.
pub trait Versions {
    /// The shape in a version, `None` if the kind has no such version; entries of that version are then dropped.
    fn shape(&self, api_version: &str) -> Option<Shape<'_>>;

    /// The object, which is in version `from`, in version `to`. Without conversion, versions differ in name only.
    fn convert<'v>(&self, object: &'v Value, from: &str, to: &str) -> Cow<'v, Value> {
        let _ = (from, to);
        Cow::Borrowed(object)
    }
}

/// The versions of a kind that are served without conversion.
impl Versions for &[(&str, Shape<'_>)] {
    fn shape(&self, api_version: &str) -> Option<Shape<'_>> {
        self.iter()
            .find(|(known, _)| *known == api_version)
            .map(|(_, shape)| *shape)
    }
}

#[cfg(test)]
mod tests;
