//! YAML that remembers its lines, so that every complaint about a scenario names one.
//!
//! Only `true` and `false` are truths here: `on` is a key of this format.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// The longest scenario file that is read.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// A piece of YAML and the line on which it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) content: Content,
}

/// What a piece of YAML is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A text, a number, a truth or nothing.
    Scalar(Value),
    List(Vec<Node>),
    /// In the order of the file; a key stands once.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads one document.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("is longer than {MAX_BYTES} bytes"));
        }
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
    }

    /// The same without lines.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Node::value).collect()),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, node)| (key.clone(), node.value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            line: usize::try_from(spanned.referenced.line()).unwrap_or(0),
            content: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(Value::String(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(serde::de::Error::custom(format!("{key:?} stands twice")));
            }
            entries.push((key, access.next_value()?));
        }
        Ok(Content::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_at_every_depth() {
        let node = Node::parse("a: 1\nb:\n- x\n- on: yes\n  off: {p: [1, 2.5, null, true]}\n").unwrap();
        let Content::Map(entries) = &node.content else {
            panic!()
        };
        assert_eq!((entries[0].0.as_str(), entries[0].1.line), ("a", 1));
        let Content::List(items) = &entries[1].1.content else {
            panic!()
        };
        assert_eq!((items[0].line, items[1].line), (3, 4));
        assert_eq!(
            node.value(),
            serde_json::json!({"a": 1, "b": ["x", {"on": "yes", "off": {"p": [1, 2.5, null, true]}}]})
        );
    }

    #[test]
    fn broken_yaml_says_where() {
        let error = Node::parse("a: 1\na: 2\n").unwrap_err();
        assert!(error.contains("twice") || error.contains("duplicate"), "{error}");
        let error = Node::parse("a: [1\nb: 2\n").unwrap_err();
        assert!(error.contains("line"), "{error}");
    }
}
