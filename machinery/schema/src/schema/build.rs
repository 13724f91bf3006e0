//! Builds the arena from JSON.
//!
//! The builder is lenient where the server is: it takes what it understands and leaves the judgement on whether a
//! CRD schema is acceptable to [`crate::structural`]. It refuses only what it cannot represent.

use std::collections::HashMap;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::node::{AdditionalNode, Limits, Logic, Node, Pattern, Types};
use super::{ListType, MapType, NodeId, SchemaError, SchemaSet};
use crate::cel::Rule;
use crate::path::Path;
use crate::validate::Format;

/// Deeper schemas are refused; the deepest ones in use have about forty levels.
const MAX_DEPTH: usize = 200;
/// More nodes than any document of a few megabytes holds.
const MAX_NODES: usize = 1 << 20;
/// The greatest compiled size of one pattern.
const MAX_PATTERN_SIZE: usize = 1 << 20;

const REF_PREFIX: &str = "#/components/schemas/";

pub(super) fn from_crd(schema: &Value, verbatim: bool) -> Result<SchemaSet, SchemaError> {
    let mut builder = Builder {
        verbatim,
        ..Builder::default()
    };
    let root = builder.add(schema, &Path::ROOT, 0)?;
    Ok(builder.finish(HashMap::from([("".into(), root)])))
}

pub(super) fn from_components(components: &Value) -> Result<SchemaSet, SchemaError> {
    let components = object(components, &Path::ROOT)?;
    let mut builder = Builder {
        nodes: vec![Node::default(); components.len()],
        follows_references: true,
        ..Builder::default()
    };
    for (index, name) in components.keys().enumerate() {
        builder.names.insert(name, NodeId(index as u32));
    }
    for (index, (name, schema)) in components.iter().enumerate() {
        let path = Path::ROOT.field(name);
        let id = NodeId(index as u32);
        let fields = object(schema, &path)?;
        match reference(fields) {
            Some(target) => {
                let target = builder.named(target)?;
                builder.overlays.push((id, target, Overlay::default()));
            }
            None => builder.fill(id, fields, &path, 0)?,
        }
    }
    let roots = builder
        .names
        .iter()
        .map(|(name, id)| (Box::from(*name), *id))
        .collect();
    Ok(builder.finish(roots))
}

#[derive(Default)]
struct Builder<'v> {
    nodes: Vec<Node>,
    names: HashMap<&'v str, NodeId>,
    /// In a CRD, references mean nothing; admission refuses them.
    follows_references: bool,
    /// Types and formats count as they are written, which is how the server looks at defaults: an int-or-string
    /// adds no types, and no format is taken for mere documentation.
    verbatim: bool,
    /// Nodes that are copies of another one, with some words of their own.
    overlays: Vec<(NodeId, NodeId, Overlay)>,
}

impl<'v> Builder<'v> {
    fn add(&mut self, schema: &'v Value, path: &Path<'_>, depth: usize) -> Result<NodeId, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooLarge("it nests too deeply"));
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(SchemaError::TooLarge("it has too many nodes"));
        }
        let fields = object(schema, path)?;
        if let Some(name) = reference(fields).filter(|_| self.follows_references) {
            let target = self.named(name)?;
            let overlay = Overlay::of(fields);
            if overlay.is_empty() {
                return Ok(target);
            }
            let id = self.reserve();
            self.overlays.push((id, target, overlay));
            return Ok(id);
        }
        let id = self.reserve();
        self.fill(id, fields, path, depth)?;
        Ok(id)
    }

    fn reserve(&mut self) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        id
    }

    fn named(&self, name: &str) -> Result<NodeId, SchemaError> {
        self.names
            .get(name)
            .copied()
            .ok_or_else(|| SchemaError::UnknownRef(name.to_owned()))
    }

    fn fill(
        &mut self,
        id: NodeId,
        fields: &'v Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<(), SchemaError> {
        let mut node = Node::default();
        let mut limits = Limits::default();
        let mut logic = Logic::default();
        let (mut has_limits, mut has_logic) = (false, false);
        for (key, value) in fields {
            let at = path.field(key);
            let known_limit = read_limit(&mut limits, key, value, &at)?;
            has_limits |= known_limit;
            if known_limit {
                continue;
            }
            match key.as_str() {
                "properties" => {
                    for (name, schema) in object(value, &at)? {
                        let child = self.add(schema, &at.key(name), depth + 1)?;
                        node.properties.push((Box::from(name.as_str()), child));
                    }
                    node.properties.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                }
                "additionalProperties" => {
                    node.additional = match value {
                        Value::Bool(true) => AdditionalNode::Any,
                        Value::Bool(false) => AdditionalNode::Forbidden,
                        Value::Null => AdditionalNode::Unspecified,
                        schema => AdditionalNode::Schema(self.add(schema, &at, depth + 1)?),
                    }
                }
                "items" if !value.is_null() => node.items = Some(self.add(value, &at, depth + 1)?),
                "allOf" | "anyOf" | "oneOf" => {
                    let list = match key.as_str() {
                        "allOf" => &mut logic.all_of,
                        "anyOf" => &mut logic.any_of,
                        _ => &mut logic.one_of,
                    };
                    for (index, schema) in array(value, &at)?.iter().enumerate() {
                        list.push(self.add(schema, &at.index(index), depth + 1)?);
                    }
                    has_logic |= !list.is_empty();
                }
                "not" if !value.is_null() => {
                    logic.not = Some(self.add(value, &at, depth + 1)?);
                    has_logic = true;
                }
                _ => read_plain(&mut node, key, value, &at)?,
            }
        }
        if node.int_or_string && !self.verbatim {
            node.types = Types::INT_OR_STRING;
        }
        node.types_by_format = node.known_format.is_some() || self.verbatim && node.format.is_some();
        node.limits = has_limits.then(|| Box::new(limits));
        node.logic = has_logic.then(|| Box::new(logic));
        self.nodes[id.0 as usize] = node;
        Ok(())
    }

    fn finish(mut self, roots: HashMap<Box<str>, NodeId>) -> SchemaSet {
        for (id, target, overlay) in std::mem::take(&mut self.overlays) {
            let mut node = self.nodes[target.0 as usize].clone();
            node.map_type = overlay.map_type.or(node.map_type);
            node.patch_merge_key = overlay.patch_merge_key.or(node.patch_merge_key);
            node.patch_strategy = overlay.patch_strategy.or(node.patch_strategy);
            self.nodes[id.0 as usize] = node;
        }
        for node in &mut self.nodes {
            node.subtree = node.own_marks();
        }
        // Children mostly follow their parents, so going backwards settles a tree in one round; references need a
        // few more.
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..self.nodes.len()).rev() {
                let mut marks = self.nodes[index].subtree;
                for child in self.nodes[index].children() {
                    marks |= self.nodes[child.0 as usize].subtree;
                }
                changed |= marks != self.nodes[index].subtree;
                self.nodes[index].subtree = marks;
            }
        }
        self.nodes.shrink_to_fit();
        SchemaSet {
            nodes: self.nodes,
            roots,
        }
    }
}

fn read_limit(limits: &mut Limits, key: &str, value: &Value, path: &Path<'_>) -> Result<bool, SchemaError> {
    match key {
        "maximum" => limits.maximum = number(value, path)?,
        "minimum" => limits.minimum = number(value, path)?,
        "multipleOf" => limits.multiple_of = number(value, path)?,
        "exclusiveMaximum" => limits.exclusive_maximum = boolean(value, path)?,
        "exclusiveMinimum" => limits.exclusive_minimum = boolean(value, path)?,
        "uniqueItems" => limits.unique_items = boolean(value, path)?,
        "maxLength" => limits.max_length = integer(value, path)?,
        "minLength" => limits.min_length = integer(value, path)?,
        "maxItems" => limits.max_items = integer(value, path)?,
        "minItems" => limits.min_items = integer(value, path)?,
        "maxProperties" => limits.max_properties = integer(value, path)?,
        "minProperties" => limits.min_properties = integer(value, path)?,
        "pattern" => {
            let source = string(value, path)?;
            limits.pattern = (!source.is_empty()).then(|| compile(source));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_plain(node: &mut Node, key: &str, value: &Value, path: &Path<'_>) -> Result<(), SchemaError> {
    match key {
        "type" => {
            let name = string(value, path)?;
            // Admission refuses other names; until then they restrict nothing.
            node.types = Types::named(name).unwrap_or_default();
        }
        "nullable" => node.nullable = boolean(value, path)?,
        "required" => node.required = strings(value, path)?,
        "enum" => node.enumeration = array(value, path)?.clone(),
        "default" => node.default = (!value.is_null()).then(|| Box::new(value.clone())),
        "format" => {
            let format = string(value, path)?;
            node.known_format = Format::known(format);
            node.format = (!format.is_empty()).then(|| Box::from(format));
        }
        "x-kubernetes-preserve-unknown-fields" => node.preserve_unknown = boolean(value, path)?,
        "x-kubernetes-int-or-string" => node.int_or_string = boolean(value, path)?,
        "x-kubernetes-embedded-resource" => node.embedded_resource = boolean(value, path)?,
        "x-kubernetes-list-type" => {
            node.list_type = match string(value, path)? {
                "map" => Some(ListType::Map),
                "set" => Some(ListType::Set),
                "" => None,
                _ => Some(ListType::Atomic),
            };
        }
        "x-kubernetes-map-type" => {
            node.map_type = match string(value, path)? {
                "atomic" => Some(MapType::Atomic),
                "" => None,
                _ => Some(MapType::Granular),
            };
        }
        "x-kubernetes-list-map-keys" => node.list_map_keys = strings(value, path)?,
        "x-kubernetes-patch-merge-key" => node.patch_merge_key = Some(Box::from(string(value, path)?)),
        "x-kubernetes-patch-strategy" => node.patch_strategy = Some(Box::from(string(value, path)?)),
        "x-kubernetes-validations" => {
            for (index, rule) in array(value, path)?.iter().enumerate() {
                let rule =
                    Rule::from_json(rule).map_err(|problem| malformed(&path.index(index), &problem))?;
                node.rules.push(rule);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The name that a schema refers to, if it is nothing but a reference: `$ref`, or `allOf` with one `$ref`.
fn reference(fields: &Map<String, Value>) -> Option<&str> {
    let target = match fields.get("$ref") {
        Some(target) => target.as_str()?,
        None => match fields.get("allOf")?.as_array()?.as_slice() {
            [only] if !fields.contains_key("properties") && !fields.contains_key("type") => {
                only.get("$ref")?.as_str()?
            }
            _ => return None,
        },
    };
    Some(target.strip_prefix(REF_PREFIX).unwrap_or(target))
}

/// What a field says beside the reference to its schema.
#[derive(Default)]
struct Overlay {
    map_type: Option<MapType>,
    patch_merge_key: Option<Box<str>>,
    patch_strategy: Option<Box<str>>,
}

impl Overlay {
    fn of(fields: &Map<String, Value>) -> Self {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        Self {
            map_type: text("x-kubernetes-map-type").map(|name| match name {
                "atomic" => MapType::Atomic,
                _ => MapType::Granular,
            }),
            patch_merge_key: text("x-kubernetes-patch-merge-key").map(Box::from),
            patch_strategy: text("x-kubernetes-patch-strategy").map(Box::from),
        }
    }

    fn is_empty(&self) -> bool {
        self.map_type.is_none() && self.patch_merge_key.is_none() && self.patch_strategy.is_none()
    }
}

fn compile(source: &str) -> Pattern {
    // In the server's dialect \d, \s and \w know ASCII only, while letters and dots are whole characters.
    let compiled = RegexBuilder::new(&crate::validate::translate_pattern(source))
        .size_limit(MAX_PATTERN_SIZE)
        .build()
        .map_err(|error| Box::from(crate::validate::describe_pattern_error(source, &error)));
    Pattern {
        source: Box::from(source),
        compiled,
    }
}

fn malformed(path: &Path<'_>, problem: &str) -> SchemaError {
    SchemaError::Malformed {
        path: path.to_field().to_string(),
        problem: problem.to_owned(),
    }
}

fn object<'v>(value: &'v Value, path: &Path<'_>) -> Result<&'v Map<String, Value>, SchemaError> {
    value
        .as_object()
        .ok_or_else(|| malformed(path, "must be an object"))
}

fn array<'v>(value: &'v Value, path: &Path<'_>) -> Result<&'v Vec<Value>, SchemaError> {
    static EMPTY: Vec<Value> = Vec::new();
    match value {
        Value::Array(list) => Ok(list),
        Value::Null => Ok(&EMPTY),
        _ => Err(malformed(path, "must be an array")),
    }
}

fn string<'v>(value: &'v Value, path: &Path<'_>) -> Result<&'v str, SchemaError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(""),
        _ => Err(malformed(path, "must be a string")),
    }
}

fn strings(value: &Value, path: &Path<'_>) -> Result<Vec<Box<str>>, SchemaError> {
    array(value, path)?
        .iter()
        .map(|item| string(item, path).map(Box::from))
        .collect()
}

fn boolean(value: &Value, path: &Path<'_>) -> Result<bool, SchemaError> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::Null => Ok(false),
        _ => Err(malformed(path, "must be a boolean")),
    }
}

fn number(value: &Value, path: &Path<'_>) -> Result<Option<f64>, SchemaError> {
    match value {
        Value::Number(number) => Ok(number.as_f64()),
        Value::Null => Ok(None),
        _ => Err(malformed(path, "must be a number")),
    }
}

fn integer(value: &Value, path: &Path<'_>) -> Result<Option<i64>, SchemaError> {
    match value {
        Value::Null => Ok(None),
        value => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| malformed(path, "must be an integer")),
    }
}
