//! Builds a [`Value`] from any deserializer and notes duplicate keys on the way.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_DUPLICATES};

/// One step of the way to the value being read. The way is a list on the stack, so that a document without
/// duplicates pays nothing for it.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

struct Frame<'a> {
    parent: Option<&'a Frame<'a>>,
    step: Step<'a>,
}

impl Frame<'_> {
    fn write(&self, path: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(path);
        }
        match &self.step {
            Step::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
}

pub(super) struct Seed<'a> {
    parent: Option<&'a Frame<'a>>,
    /// How many containers may still be entered.
    room: usize,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'a> Seed<'a> {
    pub(super) fn root(duplicates: &'a RefCell<Vec<String>>) -> Self {
        Self {
            parent: None,
            room: MAX_DEPTH,
            duplicates,
        }
    }

    /// The seed for what is inside; there must be room for it.
    fn below<'b>(&'b self, frame: &'b Frame<'b>) -> Seed<'b> {
        Seed {
            parent: Some(frame),
            room: self.room - 1,
            duplicates: self.duplicates,
        }
    }

    /// The readers count for themselves; this bound is for what merge keys and aliases build.
    fn check_depth<E: Error>(&self) -> Result<(), E> {
        if self.room > 0 {
            Ok(())
        } else {
            Err(E::custom("exceeded max depth"))
        }
    }

    fn note_duplicate(&self, key: &str) {
        let mut duplicates = self.duplicates.borrow_mut();
        if duplicates.len() >= MAX_DUPLICATES {
            return;
        }
        let mut path = String::new();
        Frame {
            parent: self.parent,
            step: Step::Key(key),
        }
        .write(&mut path);
        if !duplicates.contains(&path) {
            duplicates.push(path);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => Ok(Value::from(value)),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => Ok(Value::from(value)),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => Ok(Value::from(value)),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // serde_json reads the integer -0 as a float; Go reads it as the integer 0.
        if value == 0.0 && value.is_sign_negative() {
            return Ok(Value::from(0));
        }
        match Number::from_f64(value) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(E::custom(format_args!("json: unsupported value: {value}"))),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Value, E> {
        match std::str::from_utf8(value) {
            Ok(text) => Ok(Value::String(text.to_owned())),
            Err(_) => Err(E::custom("binary data is not UTF-8 text")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut items = Vec::new();
        loop {
            let frame = Frame {
                parent: self.parent,
                step: Step::Index(items.len()),
            };
            match access.next_element_seed(self.below(&frame))? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let frame = Frame {
                parent: self.parent,
                step: Step::Key(&key),
            };
            let value = access.next_value_seed(self.below(&frame))?;
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    self.note_duplicate(entry.key());
                    entry.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}
