//! How large values may be, told from their schema: what fits into one request.

use std::ops::{Add, Mul};

use super::types::CelType;
use super::values::escape;
use crate::schema::{Additional, JsonType, SchemaRef};

/// The largest request.
const REQUEST: u64 = 3 * 1024 * 1024;

/// Between two sizes, or two costs. Sums and products stop at the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// From nothing to as much.
    pub(super) fn up_to(self) -> Self {
        Self {
            min: 0,
            max: self.max,
        }
    }

    /// Times a factor, rounded up.
    pub(super) fn times(self, factor: f64) -> Self {
        // Beyond the largest number a float becomes that number.
        let scaled = |size: u64| (size as f64 * factor).ceil() as u64;
        Self {
            min: scaled(self.min),
            max: scaled(self.max),
        }
    }
}

impl Add for Range {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }
}

impl Mul for Range {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }
}

/// How large a text is after a replacement.
pub(super) fn replaced(text: Range, from: Range, to: Range) -> Range {
    let largest = if from.min == 0 {
        text.max
            .saturating_add(1)
            .saturating_mul(to.max)
            .saturating_add(text.max)
    } else if to.max <= from.min {
        text.max
    } else {
        text.max.div_ceil(from.min).saturating_mul(to.max)
    };
    let smallest = if from.max == 0 {
        text.min
            .saturating_add(1)
            .saturating_mul(to.min)
            .saturating_add(text.min)
    } else if from.max <= to.min {
        text.min
    } else {
        text.min.div_ceil(from.max).saturating_mul(to.min)
    };
    Range {
        min: smallest,
        max: largest,
    }
}

/// Whether all values of a type are of one size.
pub(super) fn is_scalar(ty: &CelType<'_>) -> bool {
    match ty {
        CelType::Bool
        | CelType::Double
        | CelType::Duration
        | CelType::Int
        | CelType::Timestamp
        | CelType::Uint => true,
        CelType::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// A value that the schema declares.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// What a schema describes, and whether it is the root of a resource.
    Schema(SchemaRef<'a>, bool),
    /// The metadata of a resource.
    Metadata,
    /// The key of a map.
    Key,
    /// A text without bounds.
    Text,
}

impl<'a> Place<'a> {
    fn below(schema: SchemaRef<'a>) -> Self {
        Self::Schema(schema, schema.embedded_resource())
    }

    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Schema(schema, root) => match name {
                "apiVersion" | "kind" if root => Some(Self::Text),
                "metadata" if root => Some(Self::Metadata),
                _ => {
                    if let Additional::Schema(values) = schema.additional_properties() {
                        return Some(Self::below(values));
                    }
                    let mut properties = schema.properties();
                    let (_, property) =
                        properties.find(|(declared, _)| escape(declared).as_deref() == Some(name))?;
                    Some(Self::below(property))
                }
            },
            Self::Metadata => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Key | Self::Text => None,
        }
    }

    /// An element of a list, or a value of a map.
    pub(super) fn element(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else {
            return None;
        };
        match schema.additional_properties() {
            Additional::Schema(values) => Some(Self::below(values)),
            _ => schema.items().map(Self::below),
        }
    }

    /// A key of a map.
    pub(super) fn key(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else {
            return None;
        };
        matches!(schema.additional_properties(), Additional::Schema(_)).then_some(Self::Key)
    }

    /// How many characters, elements or fields there may be.
    pub(super) fn max_elements(self) -> u64 {
        match self {
            Self::Schema(schema, _) => max_elements(schema),
            Self::Text => REQUEST - 2,
            Self::Metadata | Self::Key => 0,
        }
    }
}

fn bound(limit: Option<i64>) -> Option<u64> {
    limit.map(|limit| u64::try_from(limit).unwrap_or(0))
}

fn max_elements(schema: SchemaRef<'_>) -> u64 {
    let length = bound(schema.max_length());
    if schema.int_or_string() {
        return length.map_or(REQUEST - 2, |length| length.saturating_mul(4));
    }
    let limits = schema.limits();
    match schema.json_type() {
        Some(JsonType::Array) => bound(limits.and_then(|limits| limits.max_items)).unwrap_or_else(|| {
            let item = schema.items().map_or(2, min_size);
            (REQUEST - 2) / (item + 1)
        }),
        Some(JsonType::Object) => match schema.additional_properties() {
            Additional::Schema(values) => bound(limits.and_then(|limits| limits.max_properties))
                .unwrap_or_else(|| (REQUEST - 2) / (min_size(values) + 6)),
            _ => 0,
        },
        Some(JsonType::String) => match (schema.format(), length) {
            (Some("byte"), Some(length)) => length,
            (Some("duration" | "date-time"), _) => 32,
            (Some("date"), _) => 12,
            (_, Some(length)) => length.saturating_mul(4),
            _ => {
                let longest = schema.enumeration().iter().filter_map(|value| value.as_str());
                longest.map(|text| text.len() as u64).max().unwrap_or(REQUEST - 2)
            }
        },
        _ => 0,
    }
}

/// How many bytes a value takes at least.
pub(super) fn min_size(schema: SchemaRef<'_>) -> u64 {
    if schema.int_or_string() {
        return 1;
    }
    match schema.json_type() {
        Some(JsonType::Boolean) => 4,
        Some(JsonType::Integer | JsonType::Number) => 1,
        Some(JsonType::String) => match schema.format() {
            Some("duration") => 3,
            Some("date") => 12,
            Some("date-time") => 21,
            _ => 2,
        },
        Some(JsonType::Object) if !matches!(schema.additional_properties(), Additional::Schema(_)) => {
            let required = schema.required().filter_map(|name| {
                let property = schema.property(name)?;
                property
                    .default_value()
                    .is_none()
                    .then(|| name.len() as u64 + min_size(property) + 4)
            });
            required.fold(2, u64::saturating_add)
        }
        _ => 2,
    }
}

/// How often a node with an unbounded list or map around it may occur in a request.
pub(crate) fn max_cardinality(schema: SchemaRef<'_>) -> u64 {
    REQUEST / (min_size(schema) + 1)
}
