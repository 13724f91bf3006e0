//! Replaces what must differ between any two servers by placeholders that keep what can be compared.
//!
//! The whole list, with reasons; whatever is not on it is compared as it came:
//!
//! | what | becomes | because |
//! |---|---|---|
//! | uids (any UUID in any text) | `<uid:NAME>` of the object that was seen with it | random; which object is meant still shows |
//! | `metadata.resourceVersion` of an object | `<rv:NAME#n>`, the n-th one seen of that object | each server counts its own writes; whether a write made a new one still shows |
//! | `metadata.resourceVersion` without a uid (lists, bookmarks) | `<rv>` | other writers move it at any time |
//! | resource versions in messages | `<rv>` | as above |
//! | timestamps within an hour of now, or of the recording | `<time>`, `<microtime>` | the servers' clocks; a time that a script wrote itself is far away |
//! | names made from `generateName` | `GENERATENAME<random>` | random; prefix and length still show |
//! | `metadata.continue` | `<continue>`, unless it goes on without a version | holds a resource version, and is opaque |
//! | cells of ages in tables | `<age>` | they are times |
//! | `description` of table columns | left out | prose that nothing acts on |
//! | `clusterIP`, `clusterIPs`, `nodePort`, `healthCheckNodePort`, and their cells in tables | `<ip>`, `<port>` | allocated at random |
//! | the object that an error about a patch quotes | `<object>` | has all of the above in it, in the server's own spelling |
//! | `serverAddress` | `<address>` | each server has its own |
//! | signed tokens (JWT) | `<token>` | each server has its own key |
//! | periodic bookmarks of a watch | left out | sent when a timer says so; the one that ends the initial events stays |
//! | order of what an apply does not fit its schema in | by text | the real server walks a hash map |
//! | order of the conflicts of an apply | by text | as above |
//! | order of `metadata.managedFields` | by operation and manager | it follows their times, which may fall on either side of a second |
//! | `metadata.managedFields` | left out unless the script compares them | ownership has scripts of its own |
//!
//! Not compared at all: headers other than `Content-Type`, `Warning`, `Retry-After`, `Audit-Id` and `Cache-Control` (flow schema
//! uids, dates). An answer of 429 with `Retry-After` is not an answer yet, unless the script expects it: the request is sent again.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::client::Answer;

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What one server was seen to call things, within one script.
#[derive(Debug, Default)]
pub struct Normaliser {
    keep_managed_fields: bool,
    /// When the answers were given; now if it is not said.
    at: Option<Timestamp>,
    /// uid → label.
    uids: BTreeMap<String, String>,
    /// How many uids a name has had.
    incarnations: BTreeMap<String, usize>,
    /// (label of the uid, resource version) → placeholder.
    versions: BTreeMap<(String, String), String>,
    versions_of: BTreeMap<String, usize>,
    /// Names the server made up → placeholder.
    made_up: BTreeMap<String, String>,
    /// The columns of the table that is being read; in a watch only the first event has them.
    columns: Vec<Value>,
}

impl Normaliser {
    /// One for each server and script.
    pub fn new(keep_managed_fields: bool) -> Normaliser {
        Normaliser {
            keep_managed_fields,
            ..Normaliser::default()
        }
    }

    /// One for answers that were given at another time.
    pub fn recorded(keep_managed_fields: bool, at: Timestamp) -> Normaliser {
        Normaliser {
            at: Some(at),
            ..Normaliser::new(keep_managed_fields)
        }
    }

    /// The body of an answer as a value in which only placeholders stand for what must differ.
    pub fn body(&mut self, answer: &Answer) -> Value {
        self.value(parse(answer))
    }

    /// The same for a value that was parsed already.
    pub fn value(&mut self, mut value: Value) -> Value {
        self.columns.clear();
        if let Value::Array(events) = &mut value {
            events.retain(|event| !is_periodic_bookmark(event));
        }
        self.walk(&mut value, "");
        value
    }

    /// The same for a text, such as a warning.
    pub fn text(&self, text: &str) -> String {
        let mut value = text.to_owned();
        self.string(&mut value, "message");
        value
    }

    fn walk(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, key)),
            Value::String(text) => self.string(text, key),
            Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => *value = "<port>".into(),
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            self.metadata(metadata);
        }
        if map.get("kind").is_some_and(|kind| kind == "Table") {
            self.table(map);
        }
        for (key, value) in map.iter_mut() {
            self.walk(value, key);
        }
        if let Some(Value::Array(causes)) = map.get_mut("causes")
            && causes
                .iter()
                .all(|cause| cause["reason"] == "FieldManagerConflict")
        {
            causes.sort_by_cached_key(Value::to_string);
        }
        // Field ownership of owner references has uids in its keys.
        if map.keys().any(|key| key.contains("uid")) {
            let entries = std::mem::take(map).into_iter().map(|(mut key, value)| {
                self.replace_uids(&mut key);
                (key, value)
            });
            *map = entries.collect();
        }
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>) {
        if !self.keep_managed_fields {
            metadata.remove("managedFields");
        } else if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            entries.sort_by_cached_key(|entry| {
                ["operation", "manager", "subresource", "apiVersion"].map(|key| text(entry, key))
            });
        }
        self.generated_name(metadata);
        if let Some(token) = metadata
            .get_mut("continue")
            .filter(|token| *token != "" && !is_anew(token))
        {
            *token = "<continue>".into();
        }
        let name = metadata
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let label = metadata
            .get("uid")
            .and_then(Value::as_str)
            .map(|uid| self.uid_label(uid, &name));
        if let Some(Value::String(version)) = metadata.get_mut("resourceVersion")
            && !version.is_empty()
        {
            *version = match label {
                None => "<rv>".to_owned(),
                Some(label) => self.version_label(&label, version),
            };
        }
    }

    fn uid_label(&mut self, uid: &str, name: &str) -> String {
        if let Some(label) = self.uids.get(uid) {
            return label.clone();
        }
        let name = self.made_up.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let count = self.incarnations.entry(name.clone()).or_default();
        *count += 1;
        let label = if *count == 1 {
            name
        } else {
            format!("{name}~{count}")
        };
        self.uids.insert(uid.to_owned(), label.clone());
        label
    }

    fn version_label(&mut self, object: &str, version: &str) -> String {
        let key = (object.to_owned(), version.to_owned());
        if let Some(label) = self.versions.get(&key) {
            return label.clone();
        }
        let count = self.versions_of.entry(object.to_owned()).or_default();
        *count += 1;
        let label = format!("<rv:{object}#{count}>");
        self.versions.insert(key, label.clone());
        label
    }

    /// A name counts as made up only if it is the prefix (shortened where the whole would be longer than a label may be) and
    /// five more letters; anything else is left to differ.
    fn generated_name(&mut self, metadata: &Map<String, Value>) {
        let text = |key: &str| metadata.get(key).and_then(Value::as_str);
        if let (Some(name), Some(prefix)) = (text("name"), text("generateName"))
            && let Some(start) = name.len().checked_sub(5).and_then(|end| name.get(..end))
            && prefix.starts_with(start)
            && (prefix == start || name.len() == 63)
        {
            self.made_up.insert(name.to_owned(), format!("{start}<random>"));
        }
    }

    fn table(&mut self, table: &mut Map<String, Value>) {
        if let Some(Value::Array(columns)) = table.get_mut("columnDefinitions") {
            for column in columns.iter_mut().filter_map(Value::as_object_mut) {
                column.remove("description");
            }
            self.columns = columns.clone();
        }
        let Some(Value::Array(rows)) = table.get_mut("rows") else {
            return;
        };
        for row in rows {
            let Some(Value::Array(cells)) = row.get_mut("cells") else {
                continue;
            };
            for (cell, column) in cells.iter_mut().zip(&self.columns) {
                let shows_age = column["type"] == "date"
                    || matches!(
                        column["name"].as_str(),
                        Some("Age" | "Last Seen" | "First Seen" | "Duration")
                    );
                let Some(text) = cell.as_str() else { continue };
                if shows_age && is_age(text) {
                    *cell = "<age>".into();
                } else if column["name"] == "Cluster-IP" {
                    *cell = by_key(text, "clusterIP").unwrap_or(text).into();
                } else if column["name"] == "Port(s)" {
                    *cell = without_node_ports(text).into();
                }
            }
        }
    }

    fn string(&self, text: &mut String, key: &str) {
        if let Some(placeholder) = by_key(text, key).or_else(|| by_shape(text, self.at)) {
            *text = placeholder.to_owned();
            return;
        }
        if key == "message" {
            replace_quoted_object(text);
            sort_problems(text);
        }
        for (name, placeholder) in &self.made_up {
            if text.contains(name.as_str()) {
                *text = text.replace(name.as_str(), placeholder);
            }
        }
        self.replace_uids(text);
        if key == "message"
            && text
                .to_ascii_lowercase()
                .replace(' ', "")
                .contains("resourceversion")
        {
            *text = self.replace_versions(text);
        }
    }

    fn replace_uids(&self, text: &mut String) {
        let mut start = 0;
        while let Some(at) = (start..text.len()).find(|&at| is_uuid(text.as_bytes().get(at..at + 36))) {
            let label = self.uids.get(&text[at..at + 36]).map_or("?", String::as_str);
            let placeholder = format!("<uid:{label}>");
            text.replace_range(at..at + 36, &placeholder);
            start = at + placeholder.len();
        }
    }

    /// The server's own counts in messages about resource versions: those in brackets, those after `current: `, and any
    /// that was seen on an object.
    fn replace_versions(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut digits = String::new();
        for character in text.chars().chain(['\0']) {
            if character.is_ascii_digit() {
                digits.push(character);
                continue;
            }
            if !digits.is_empty() {
                let own = (out.ends_with('(') && character == ')' && !out.ends_with("precondition ("))
                    || out.ends_with("current: ")
                    || self.versions.keys().any(|(_, version)| *version == digits);
                out.push_str(if own { "<rv>" } else { &digits });
                digits.clear();
            }
            if character != '\0' {
                out.push(character);
            }
        }
        out
    }
}

/// The body as a value: JSON documents one after the other (a watch) become a list, YAML is read as such, and the rest is text.
fn parse(answer: &Answer) -> Value {
    let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
    // The index of the OpenAPI documents says that it is plain text.
    if answer.content_type.starts_with("application/json") || answer.body.starts_with(b"{") {
        let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&answer.body)
            .into_iter()
            .collect();
        return match documents {
            Err(_) => text(),
            Ok(mut documents) if documents.len() == 1 && documents[0].get("object").is_none() => {
                documents.remove(0)
            }
            Ok(documents) => Value::Array(documents),
        };
    }
    if answer.content_type.starts_with("application/yaml") {
        return std::str::from_utf8(&answer.body)
            .ok()
            .and_then(|yaml| serde_saphyr::from_str(yaml).ok())
            .unwrap_or_else(text);
    }
    text()
}

/// Whether a token goes on at whatever version there is, as the one does that comes with the news that another is too old.
fn is_anew(token: &Value) -> bool {
    // {"v":"meta.k8s.io/v1","rv":-1,
    token
        .as_str()
        .is_some_and(|token| token.starts_with("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEs"))
}

fn is_periodic_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"][INITIAL_EVENTS_END].is_null()
}

fn by_key(text: &str, key: &str) -> Option<&'static str> {
    match key {
        "clusterIP" | "clusterIPs" if text.parse::<std::net::IpAddr>().is_ok() => Some("<ip>"),
        "serverAddress" => Some("<address>"),
        _ => None,
    }
}

fn by_shape(text: &str, at: Option<Timestamp>) -> Option<&'static str> {
    if text.len() > 100 && text.starts_with("eyJ") && text.matches('.').count() == 2 {
        return Some("<token>");
    }
    if !(20..=40).contains(&text.len()) || !text.ends_with('Z') {
        return None;
    }
    let time: Timestamp = text.parse().ok()?;
    let distance = at.unwrap_or_else(Timestamp::now).duration_since(time).abs();
    (distance < SignedDuration::from_hours(1)).then_some(if text.contains('.') {
        "<microtime>"
    } else {
        "<time>"
    })
}

/// `80:31234/TCP,81/UDP` without the port that was given out.
fn without_node_ports(cell: &str) -> String {
    let port = |port: &str| match (port.split_once(':'), port.split_once('/')) {
        (Some((own, _)), Some((_, protocol))) => format!("{own}:<port>/{protocol}"),
        _ => port.to_owned(),
    };
    cell.split(',').map(port).collect::<Vec<_>>().join(",")
}

/// `5s`, `3m20s`, `2d`, `-1s`: what tables print for a time.
fn is_age(cell: &str) -> bool {
    let cell = cell.strip_prefix('-').unwrap_or(cell);
    cell.starts_with(|c: char| c.is_ascii_digit())
        && cell.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c))
        && cell.ends_with(|c: char| c.is_ascii_lowercase())
}

fn is_uuid(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| {
        bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
        })
    })
}

/// Sorts the lines after `errors:`, each of which is one problem.
fn sort_problems(text: &mut String) {
    const HEAD: &str = "errors:\n";
    if let Some(at) = text.find(HEAD) {
        let mut lines: Vec<String> = text[at + HEAD.len()..].lines().map(str::to_owned).collect();
        lines.sort();
        text.replace_range(at + HEAD.len().., &lines.join("\n"));
    }
}

/// An error about a patch quotes the whole object that the patch led to, as one long string.
fn replace_quoted_object(text: &mut String) {
    const START: &str = "Invalid value: \"{";
    const END: &str = "}\": ";
    if let (Some(start), Some(end)) = (text.find(START), text.rfind(END))
        && start + START.len() < end
    {
        text.replace_range(start + START.len() - 1..end + 1, "<object>");
    }
}

#[cfg(test)]
mod tests;
