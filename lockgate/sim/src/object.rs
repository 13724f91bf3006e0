//! Reading and writing the parts of objects that every controller needs.
//!
//! Statuses are written as the server keeps them (no zero that Go would leave out, times in whole seconds), so that
//! "is it different?" is a comparison of values.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::action::{Key, Kind};

/// A text, empty when it is missing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number, zero when it is missing.
pub(crate) fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// The items of a list, none when it is missing.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The fields of an object, none when it is missing.
pub(crate) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

pub(crate) fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// Sets an annotation, or takes it away. Returns whether that changed anything.
pub(crate) fn set_annotation(object: &mut Value, key: &str, value: Option<&str>) -> bool {
    if annotation(object, key) == value {
        return false;
    }
    match value {
        Some(value) => object["metadata"]["annotations"][key] = json!(value),
        None => {
            if let Some(map) = object["metadata"]["annotations"].as_object_mut() {
                map.remove(key);
            }
        }
    }
    true
}

/// Whether somebody asked for its deletion.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(&object["metadata"]["deletionTimestamp"]).is_empty()
}

/// How many of it are wanted; one when nothing is said.
pub(crate) fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1).max(0)
}

/// The reference to the controller of an object.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    items(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
}

/// Whether `owner` controls `object`.
pub(crate) fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    controller(object).is_some_and(|reference| text(&reference["uid"]) == uid(owner))
}

/// The reference with which `owner` controls what it makes.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The key of an object of a kind that is simulated.
pub(crate) fn key(object: &Value) -> Option<Key> {
    let kind = Kind::of(text(&object["apiVersion"]), text(&object["kind"]))?;
    Some(Key::new(kind, namespace(object), name(object)))
}

/// A time as Kubernetes writes it: RFC 3339, whole seconds.
pub(crate) fn stamp(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_string()
}

/// The time that a field says.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    text(value).parse().ok()
}

/// `time` and a number of seconds, as far as the calendar goes.
pub(crate) fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

/// `time` and a duration, as far as the calendar goes.
pub(crate) fn later(time: Timestamp, by: std::time::Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// A number, or a percentage of `total`.
pub(crate) fn share(value: &Value, total: i64, round_up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let Some(percent) = text(value).strip_suffix('%').and_then(|p| p.parse::<i64>().ok()) else {
        return 0;
    };
    let hundredths = total.saturating_mul(percent);
    if round_up {
        hundredths.saturating_add(99) / 100
    } else {
        hundredths / 100
    }
}

/// A condition of a status by its type.
pub(crate) fn condition<'v>(status: &'v Value, kind: &str) -> Option<&'v Value> {
    items(&status["conditions"])
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Whether a condition of a status is true.
pub(crate) fn is_true(status: &Value, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Says<'a> {
    pub(crate) status: &'static str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> Says<'a> {
    pub(crate) fn new(is_true: bool, reason: &'a str, message: &'a str) -> Self {
        Self {
            status: if is_true { "True" } else { "False" },
            reason,
            message,
        }
    }

    /// True, with nothing to explain.
    pub(crate) fn yes() -> Self {
        Self::new(true, "", "")
    }

    /// Neither true nor false.
    pub(crate) fn unknown(reason: &'a str, message: &'a str) -> Self {
        Self {
            status: "Unknown",
            reason,
            message,
        }
    }
}

/// Sets a condition; its transition time moves only with its status. `extra` are further fields; those that the
/// condition has and nobody mentions stay.
pub(crate) fn set_condition(status: &mut Value, kind: &str, says: &Says<'_>, extra: Value, now: Timestamp) {
    let mut new = condition(status, kind)
        .cloned()
        .unwrap_or_else(|| json!({"type": kind}));
    if new["status"] != says.status {
        new["status"] = json!(says.status);
        new["lastTransitionTime"] = json!(stamp(now));
    }
    for (field, text) in [("reason", says.reason), ("message", says.message)] {
        if !text.is_empty() {
            new[field] = json!(text);
        } else if let Some(map) = new.as_object_mut() {
            map.remove(field);
        }
    }
    for (key, value) in fields(&extra) {
        new[key] = value.clone();
    }
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    if let Some(list) = status["conditions"].as_array_mut() {
        match list.iter_mut().find(|old| old["type"] == kind) {
            Some(old) => *old = new,
            None => list.push(new),
        }
    }
}

/// Sets a number in a status; zero is written by leaving it out.
pub(crate) fn set_count(status: &mut Value, field: &str, count: i64) {
    if count != 0 {
        status[field] = json!(count);
    } else if let Some(map) = status.as_object_mut() {
        map.remove(field);
    }
}

/// The status of an object, as a start for a new one.
pub(crate) fn status_of(object: &Value) -> Value {
    match &object["status"] {
        Value::Object(map) => Value::Object(map.clone()),
        _ => Value::Object(Map::new()),
    }
}

/// The object with another status; none if it is the one it has.
pub(crate) fn with_status(object: &Value, status: Value) -> Option<Value> {
    if object["status"] == status {
        return None;
    }
    let mut object = object.clone();
    object["status"] = status;
    Some(object)
}

/// An object made from a pod template: a Pod in `owner`'s namespace that it controls.
pub(crate) fn pod_from_template(owner: &Value, template: &Value) -> Value {
    let mut metadata = json!({
        "namespace": namespace(owner),
        "ownerReferences": [owner_reference(owner)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
    crate::behaviour::hand_down(owner, &mut pod);
    pod
}
