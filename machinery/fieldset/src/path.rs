//! The name of a field inside an object.

use std::cmp::Ordering;
use std::fmt;

use machinery_value::Value;

use crate::{go, value};

/// One step of a [`Path`].
///
/// Elements have an order: fields by name, then keys, then values, then indices.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object.
    Field(Box<str>),
    /// The element of a list whose key fields have these values; sorted by field.
    Key(Box<[(Box<str>, Value)]>),
    /// The element of a set with this value.
    Value(Value),
    /// The element of a list at this place.
    Index(i64),
}

impl PathElement {
    /// The field `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The element with these key fields, in any order.
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut fields: Vec<(Box<str>, Value)> = fields
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => a
                .iter()
                .zip(b.iter())
                .map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::order(&a.1, &b.1)))
                .find(|found| found.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Self::Value(a), Self::Value(b)) => value::order(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go::number(number),
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| format!("{key}={}", shown(value)))
            .collect(),
    }
}

/// A field, from the root of its object: `.spec.containers[name="c"].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of fields, such as `["metadata", "name"]`.
    pub fn of_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| PathElement::field(name)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_read_as_in_conflicts() {
        let path = Path(vec![
            PathElement::field("spec"),
            PathElement::key([("protocol", json!("TCP")), ("containerPort", json!(80))]),
            PathElement::Value(json!("a\"b")),
            PathElement::Index(3),
        ]);
        assert_eq!(
            path.to_string(),
            r#".spec[containerPort=80,protocol="TCP"][="a\"b"][3]"#
        );
    }

    #[test]
    fn elements_have_an_order() {
        let ascending = [
            PathElement::field("a"),
            PathElement::field("b"),
            PathElement::key([("name", json!("a"))]),
            PathElement::key([("name", json!("a")), ("port", json!(80))]),
            PathElement::key([("name", json!("a")), ("port", json!(443))]),
            PathElement::key([("name", json!("b"))]),
            PathElement::Value(json!(1)),
            PathElement::Value(json!("x")),
            PathElement::Index(0),
            PathElement::Index(1),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{a} and {b}");
            }
        }
    }
}
