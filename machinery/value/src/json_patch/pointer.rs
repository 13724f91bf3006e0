//! A path of a JSON patch, and what can be done at the place it names.

use serde_json::Value;

/// A path: the place of a value in its container, and the way to the container.
pub(super) struct Pointer<'a> {
    text: &'a str,
    /// The decoded parts, at least one; none at all if the text has no slash.
    parts: Vec<String>,
}

impl<'a> Pointer<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        // What precedes the first slash does not count.
        let parts = text.split('/').skip(1).map(unescape).collect();
        Self { text, parts }
    }

    /// Whether this is the whole document.
    pub(super) fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// How many containers are around the value.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The value there; none if the container is an object without that key, or if the value is null.
    pub(super) fn get<'v>(&self, doc: &'v Value) -> Result<Option<&'v Value>, String> {
        let Some((key, way)) = self.parts.split_last() else {
            return Err(self.missing());
        };
        let mut container = doc;
        for part in way {
            container = child(container, part)
                .ok()
                .flatten()
                .ok_or_else(|| self.missing())?;
        }
        child(container, key)
    }

    /// Puts `value` there: into an object under its key, into a list before the element with that index.
    pub(super) fn add(&self, doc: &mut Value, value: Value) -> Result<(), String> {
        match self.container(doc)? {
            (Value::Object(map), key) => {
                map.insert(key.to_owned(), value);
            }
            (Value::Array(items), "-") => items.push(value),
            (Value::Array(items), key) => {
                let index = index(key, items.len() + 1)?;
                items.insert(index, value);
            }
            _ => return Err(self.missing()),
        }
        Ok(())
    }

    /// Sets the value there; an element of a list must exist, a key of an object need not.
    pub(super) fn replace(&self, doc: &mut Value, value: Value) -> Result<(), String> {
        match self.container(doc)? {
            (Value::Object(map), key) => {
                map.insert(key.to_owned(), value);
            }
            (Value::Array(items), key) => {
                let index = index(key, items.len())?;
                items[index] = value;
            }
            _ => return Err(self.missing()),
        }
        Ok(())
    }

    /// Takes away what is there, which must exist.
    pub(super) fn remove(&self, doc: &mut Value) -> Result<Value, String> {
        match self.container(doc)? {
            (Value::Object(map), key) => map
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            (Value::Array(items), key) => {
                let index = index(key, items.len())?;
                Ok(items.remove(index))
            }
            _ => Err(self.missing()),
        }
    }

    /// Checks that the value there is `expected`; null and nothing are the same.
    pub(super) fn test(&self, doc: &Value, expected: &Value) -> Result<(), String> {
        let found = if self.is_root() { Some(doc) } else { self.get(doc)? };
        if found.unwrap_or(&Value::Null) == expected {
            Ok(())
        } else {
            Err(format!("testing value {} failed: test failed", self.text))
        }
    }

    fn container<'v>(&self, doc: &'v mut Value) -> Result<(&'v mut Value, &str), String> {
        let Some((key, way)) = self.parts.split_last() else {
            return Err(self.missing());
        };
        let mut container = doc;
        for part in way {
            container = match container {
                Value::Object(map) => map.get_mut(part),
                Value::Array(items) => index(part, items.len())
                    .ok()
                    .and_then(|index| items.get_mut(index)),
                _ => None,
            }
            .ok_or_else(|| self.missing())?;
        }
        Ok((container, key))
    }

    fn missing(&self) -> String {
        format!("doc is missing path: \"{}\": missing value", self.text)
    }
}

fn child<'v>(container: &'v Value, key: &str) -> Result<Option<&'v Value>, String> {
    let found = match container {
        Value::Object(map) => map.get(key),
        Value::Array(items) => items.get(index(key, items.len())?),
        _ => return Err(format!("there is no {key} in a value that is not a container")),
    };
    Ok(found.filter(|value| !value.is_null()))
}

/// The index that `key` names among `len` places; negative ones count from the end.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let index: i64 = key
        .parse()
        .map_err(|_| format!("value was not a proper array index: '{key}'"))?;
    let place = if index < 0 {
        index.saturating_add_unsigned(len as u64)
    } else {
        index
    };
    match usize::try_from(place) {
        Ok(place) if place < len => Ok(place),
        _ => Err(format!(
            "Unable to access invalid index: {index}: invalid index referenced"
        )),
    }
}

fn unescape(part: &str) -> String {
    if !part.contains('~') {
        return part.to_owned();
    }
    let mut text = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        text.push_str(before);
        rest = match after.as_bytes().first() {
            Some(b'0') => {
                text.push('~');
                &after[1..]
            }
            Some(b'1') => {
                text.push('/');
                &after[1..]
            }
            _ => {
                text.push('~');
                after
            }
        };
    }
    text.push_str(rest);
    text
}
