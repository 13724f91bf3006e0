//! Changes of an input: some to its bytes, some to the JSON documents that it consists of.

use serde_json::{Map, Value, json};

use crate::SEPARATOR;
use crate::random::Random;

/// Larger inputs find nothing that smaller ones do not.
const MAX_INPUT: usize = 16 << 10;

/// Words with a meaning to some target.
const WORDS: &[&str] = &[
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "-0",
    "1e400",
    "9223372036854775808",
    "-9223372036854775808",
    "0.1",
    "\\u0000",
    "\\ud800",
    "$patch",
    "delete",
    "replace",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/a",
    "metadata",
    "name",
    "labels",
    "spec",
    "containers",
    "f:",
    "k:{",
    "v:",
    "i:",
    ".",
    "/",
    "~1",
    "~0",
    "/-",
    "/-1",
    "..",
    "[*]",
    "[?(@.a==\"b\")]",
    "[0:1:-1]",
    "{.",
    "}",
    " in (",
    "notin",
    "!=",
    "!",
    ",",
    "&a",
    "*a",
    "<<: ",
    "!!",
    "|\n",
    "? ",
    "self",
    "oldSelf",
    "object",
    "has(",
    "size(",
    ".all(x, x)",
    ".map(x, [x])",
    "?.",
    "[?",
    "optional.of(",
    "duration(",
    "quantity(",
    "matches('(a+)+')",
    "Mi",
    "e-9",
    "n",
    "\u{feff}",
    "é",
    "\r\n",
    "\t",
    "---",
    "...",
    "#",
    "%",
    "%00",
    "?",
    "&",
    "=",
    "watch=1",
    "limit=1",
    "dryRun=All",
    "apiVersion",
    "kind",
    "x-kubernetes-validations",
    "$ref",
    "k8s\0",
];

/// A changed copy of `input`; `others` lend parts.
pub(crate) fn mutate(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..1 + random.below(4) {
        changed = if random.below(2) == 0 {
            documents(&changed, others, random).unwrap_or_else(|| bytes(&changed, others, random))
        } else {
            bytes(&changed, others, random)
        };
    }
    changed.truncate(MAX_INPUT);
    changed
}

fn bytes(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    let at = random.below(changed.len() + 1);
    let end = at + random.below((changed.len() - at).min(32) + 1);
    match random.below(9) {
        0 if at < changed.len() => changed[at] ^= 1 << random.below(8),
        1 if at < changed.len() => changed[at] = random.next() as u8,
        2 => {
            changed.drain(at..end);
        }
        3 => {
            let part = changed[at..end].to_vec();
            let most = if random.below(20) == 0 { 300 } else { 3 };
            let times = 1 + random.below(most);
            changed.splice(at..at, part.repeat(times));
        }
        4 | 5 => {
            let word = random.pick(WORDS).bytes();
            changed.splice(at..if random.below(2) == 0 { at } else { end }, word);
        }
        6 => {
            let number = random.next() >> random.below(64);
            changed.splice(at..end, number.to_string().into_bytes());
        }
        7 => changed.truncate(at),
        _ => {
            let other = random.pick(others);
            let from = random.below(other.len() + 1);
            let to = from + random.below(other.len() - from + 1);
            changed.splice(at..end, other[from..to].iter().copied());
        }
    }
    changed
}

/// Changes one JSON document of the input; none if there is none.
fn documents(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(input).ok()?;
    let mut parts: Vec<String> = text.split(SEPARATOR).map(str::to_owned).collect();
    let place = random.below(parts.len());
    let mut value: Value = serde_json::from_str(&parts[place]).ok()?;
    let lent = std::str::from_utf8(&others[random.below(others.len())])
        .ok()
        .and_then(|text| text.split(SEPARATOR).last())
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    change(&mut value, &lent, random);
    parts[place] = value.to_string();
    Some(parts.join(SEPARATOR).into_bytes())
}

/// Walks down by chance and changes what is there.
fn change(value: &mut Value, lent: &Value, random: &mut Random) {
    if random.below(4) > 0 {
        let inside = match value {
            Value::Object(map) if !map.is_empty() => {
                let place = random.below(map.len());
                map.values_mut().nth(place)
            }
            Value::Array(list) if !list.is_empty() => {
                let place = random.below(list.len());
                list.get_mut(place)
            }
            _ => None,
        };
        if let Some(inside) = inside {
            return change(inside, lent, random);
        }
    }
    let whole = value.take();
    *value = match (random.below(8), whole) {
        (0, whole) => json!([whole]),
        (1, whole) => json!({ *random.pick(WORDS): whole }),
        (2, _) => lent.clone(),
        (3, Value::Object(map)) => {
            let gone = random.below(map.len());
            Value::Object(
                map.into_iter()
                    .enumerate()
                    .filter(|(n, _)| *n != gone)
                    .map(|(_, pair)| pair)
                    .collect(),
            )
        }
        (3, Value::Array(mut list)) => {
            list.extend(list.get(random.below(list.len())).cloned());
            Value::Array(list)
        }
        (4, Value::Object(map)) => rename(map, random),
        (5, Value::Object(mut map)) => {
            map.insert((*random.pick(WORDS)).to_owned(), odd(random));
            Value::Object(map)
        }
        (6, Value::Array(mut list)) => {
            list.reverse();
            Value::Array(list)
        }
        (6, Value::String(text)) => Value::String(
            String::from_utf8_lossy(&bytes(text.as_bytes(), &[Vec::new()], random)).into_owned(),
        ),
        _ => odd(random),
    };
}

fn rename(map: Map<String, Value>, random: &mut Random) -> Value {
    let renamed = random.below(map.len());
    let word = *random.pick(WORDS);
    let pairs = map.into_iter().enumerate();
    Value::Object(
        pairs
            .map(|(n, (key, value))| (if n == renamed { word.to_owned() } else { key }, value))
            .collect(),
    )
}

fn odd(random: &mut Random) -> Value {
    match random.below(11) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.next() as i64),
        3 => json!(random.below(100)),
        4 => json!(-1),
        5 => json!(u64::MAX),
        6 => json!(0.5),
        7 => json!([]),
        8 => json!({}),
        9 => json!(""),
        _ => json!(*random.pick(WORDS)),
    }
}
