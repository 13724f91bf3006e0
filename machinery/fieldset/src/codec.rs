//! `FieldsV1`: a set of fields as JSON.
//!
//! Every field is a key, `f:name`, `k:{"name":"c"}`, `v:"value"` or `i:0`, and what is below it is its value. A field
//! with nothing below it is in the set; one with something below it is only if that says `"."`.

use machinery_value::{Map, Value};
use thiserror::Error;

use crate::go;
use crate::path::PathElement;
use crate::set::FieldSet;

/// Deeper sets are refused: with the list around them, they would make an object too deep to be read.
pub const MAX_DEPTH: usize = 110;

/// Why a `FieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// What stands for fields is not an object.
    #[error("expected an object of fields")]
    NotAnObject,
    /// A key that does not start with a letter and a colon.
    #[error("missing colon: {0}")]
    Prefix(String),
    /// A key whose content is not what its letter promises.
    #[error("malformed path element: {0}")]
    Content(String),
    /// Fields deeper than [`MAX_DEPTH`].
    #[error("fields nest too deeply")]
    TooDeep,
}

/// The JSON form of a set.
pub fn encode(set: &FieldSet) -> Value {
    Value::Object(encode_nodes(set, false))
}

fn encode_nodes(set: &FieldSet, with_self: bool) -> Map<String, Value> {
    let own = with_self.then(|| (".".to_owned(), Value::Object(Map::new())));
    let nodes = set.nodes().iter().map(|node| {
        let below = encode_nodes(&node.below, node.member && !node.below.is_empty());
        (encode_element(&node.element), Value::Object(below))
    });
    own.into_iter().chain(nodes).collect()
}

/// An element as a key: `f:spec`, `k:{"name":"c"}`.
pub fn encode_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Key(fields) => {
            let mut text = String::from("k:{");
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_text(&mut text, name, Value::to_string);
                text.push(':');
                push_json(&mut text, value);
            }
            text.push('}');
            text
        }
        PathElement::Value(value) => {
            let mut text = String::from("v:");
            push_json(&mut text, value);
            text
        }
        PathElement::Index(index) => format!("i:{index}"),
    }
}

/// Nearly all names are plain text, which needs no escaping.
fn push_text(out: &mut String, text: &str, escaped: fn(&Value) -> String) {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&escaped(&Value::from(text)));
    }
}

fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_text(out, text, go::json),
        value => out.push_str(&go::json(value)),
    }
}

/// Reads the JSON form of a set. Null is the empty set.
pub fn decode(fields: &Value) -> Result<FieldSet, CodecError> {
    Ok(decode_nodes(fields, 0)?.1)
}

/// What is below a field, and whether the field itself is in the set.
fn decode_nodes(fields: &Value, depth: usize) -> Result<(bool, FieldSet), CodecError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((true, FieldSet::new())),
        _ => return Err(CodecError::NotAnObject),
    };
    if depth > MAX_DEPTH {
        return Err(CodecError::TooDeep);
    }
    let mut member = false;
    let mut set = FieldSet::with_capacity(map.len());
    for (key, value) in map {
        if key == "." {
            member = true;
        } else if let Some(element) = decode_element(key)? {
            let (member, below) = decode_nodes(value, depth + 1)?;
            set.push(element, member, below);
        }
    }
    Ok((member || set.is_empty(), set))
}

/// Reads a key. A letter that is not known may be one of a later time, and means nothing.
pub fn decode_element(key: &str) -> Result<Option<PathElement>, CodecError> {
    let bad = || CodecError::Content(key.to_owned());
    let mut letters = key.chars();
    let (Some(letter), Some(':')) = (letters.next(), letters.next()) else {
        return Err(CodecError::Prefix(key.to_owned()));
    };
    let content = letters.as_str();
    Ok(Some(match letter {
        'f' => PathElement::field(content),
        'v' => PathElement::Value(serde_json::from_str(content).map_err(|_| bad())?),
        'k' => {
            let fields: Map<String, Value> = serde_json::from_str(content).map_err(|_| bad())?;
            PathElement::key(fields.iter().map(|(name, value)| (name.as_str(), value.clone())))
        }
        'i' => PathElement::Index(content.parse().map_err(|_| bad())?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::path::Path;

    #[test]
    fn sets_are_written_as_fields() {
        let mut set = FieldSet::of_fields(&[&["a"], &["b", "c"], &["b"], &["d", "e"]]);
        let list = PathElement::field("l");
        for element in [
            PathElement::key([("name", json!("<x>")), ("port", json!(80))]),
            PathElement::Value(json!("a\"b")),
            PathElement::Value(json!(1.5)),
            PathElement::Index(2),
        ] {
            set.insert(&Path(vec![list.clone(), element]));
        }
        let fields = json!({
            "f:a": {},
            "f:b": {".": {}, "f:c": {}},
            "f:d": {"f:e": {}},
            "f:l": {
                "k:{\"name\":\"\\u003cx\\u003e\",\"port\":80}": {},
                "v:\"a\\\"b\"": {},
                "v:1.5": {},
                "i:2": {},
            },
        });
        assert_eq!(encode(&set), fields);
        assert_eq!(decode(&fields), Ok(set));
    }

    #[test]
    fn odd_forms_are_read() {
        let cases = [
            (json!(null), vec![]),
            (json!({}), vec![]),
            (json!({".": {}}), vec![]),
            (json!({"f:a": null}), vec![".a"]),
            (json!({"f:a": {".": 1}}), vec![".a"]),
            (json!({"f:a": {"q:later": {}}}), vec![".a"]),
            (json!({"q:later": 1, "f:": {}}), vec!["."]),
            (json!({"f:a": {"k:{\"b\":2,\"a\":1}": {}}}), vec![".a[a=1,b=2]"]),
        ];
        for (fields, expected) in cases {
            let set = decode(&fields).unwrap();
            let paths: Vec<String> = set.paths().iter().map(Path::to_string).collect();
            assert_eq!(paths, expected, "{fields}");
        }
    }

    #[test]
    fn malformed_forms_are_refused() {
        for fields in [
            json!([]),
            json!("f:a"),
            json!({"f:a": 1}),
            json!({"f:a": []}),
            json!({"": {}}),
            json!({"f": {}}),
            json!({"fa": {}}),
            json!({"é": {}}),
            json!({"v:": {}}),
            json!({"v:1 2": {}}),
            json!({"k:[]": {}}),
            json!({"k:{": {}}),
            json!({"i:x": {}}),
            json!({"i:99999999999999999999": {}}),
        ] {
            assert!(decode(&fields).is_err(), "{fields}");
        }
        let mut deep = json!({});
        for _ in 0..=MAX_DEPTH {
            deep = json!({"f:a": deep});
        }
        assert_eq!(decode(&deep["f:a"]).map(|set| set.depth()), Ok(MAX_DEPTH));
        assert_eq!(decode(&deep), Err(CodecError::TooDeep));
    }

    fn any_element() -> impl Strategy<Value = PathElement> {
        let scalar = prop_oneof![
            ".*".prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
        ];
        prop_oneof![
            ".*".prop_map(|name| PathElement::field(&name)),
            prop::collection::btree_map(".*", scalar.clone(), 1..3).prop_map(|fields| PathElement::key(
                fields.iter().map(|(name, value)| (name.as_str(), value.clone()))
            )),
            scalar.prop_map(PathElement::Value),
            any::<i64>().prop_map(PathElement::Index),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(paths in prop::collection::vec(prop::collection::vec(any_element(), 1..4), 0..6)) {
            let mut set = FieldSet::new();
            for path in paths {
                set.insert(&Path(path));
            }
            prop_assert_eq!(decode(&encode(&set)), Ok(set));
        }

        #[test]
        fn no_key_makes_it_panic(key in ".*") {
            let _ = decode_element(&key);
        }
    }
}
