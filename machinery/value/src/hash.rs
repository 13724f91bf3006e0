//! A hash of a value that depends on what it says and not on how it was written.
//!
//! Two values hash alike if they have the same keys and values, whatever the order of keys, and if their numbers
//! are equal: `1` and `1.0` are the same. Every part is preceded by its kind and its length, so that no two
//! different values share an encoding. The encoding is not stored anywhere, but hashes are: it must not change.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Number, Value};
use thiserror::Error;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const STRING: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// The hash of a value; shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueHash([u8; 32]);

impl ValueHash {
    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for ValueHash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueHash({self})")
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a hash has 64 hexadecimal digits")]
pub struct BadHash;

impl FromStr for ValueHash {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Self, BadHash> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| BadHash)
    }
}

/// The hash of `value`.
pub fn canonical_hash(value: &Value) -> ValueHash {
    let mut hasher = blake3::Hasher::new();
    feed(&mut hasher, value);
    ValueHash(*hasher.finalize().as_bytes())
}

fn feed(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => feed_kind(hasher, NULL),
        Value::Bool(false) => feed_kind(hasher, FALSE),
        Value::Bool(true) => feed_kind(hasher, TRUE),
        Value::Number(number) => feed_number(hasher, number),
        Value::String(text) => {
            feed_kind(hasher, STRING);
            feed_text(hasher, text);
        }
        Value::Array(items) => {
            feed_kind(hasher, ARRAY);
            feed_len(hasher, items.len());
            items.iter().for_each(|item| feed(hasher, item));
        }
        Value::Object(map) => {
            feed_kind(hasher, OBJECT);
            feed_len(hasher, map.len());
            feed_entries(hasher, map);
        }
    }
}

fn feed_entries(hasher: &mut blake3::Hasher, map: &Map<String, Value>) {
    let mut feed_entry = |(key, value): (&String, &Value)| {
        feed_text(hasher, key);
        feed(hasher, value);
    };
    // Maps are sorted unless some crate in the build asks serde_json to keep their order.
    if map.keys().is_sorted() {
        map.iter().for_each(feed_entry);
    } else {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        entries.into_iter().for_each(&mut feed_entry);
    }
}

/// Below this every integer is a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn feed_number(hasher: &mut blake3::Hasher, number: &Number) {
    match (number.as_i128(), number.as_f64()) {
        (Some(integer), _) => feed_integer(hasher, integer),
        // A whole float hashes as the integer that it is written as. A large one is written with as few digits as tell it
        // from its neighbours, and zeros after them.
        (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e38 => {
            let integer = if float.abs() < EXACT {
                float as i128
            } else {
                format!("{float}").parse().unwrap_or(float as i128)
            };
            feed_integer(hasher, integer);
        }
        (None, float) => {
            feed_kind(hasher, FLOAT);
            hasher.update(&float.unwrap_or_default().to_le_bytes());
        }
    }
}

fn feed_integer(hasher: &mut blake3::Hasher, integer: i128) {
    feed_kind(hasher, INTEGER);
    hasher.update(&integer.to_le_bytes());
}

fn feed_kind(hasher: &mut blake3::Hasher, kind: u8) {
    hasher.update(&[kind]);
}

fn feed_len(hasher: &mut blake3::Hasher, len: usize) {
    hasher.update(&(len as u64).to_le_bytes());
}

fn feed_text(hasher: &mut blake3::Hasher, text: &str) {
    feed_len(hasher, text.len());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::decode::tests::any_value;
    use crate::decode::{from_json, to_vec};

    #[test]
    fn writing_does_not_matter_but_content_does() {
        let hash = |text: &str| canonical_hash(&from_json(text.as_bytes()).unwrap().value);
        assert_eq!(hash(r#"{"a":1,"b":2.0}"#), hash(r#" {"b":2, "a":1.0e0}"#));
        let different = [
            "null",
            "false",
            "true",
            "0",
            "\"\"",
            "[]",
            "{}",
            "\"0\"",
            "[null]",
            "[[]]",
            "[[],[]]",
            "0.5",
            "-1",
            r#"["ab"]"#,
            r#"["a","b"]"#,
            r#"{"a":null}"#,
            r#"{"a":{}}"#,
            r#"{"a":"b"}"#,
            r#"["a",["b"]]"#,
            "1e300",
        ];
        for (index, one) in different.iter().enumerate() {
            for other in &different[index + 1..] {
                assert_ne!(hash(one), hash(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn large_floats_hash_as_they_are_written() {
        let read = from_json(b"18446744073709550.5").unwrap().value;
        let again = from_json(&to_vec(&read)).unwrap().value;
        assert_eq!(canonical_hash(&read), canonical_hash(&again));
    }

    #[test]
    fn the_encoding_stays_as_it_is() {
        let value = json!({"kind": "ConfigMap", "data": {"a": "1"}, "n": [1, 2.5, null, true]});
        let shown = canonical_hash(&value).to_string();
        assert_eq!(
            shown,
            "f82218cce27685603eb0fa4bed69d4788c3d3459ef073a80f183edfbd4a7382a"
        );
        assert_eq!(shown.parse(), Ok(canonical_hash(&value)));
        assert_eq!("xyz".parse::<ValueHash>(), Err(BadHash));
    }

    proptest! {
        #[test]
        fn equal_writings_hash_alike(value in any_value()) {
            let again = from_json(&to_vec(&value)).unwrap().value;
            prop_assert_eq!(canonical_hash(&again), canonical_hash(&value));
        }
    }
}
