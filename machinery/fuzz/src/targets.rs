//! Everything that reads bytes.

mod fields;
mod schemas;
mod server;
mod store;
mod values;
mod wire;

use std::hash::{DefaultHasher, Hash, Hasher};

use machinery_value::Value;

use crate::{SEPARATOR, Target};

/// All targets, by what they belong to.
pub fn targets() -> Vec<Target> {
    [
        values::TARGETS,
        wire::TARGETS,
        schemas::TARGETS,
        fields::TARGETS,
        store::TARGETS,
        server::TARGETS,
    ]
    .concat()
}

/// The outcome of what is described so. Numbers and quoted texts, which are mostly the input's own, do not count.
fn way(description: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut quoted = false;
    for c in description.chars() {
        match c {
            '"' | '\'' | '`' => quoted = !quoted,
            _ if quoted || c.is_ascii_digit() => {}
            _ => c.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The outcome of a value: its shape, without what its scalars say.
fn shape(value: &Value) -> u64 {
    fn walk(value: &Value, depth: usize, hasher: &mut DefaultHasher) {
        std::mem::discriminant(value).hash(hasher);
        match value {
            Value::Object(map) if depth < 4 => {
                for (key, inside) in map.iter().take(8) {
                    key.len().min(8).hash(hasher);
                    walk(inside, depth + 1, hasher);
                }
            }
            Value::Array(list) if depth < 4 => list
                .iter()
                .take(3)
                .for_each(|inside| walk(inside, depth + 1, hasher)),
            _ => {}
        }
    }
    let mut hasher = DefaultHasher::new();
    walk(value, 0, &mut hasher);
    hasher.finish()
}

/// The documents of an input, as text; invalid UTF-8 is replaced.
fn parts(input: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(input)
        .split(SEPARATOR)
        .map(str::to_owned)
        .collect()
}

/// The documents of an input as JSON; what is no JSON is a string.
fn documents(input: &[u8]) -> Vec<Value> {
    parts(input)
        .iter()
        .map(|part| match machinery_value::decode::from_json(part.as_bytes()) {
            Ok(decoded) => decoded.value,
            Err(_) => Value::String(part.clone()),
        })
        .collect()
}

/// The n-th document, null if there are fewer.
fn nth(documents: &[Value], n: usize) -> Value {
    documents.get(n).cloned().unwrap_or_default()
}

/// Inputs from texts.
fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// One object of most kinds.
fn objects() -> Vec<Value> {
    let bases: Value =
        serde_json::from_str(include_str!("../../kinds/tests/golden/bases.json")).unwrap_or_default();
    let bases = bases.as_object().into_iter().flat_map(|bases| bases.values());
    bases.map(|base| base["object"].clone()).collect()
}

/// Says which property does not hold.
fn hold(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
