//! What one node of a schema holds.
//!
//! Most nodes of real schemas are a type and nothing else; the rare parts are boxed.

use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::{JsonType, ListType, MapType, NodeId};
use crate::cel::Rule;
use crate::validate::Format;

/// The set of JSON types a node allows; empty allows all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(u8);

/// In the order in which the server lists them.
const NAMES: [(JsonType, &str); 6] = [
    (JsonType::Integer, "integer"),
    (JsonType::String, "string"),
    (JsonType::Number, "number"),
    (JsonType::Boolean, "boolean"),
    (JsonType::Object, "object"),
    (JsonType::Array, "array"),
];

impl Types {
    pub(crate) const INT_OR_STRING: Self = Self(1 << JsonType::Integer as u8 | 1 << JsonType::String as u8);

    pub(crate) fn one(json_type: JsonType) -> Self {
        Self(1 << json_type as u8)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(json_type, _)| Self::one(*json_type))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, json_type: JsonType) -> bool {
        self.0 & 1 << json_type as u8 != 0
    }

    pub(crate) fn single(self) -> Option<JsonType> {
        NAMES
            .iter()
            .map(|(json_type, _)| *json_type)
            .find(|json_type| self == Self::one(*json_type))
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (json_type, name) in NAMES {
            if self.has(json_type) {
                write!(f, "{separator}{name}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

impl JsonType {
    /// The name as schemas write it.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

/// What a node says about undeclared fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AdditionalNode {
    #[default]
    Unspecified,
    Forbidden,
    Any,
    Schema(NodeId),
}

/// What occurs at a node or below it. Walks skip subtrees that hold nothing for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subtree(u8);

impl Subtree {
    pub(crate) const DEFAULTS: Self = Self(1);
    pub(crate) const RULES: Self = Self(2);
    pub(crate) const LISTS: Self = Self(4);
    pub(crate) const EMBEDDED: Self = Self(8);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOrAssign for Subtree {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Bounds of numbers, strings, lists and objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) pattern: Option<Pattern>,
}

/// A pattern, compiled once. One that does not compile fails every value, as on the server.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) source: Box<str>,
    pub(crate) compiled: Result<Regex, Box<str>>,
}

/// The logical connectives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logic {
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) not: Option<NodeId>,
}

/// One schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) types: Types,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) int_or_string: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) list_type: Option<ListType>,
    pub(crate) map_type: Option<MapType>,
    pub(crate) subtree: Subtree,
    /// The format, if it is one that the server enforces.
    pub(crate) known_format: Option<Format>,
    /// Whether the format takes part in checking the type.
    pub(crate) types_by_format: bool,
    pub(crate) additional: AdditionalNode,
    pub(crate) items: Option<NodeId>,
    /// Sorted by name.
    pub(crate) properties: Vec<(Box<str>, NodeId)>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) enumeration: Vec<Value>,
    pub(crate) default: Option<Box<Value>>,
    pub(crate) format: Option<Box<str>>,
    pub(crate) limits: Option<Box<Limits>>,
    pub(crate) logic: Option<Box<Logic>>,
    pub(crate) list_map_keys: Vec<Box<str>>,
    pub(crate) patch_merge_key: Option<Box<str>>,
    pub(crate) patch_strategy: Option<Box<str>>,
    pub(crate) rules: Vec<Rule>,
}

impl Node {
    pub(crate) fn property(&self, name: &str) -> Option<NodeId> {
        let found = self
            .properties
            .binary_search_by(|(known, _)| known.as_ref().cmp(name))
            .ok()?;
        Some(self.properties[found].1)
    }

    /// What the node itself holds, without what is below it.
    pub(crate) fn own_marks(&self) -> Subtree {
        let mut marks = Subtree::default();
        if self.default.is_some() {
            marks |= Subtree::DEFAULTS;
        }
        if !self.rules.is_empty() {
            marks |= Subtree::RULES;
        }
        if matches!(self.list_type, Some(ListType::Set | ListType::Map)) {
            marks |= Subtree::LISTS;
        }
        if self.embedded_resource {
            marks |= Subtree::EMBEDDED;
        }
        marks
    }

    /// The children that a walk over an object can reach, connectives excepted.
    pub(crate) fn children(&self) -> impl Iterator<Item = NodeId> {
        let additional = match self.additional {
            AdditionalNode::Schema(id) => Some(id),
            _ => None,
        };
        self.properties
            .iter()
            .map(|(_, id)| *id)
            .chain(self.items)
            .chain(additional)
    }
}
