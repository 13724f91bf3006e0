//! A whole object compared with a template, and what it would become.

use serde_json::{Map, Value};

use super::compare::{Match, Mode, compare_field};
use super::rules::{Compliance, Template};
use crate::object;

/// Where kubectl keeps what was applied; no template speaks of it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Annotations of namespaces that another system writes.
const SCC_PREFIX: &str = "openshift.io/sa.scc.";

/// An object compared with a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What was found in the fields that can be changed.
    pub found: Match,
    /// Whether the status is another, which nobody can change.
    pub status_differs: bool,
    /// What the object would be sent as.
    pub merged: Value,
}

/// Compares an object with a template. An error says which field cannot be compared.
pub fn compare(template: &Template, live: &Value, mode: Mode) -> Result<Compared, String> {
    let compliance = match template.compliance {
        // What must not be is looked for like what must be.
        Compliance::MustNotHave => Compliance::MustHave,
        other => other,
    };
    let metadata = match (mode, template.metadata) {
        (Mode::Lenient, _) | (_, Compliance::MustNotHave) => compliance,
        (Mode::Strict, other) => other,
    };
    let mut compared = Compared {
        found: Match {
            matches: true,
            loose: false,
        },
        status_differs: false,
        merged: live.clone(),
    };
    let fields = template.object.as_object().into_iter().flatten();
    for (key, wanted) in fields {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => compare_metadata(&mut compared, wanted, live, metadata, mode)?,
            "status" => {
                let field = field(key, wanted, &live[key], compliance, mode)?;
                compared.status_differs = !field.found.matches;
            }
            "stringData" if is_kind(live, "Secret") => {
                let texts = decoded(template, &live["data"], compliance);
                let field = field(key, wanted, &texts, compliance, mode)?;
                compared.found = compared.found.and(field.found);
                // It is sent with whatever else is: the server writes it over the data.
                put(&mut compared.merged, key, field.merged);
            }
            "data" if is_kind(live, "Secret") && template.object["stringData"].is_object() => {
                // What texts are made into is looked at with them.
                let [wanted, live] = [wanted, &live[key]].map(|data| apart_from_texts(template, data));
                let field = field(key, &wanted, &live, compliance, mode)?;
                compared.found = compared.found.and(field.found);
                put(&mut compared.merged, key, field.merged);
            }
            _ => {
                let field = field(
                    key,
                    wanted,
                    live.get(key).unwrap_or(&Value::Null),
                    compliance,
                    mode,
                )?;
                compared.found = compared.found.and(field.found);
                put(&mut compared.merged, key, field.merged);
            }
        }
    }
    if compliance == Compliance::MustOnlyHave && mode == Mode::Strict {
        remove_rest(&mut compared, template, live);
    }
    Ok(compared)
}

fn field(
    key: &str,
    wanted: &Value,
    live: &Value,
    compliance: Compliance,
    mode: Mode,
) -> Result<super::compare::Field, String> {
    compare_field(wanted, live, compliance, mode)
        .map_err(|error| format!("Error merging changes into {key}: {error}"))
}

fn is_kind(object: &Value, kind: &str) -> bool {
    object::text(object, "kind") == kind
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// Labels and annotations, as far as the template speaks of them.
fn compare_metadata(
    compared: &mut Compared,
    wanted: &Value,
    live: &Value,
    compliance: Compliance,
    mode: Mode,
) -> Result<(), String> {
    for part in ["labels", "annotations"] {
        let Some(wanted) = wanted[part].as_object() else {
            continue;
        };
        let empty = Map::new();
        let present = live["metadata"][part].as_object().unwrap_or(&empty);
        let (aside, present): (Map<_, _>, Map<_, _>) = present
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .partition(|(key, _)| part == "annotations" && is_aside(live, key) && !wanted.contains_key(key));
        let wanted = Value::Object(wanted.clone());
        let found = field(
            &format!("metadata.{part}"),
            &wanted,
            &Value::Object(present),
            compliance,
            mode,
        )?;
        compared.found = compared.found.and(found.found);
        if let Value::Object(mut merged) = found.merged {
            merged.extend(aside);
            put(&mut compared.merged["metadata"], part, Value::Object(merged));
        }
    }
    Ok(())
}

/// Whether an annotation belongs to somebody else, whatever the template says.
fn is_aside(live: &Value, key: &str) -> bool {
    key == LAST_APPLIED || (is_kind(live, "Namespace") && key.starts_with(SCC_PREFIX))
}

/// Takes away the fields that the template does not have.
fn remove_rest(compared: &mut Compared, template: &Template, live: &Value) {
    let Some(live_fields) = live.as_object() else {
        return;
    };
    for key in live_fields.keys() {
        let stays = template.object.get(key).is_some()
            || matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status")
            || (is_kind(live, "ServiceAccount") && matches!(key.as_str(), "secrets" | "imagePullSecrets"));
        if !stays {
            // The data of a Secret was compared as the texts that it is made from.
            let is_texts =
                is_kind(live, "Secret") && key == "data" && template.object.get("stringData").is_some();
            compared.found.matches &= is_texts;
            if let Some(merged) = compared.merged.as_object_mut() {
                merged.remove(key);
            }
        }
    }
}

/// The texts behind the data of a Secret: of the keys that are asked for, or of all that must not be there otherwise.
fn decoded(template: &Template, data: &Value, compliance: Compliance) -> Value {
    let names = |field: &str, key: &str| template.object[field].get(key).is_some();
    let data = data.as_object().into_iter().flatten();
    let texts = data
        .filter(|(key, _)| {
            names("stringData", key) || (compliance == Compliance::MustOnlyHave && !names("data", key))
        })
        .map(|(key, value)| {
            // What is no text is nothing that a template could ask for, and is there all the same.
            let text = value.as_str().and_then(decode_base64);
            (key.clone(), text.map_or(Value::Null, Value::String))
        });
    Value::Object(texts.collect())
}

/// The data of a Secret without what the template has as texts.
fn apart_from_texts(template: &Template, data: &Value) -> Value {
    let data = data.as_object().into_iter().flatten();
    let rest = data.filter(|(key, _)| template.object["stringData"].get(key).is_none());
    Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// The text behind base64; `None` if it is none.
fn decode_base64(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
    {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether what a server answers is what was there: versions and bookkeeping aside.
pub fn is_same(answer: &Value, live: &Value) -> bool {
    stripped(answer) == stripped(live)
}

fn stripped(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "generation", "resourceVersion"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    value
}
