//! The types of expressions, and which of them fit where.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::schema::{Additional, JsonType, SchemaRef};

/// The type of a value in an expression.
#[derive(Clone, Debug)]
pub enum CelType<'a> {
    /// Not followed here: it fits everywhere, and nothing is said about it.
    Unknown,
    /// Not known yet: whatever comes first decides, as for the elements of an empty list.
    Free,
    /// Known only when the expression runs.
    Dyn,
    /// Null.
    Null,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A whole number that is not negative.
    Uint,
    /// A number.
    Double,
    /// A string.
    Text,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A type as a value.
    Type(Box<CelType<'a>>),
    /// A list.
    List(Box<CelType<'a>>),
    /// A map from keys to values.
    Map(Box<CelType<'a>>, Box<CelType<'a>>),
    /// A value that may be missing.
    Optional(Box<CelType<'a>>),
    /// An object with the fields that a schema declares.
    Object(SchemaRef<'a>, View),
    /// The metadata of a custom resource, as its rules see it.
    Metadata,
    /// An object with these fields.
    Struct(Arc<Struct<'a>>),
    /// A type with functions and without fields, by its name.
    Named(&'static str),
    /// In the signature of a function: any type, the same wherever it stands.
    Param(u8),
}

/// Who looks at a schema, and what they see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The rules in the schema of a custom resource: what has a type.
    Rule,
    /// The same at the root of a resource, where kind and metadata are there without being declared.
    Root,
    /// Policies: everything that the schema declares.
    Policy,
}

impl View {
    /// How a schema below is seen.
    pub(super) fn of(self, schema: SchemaRef<'_>) -> Self {
        match self {
            Self::Policy => Self::Policy,
            _ if schema.embedded_resource() => Self::Root,
            _ => Self::Rule,
        }
    }
}

/// An object type that is declared by hand.
#[derive(Clone, Debug, Default)]
pub struct Struct<'a> {
    /// The name in messages.
    pub name: &'static str,
    /// The fields.
    pub fields: BTreeMap<String, CelType<'a>>,
}

impl<'a> CelType<'a> {
    /// A list of these.
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    /// A map from strings to these.
    pub fn map(value: Self) -> Self {
        Self::Map(Box::new(Self::Text), Box::new(value))
    }

    /// An object with these fields.
    pub fn object<const N: usize>(name: &'static str, fields: [(&str, Self); N]) -> Self {
        let fields = fields.map(|(field, ty)| (field.to_owned(), ty)).into();
        Self::Struct(Arc::new(Struct { name, fields }))
    }

    /// The values of a schema.
    pub fn of_schema(schema: SchemaRef<'a>, view: View) -> Self {
        if schema.int_or_string() {
            return Self::Dyn;
        }
        match schema.json_type() {
            Some(JsonType::Boolean) => Self::Bool,
            Some(JsonType::Integer) => Self::Int,
            Some(JsonType::Number) => Self::Double,
            Some(JsonType::String) => match schema.format() {
                Some("byte") => Self::Bytes,
                Some("duration") => Self::Duration,
                Some("date" | "date-time") => Self::Timestamp,
                _ => Self::Text,
            },
            Some(JsonType::Array) => match schema.items() {
                Some(items) => Self::list(Self::of_schema(items, view.of(items))),
                None => Self::Unknown,
            },
            Some(JsonType::Object) => match schema.additional_properties() {
                Additional::Schema(values) => Self::map(Self::of_schema(values, view.of(values))),
                _ => Self::Object(schema, view),
            },
            None => Self::Unknown,
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Unknown | Self::Free | Self::Dyn)
    }

    /// Whether this is a list or map that nothing is in yet.
    pub(super) fn is_empty_container(&self) -> bool {
        match self {
            Self::List(item) => matches!(**item, Self::Free),
            Self::Map(key, _) => matches!(**key, Self::Free),
            _ => false,
        }
    }

    /// The name in messages about overloads and fields.
    pub(super) fn name(&self) -> String {
        self.named(false)
    }

    /// The name as the type of a whole expression.
    pub fn output_name(&self) -> String {
        self.named(true)
    }

    fn named(&self, output: bool) -> String {
        let simple = match self {
            Self::Unknown | Self::Free | Self::Dyn | Self::Param(_) => "dyn",
            Self::Null if output => "null_type",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Timestamp if output => "google.protobuf.Timestamp",
            Self::Timestamp => "timestamp",
            Self::Duration if output => "google.protobuf.Duration",
            Self::Duration => "duration",
            Self::Object(..) | Self::Metadata => "object",
            Self::Struct(object) => object.name,
            Self::Named(name) => name,
            Self::Type(of) => return format!("type({})", of.named(output)),
            Self::List(item) => return format!("list({})", item.named(output)),
            Self::Map(key, value) => return format!("map({}, {})", key.named(output), value.named(output)),
            Self::Optional(value) => return format!("optional_type({})", value.named(output)),
        };
        simple.to_owned()
    }

    /// Whether two types are the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.same(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.same(c) && b.same(d),
            (Self::Object(a, _), Self::Object(b, _)) => std::ptr::eq(a.node, b.node),
            (Self::Struct(a), Self::Struct(b)) => a.name == b.name,
            (Self::Named(a), Self::Named(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether null may stand where this is wanted.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Timestamp
                | Self::Duration
                | Self::Object(..)
                | Self::Metadata
                | Self::Struct(_)
                | Self::Named(_)
        )
    }

    /// Whether a value of this type fits where `wanted` is.
    pub(super) fn fits(&self, wanted: &Self) -> bool {
        if self.is_dyn() || wanted.is_dyn() {
            return true;
        }
        match (self, wanted) {
            (Self::Null, other) | (other, Self::Null) => other.is_nullable(),
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.fits(c) && b.fits(d),
            // Where two objects come from is not followed.
            (Self::Object(..), Self::Object(..)) => true,
            _ => self.same(wanted),
        }
    }

    /// Of two types that fit, the one that says less.
    pub(super) fn general(self, other: Self) -> Self {
        match (self, other) {
            (Self::Free, other) | (other, Self::Free) => other,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Dyn, _) | (_, Self::Dyn) => Self::Dyn,
            (Self::List(a), Self::List(b)) => Self::list(a.general(*b)),
            (Self::Optional(a), Self::Optional(b)) => Self::Optional(Box::new(a.general(*b))),
            (Self::Map(a, b), Self::Map(c, d)) => Self::Map(Box::new(a.general(*c)), Box::new(b.general(*d))),
            (Self::Null, other) | (other, _) => other,
        }
    }
}

/// What the letters of one signature stand for.
#[derive(Default)]
pub(super) struct Bindings<'a>(BTreeMap<u8, CelType<'a>>);

impl<'a> Bindings<'a> {
    /// Whether an argument fits the type of a signature, which may have letters in it.
    pub(super) fn accept(&mut self, argument: &CelType<'a>, wanted: &CelType<'a>) -> bool {
        match (argument, wanted) {
            (_, CelType::Param(letter)) => {
                let bound = match self.0.remove(letter) {
                    None => argument.clone(),
                    Some(bound) if argument.fits(&bound) => argument.clone().general(bound),
                    Some(bound) => {
                        self.0.insert(*letter, bound);
                        return false;
                    }
                };
                self.0.insert(*letter, bound);
                true
            }
            (CelType::List(item), CelType::List(wanted))
            | (CelType::Optional(item), CelType::Optional(wanted)) => self.accept(item, wanted),
            (CelType::Map(key, value), CelType::Map(wanted_key, wanted_value)) => {
                self.accept(key, wanted_key) && self.accept(value, wanted_value)
            }
            _ => argument.fits(wanted),
        }
    }

    /// A type of the signature with what its letters stand for.
    pub(super) fn fill(&self, ty: &CelType<'a>) -> CelType<'a> {
        match ty {
            CelType::Param(letter) => self.0.get(letter).cloned().unwrap_or(CelType::Dyn),
            CelType::List(item) => CelType::list(self.fill(item)),
            CelType::Type(of) => CelType::Type(Box::new(self.fill(of))),
            CelType::Optional(value) => CelType::Optional(Box::new(self.fill(value))),
            CelType::Map(key, value) => CelType::Map(Box::new(self.fill(key)), Box::new(self.fill(value))),
            other => other.clone(),
        }
    }
}

/// Types as a call applies them, for messages.
pub(super) fn applied(target: Option<&CelType<'_>>, args: &[CelType<'_>]) -> String {
    let mut shown = target
        .map(|target| format!("{}.", target.name()))
        .unwrap_or_default();
    let names: Vec<String> = args.iter().map(CelType::name).collect();
    let _ = write!(shown, "({})", names.join(", "));
    shown
}
