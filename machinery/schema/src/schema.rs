//! The arena of schema nodes, and references into it.
//!
//! Nodes live in one vector and name their children by index, so that a schema may contain itself (as
//! `JSONSchemaProps` does) and a whole OpenAPI document costs a few allocations for each node. A set never changes
//! after it is built.

mod build;
mod node;

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::cel::Rule;
pub(crate) use node::{Limits, Logic, Node, Subtree};

/// Why a schema cannot be built.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// A part of the schema is not of the JSON type it must have.
    #[error("{path}: {problem}")]
    Malformed {
        /// Where in the schema.
        path: String,
        /// What is wrong there.
        problem: String,
    },
    /// A `$ref` points at nothing.
    #[error("reference to {0:?}, which is not defined")]
    UnknownRef(String),
    /// The schema nests deeper, or holds more nodes, than the server accepts.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
}

/// Index of a node in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// A JSON type, as the `type` of a schema names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// A whole number.
    Integer,
    /// A string.
    String,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// An object.
    Object,
    /// An array.
    Array,
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Elements are unique scalars.
    Set,
    /// Elements are objects, told apart by [`SchemaRef::list_map_keys`].
    Map,
}

/// Whether the fields of an object are owned one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Each field has its own owners.
    #[default]
    Granular,
    /// The object is one value.
    Atomic,
}

/// What a schema says about fields that are not among its properties.
#[derive(Clone, Copy, Debug)]
pub enum Additional<'a> {
    /// Nothing.
    Unspecified,
    /// They are not allowed.
    Forbidden,
    /// They may hold anything.
    Any,
    /// They have this schema.
    Schema(SchemaRef<'a>),
}

/// An immutable set of schema nodes with named roots.
pub struct SchemaSet {
    pub(crate) nodes: Vec<Node>,
    pub(crate) roots: HashMap<Box<str>, NodeId>,
}

impl SchemaSet {
    /// The schema of one CRD version (`openAPIV3Schema`). Its root has the name `""`.
    pub fn from_crd(schema: &Value) -> Result<Self, SchemaError> {
        build::from_crd(schema, false)
    }

    /// The same, with types and formats as they are written: what defaults are held against on admission.
    pub(crate) fn from_crd_verbatim(schema: &Value) -> Result<Self, SchemaError> {
        build::from_crd(schema, true)
    }

    /// The schemas of an OpenAPI v3 document (`components.schemas`). References between them are followed,
    /// also when wrapped in an `allOf` with a single element.
    pub fn from_components(components: &Value) -> Result<Self, SchemaError> {
        build::from_components(components)
    }

    /// The root with this name.
    pub fn root(&self, name: &str) -> Option<SchemaRef<'_>> {
        self.roots.get(name).map(|id| self.at(*id))
    }

    /// The names of the roots, in no particular order.
    pub fn root_names(&self) -> impl Iterator<Item = &str> {
        self.roots.keys().map(AsRef::as_ref)
    }

    /// The number of nodes, for size estimates.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn at(&self, id: NodeId) -> SchemaRef<'_> {
        SchemaRef {
            set: self,
            node: &self.nodes[id.0 as usize],
        }
    }
}

impl fmt::Debug for SchemaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaSet")
            .field("nodes", &self.nodes.len())
            .field("roots", &self.roots.len())
            .finish()
    }
}

/// One node of a [`SchemaSet`].
#[derive(Clone, Copy)]
pub struct SchemaRef<'a> {
    pub(crate) set: &'a SchemaSet,
    pub(crate) node: &'a Node,
}

impl fmt::Debug for SchemaRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaRef")
            .field("types", &self.node.types.to_string())
            .finish_non_exhaustive()
    }
}

impl<'a> SchemaRef<'a> {
    /// The type, if the schema names one. An int-or-string has none.
    pub fn json_type(self) -> Option<JsonType> {
        self.node.types.single()
    }

    /// Whether null is a value.
    pub fn nullable(self) -> bool {
        self.node.nullable
    }

    /// The schema of a declared property.
    pub fn property(self, name: &str) -> Option<SchemaRef<'a>> {
        self.node.property(name).map(|id| self.set.at(id))
    }

    /// The declared properties, by name.
    pub fn properties(self) -> impl Iterator<Item = (&'a str, SchemaRef<'a>)> {
        let set = self.set;
        self.node
            .properties
            .iter()
            .map(move |(name, id)| (name.as_ref(), set.at(*id)))
    }

    /// What is said about undeclared fields.
    pub fn additional_properties(self) -> Additional<'a> {
        match self.node.additional {
            node::AdditionalNode::Unspecified => Additional::Unspecified,
            node::AdditionalNode::Forbidden => Additional::Forbidden,
            node::AdditionalNode::Any => Additional::Any,
            node::AdditionalNode::Schema(id) => Additional::Schema(self.set.at(id)),
        }
    }

    /// The schema of the field `name`: the declared property, or that of additional properties.
    pub fn field(self, name: &str) -> Option<SchemaRef<'a>> {
        self.property(name).or(match self.additional_properties() {
            Additional::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// The schema of the elements of a list.
    pub fn items(self) -> Option<SchemaRef<'a>> {
        self.node.items.map(|id| self.set.at(id))
    }

    /// The names of required fields.
    pub fn required(self) -> impl Iterator<Item = &'a str> {
        self.node.required.iter().map(AsRef::as_ref)
    }

    /// The default, if there is one.
    pub fn default_value(self) -> Option<&'a Value> {
        self.node.default.as_deref()
    }

    /// The values that are allowed; empty if all are.
    pub fn enumeration(self) -> &'a [Value] {
        &self.node.enumeration
    }

    /// The format as written (`date-time`), whether or not the server enforces it.
    pub fn format(self) -> Option<&'a str> {
        self.node.format.as_deref()
    }

    /// Whether unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub fn preserves_unknown(self) -> bool {
        self.node.preserve_unknown
    }

    /// Whether this is an integer or a string (`x-kubernetes-int-or-string`).
    pub fn int_or_string(self) -> bool {
        self.node.int_or_string
    }

    /// Whether this is a whole object with kind and metadata (`x-kubernetes-embedded-resource`).
    pub fn embedded_resource(self) -> bool {
        self.node.embedded_resource
    }

    /// How elements of this list are told apart (`x-kubernetes-list-type`), as written.
    pub fn list_type(self) -> Option<ListType> {
        self.node.list_type
    }

    /// The fields that identify an element of a list of type map.
    pub fn list_map_keys(self) -> &'a [Box<str>] {
        &self.node.list_map_keys
    }

    /// Whether fields are owned one by one (`x-kubernetes-map-type`), as written.
    pub fn map_type(self) -> Option<MapType> {
        self.node.map_type
    }

    /// The key of strategic merges of this list (`x-kubernetes-patch-merge-key`).
    pub fn patch_merge_key(self) -> Option<&'a str> {
        self.node.patch_merge_key.as_deref()
    }

    /// The strategies of strategic merges (`x-kubernetes-patch-strategy`), separated by commas.
    pub fn patch_strategy(self) -> Option<&'a str> {
        self.node.patch_strategy.as_deref()
    }

    /// The CEL rules at this node.
    pub fn rules(self) -> &'a [Rule] {
        &self.node.rules
    }

    /// The greatest number of characters of a string.
    pub fn max_length(self) -> Option<i64> {
        self.node.limits.as_ref().and_then(|limits| limits.max_length)
    }

    pub(crate) fn subtree(self) -> Subtree {
        self.node.subtree
    }

    pub(crate) fn limits(self) -> Option<&'a Limits> {
        self.node.limits.as_deref()
    }

    pub(crate) fn logic(self) -> Option<&'a Logic> {
        self.node.logic.as_deref()
    }
}

#[cfg(test)]
mod tests;
