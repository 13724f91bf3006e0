//! Maps of a scenario file, read key by key: what is left over at the end is refused.

use serde_json::{Map, Value};

use super::Mistake;
use crate::yaml::{Content, Node};

/// A map that is being read.
pub(super) struct Fields {
    line: usize,
    what: &'static str,
    left: Vec<(String, Node)>,
    /// The keys that were asked for: what may stand here.
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn of(node: &Node, what: &'static str) -> Result<Self, Mistake> {
        Ok(Self {
            line: node.line,
            what,
            left: entries(node)
                .map_err(|_| Mistake::new(node.line, format!("{what} is a map")))?
                .to_vec(),
            known: Vec::new(),
        })
    }

    /// The same, and nothing at all is an empty map.
    pub(super) fn of_maybe_empty(node: &Node, what: &'static str) -> Result<Self, Mistake> {
        if node.value().is_null() {
            return Ok(Self {
                line: node.line,
                what,
                left: Vec::new(),
                known: Vec::new(),
            });
        }
        Self::of(node, what)
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        let position = self.left.iter().position(|(name, _)| name == key)?;
        Some(self.left.remove(position).1)
    }

    /// The first of these keys that is there; more than one, or none, is a mistake.
    pub(super) fn one_of(&mut self, keys: &'static [&'static str]) -> Result<(&'static str, Node), Mistake> {
        let mut found = None;
        for key in keys {
            if let Some(node) = self.take(key) {
                if let Some((other, _)) = &found {
                    let what = format!("{} is either {other} or {key}, not both", self.what);
                    return Err(Mistake::new(node.line, what));
                }
                found = Some((*key, node));
            }
        }
        match found {
            Some(found) => Ok(found),
            None => Err(match self.left.first() {
                Some((key, node)) => unknown(key, keys, node.line, self.what),
                None => Mistake::new(self.line, format!("{} is one of {}", self.what, keys.join(", "))),
            }),
        }
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<Node, Mistake> {
        self.take(key).ok_or_else(|| match self.left.first() {
            // Most likely it is there and misspelled.
            Some((other, node)) if is_near(other, key) => unknown(other, &[key], node.line, self.what),
            _ => Mistake::new(self.line, format!("{} has no `{key}`", self.what)),
        })
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<String, Mistake> {
        let node = self.required(key)?;
        text(&node)
    }

    pub(super) fn optional_text(&mut self, key: &'static str) -> Result<Option<String>, Mistake> {
        self.take(key).map(|node| text(&node)).transpose()
    }

    /// A map of texts.
    pub(super) fn texts(&mut self, key: &'static str) -> Result<Map<String, Value>, Mistake> {
        let Some(node) = self.take(key) else {
            return Ok(Map::new());
        };
        entries(&node)?
            .iter()
            .map(|(key, node)| Ok((key.clone(), Value::String(text(node)?))))
            .collect()
    }

    /// Refuses what is left.
    pub(super) fn end(&self) -> Result<(), Mistake> {
        match self.left.first() {
            Some((key, node)) => Err(unknown(key, &self.known, node.line, self.what)),
            None => Ok(()),
        }
    }
}

/// A key that means nothing here, with the nearest one that does.
fn unknown(key: &str, known: &[&'static str], line: usize, what: &str) -> Mistake {
    let nearest = known
        .iter()
        .min_by_key(|other| strsim::damerau_levenshtein(key, other))
        .filter(|other| is_near(key, other));
    let hint = match nearest {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Mistake::new(line, format!("{what} has no key `{key}`: {hint}"))
}

fn is_near(one: &str, other: &str) -> bool {
    strsim::damerau_levenshtein(one, other) <= 1 + one.len().min(other.len()) / 3
}

/// The entries of a map.
pub(super) fn entries(node: &Node) -> Result<&[(String, Node)], Mistake> {
    match &node.content {
        Content::Map(entries) => Ok(entries),
        _ => Err(Mistake::new(node.line, "this is not a map")),
    }
}

/// The items of a list.
pub(super) fn list(node: &Node) -> Result<&[Node], Mistake> {
    match &node.content {
        Content::List(items) => Ok(items),
        _ => Err(Mistake::new(node.line, "this is not a list")),
    }
}

/// A text; a number or a truth is taken as it is written.
pub(super) fn text(node: &Node) -> Result<String, Mistake> {
    match &node.content {
        Content::Scalar(Value::String(text)) => Ok(text.trim().to_owned()),
        Content::Scalar(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        _ => Err(Mistake::new(node.line, "this is not a text")),
    }
}

/// One text, or a list of them.
pub(super) fn text_list(node: &Node) -> Result<Vec<String>, Mistake> {
    match &node.content {
        Content::List(items) => items.iter().map(text).collect(),
        _ => Ok(vec![text(node)?]),
    }
}

pub(super) fn truth(node: &Node) -> Result<bool, Mistake> {
    node.value()
        .as_bool()
        .ok_or_else(|| Mistake::new(node.line, "this is neither true nor false"))
}
