//! Reading fields of an object, and the small texts that many tables share.
//!
//! Nothing here fails: what is missing, null or of another type reads as empty, exactly as an unset field of a
//! typed object would.

use jiff::Timestamp;
use machinery_value::Value;
use machinery_value::quantity::Quantity;

use crate::age;

/// What stands for an empty set, list or reference.
pub(crate) const NONE: &str = "<none>";
/// What stands for an optional field that nobody set.
pub(crate) const UNSET: &str = "<unset>";

static NULL: Value = Value::Null;

/// Makes a row of cells out of anything that becomes a JSON value.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => { vec![$(::machinery_value::Value::from($cell)),+] };
}
pub(crate) use row;

/// What printing depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The version of the API in which the object is written.
    pub(crate) version: &'a str,
    pub(crate) now: Timestamp,
}

impl Context<'_> {
    /// How long ago the object was created.
    pub(crate) fn age(&self, object: &Value) -> String {
        self.since(object, "metadata.creationTimestamp")
    }

    /// How long ago the time at the path was.
    pub(crate) fn since(&self, object: &Value, path: &str) -> String {
        age::since(age::time_of(at(object, path)), self.now)
    }
}

/// The value at a dotted path of fields; null when there is none. (Keys that contain dots, such as those of
/// labels, are looked up in the map itself.)
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .try_fold(value, |value, field| value.get(field))
        .unwrap_or(&NULL)
}

/// The text at the path, or the empty one.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The text at the path, or another one where there is none or it is empty.
pub(crate) fn text_or<'a>(value: &'a Value, path: &str, otherwise: &'a str) -> &'a str {
    match text(value, path) {
        "" => otherwise,
        text => text,
    }
}

/// The text at the path where the field is present at all, even if it is empty there.
pub(crate) fn present_or<'a>(value: &'a Value, path: &str, otherwise: &'a str) -> &'a str {
    at(value, path).as_str().unwrap_or(otherwise)
}

/// The whole number at the path, or zero.
pub(crate) fn int(value: &Value, path: &str) -> i64 {
    int_or(value, path, 0)
}

/// The whole number at the path, or the default of the field.
pub(crate) fn int_or(value: &Value, path: &str, otherwise: i64) -> i64 {
    at(value, path).as_i64().unwrap_or(otherwise)
}

/// The truth value at the path, or the default of the field.
pub(crate) fn flag_or(value: &Value, path: &str, otherwise: bool) -> bool {
    at(value, path).as_bool().unwrap_or(otherwise)
}

/// The items of the list at the path.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// How many entries the list or the map at the path has.
pub(crate) fn count(value: &Value, path: &str) -> i64 {
    let length = match at(value, path) {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The texts of the list at the path, or the texts at a field of each of its items.
pub(crate) fn texts<'a>(value: &'a Value, path: &str, field: Option<&str>) -> Vec<&'a str> {
    let items = list(value, path).iter();
    items
        .map(|item| field.map_or_else(|| item.as_str().unwrap_or_default(), |field| text(item, field)))
        .collect()
}

/// The name of the object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "metadata.name")
}

/// Whether the object is on its way out.
pub(crate) fn deleting(object: &Value) -> bool {
    !at(object, "metadata.deletionTimestamp").is_null()
}

/// An annotation of the object.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, "metadata.annotations")
        .get(key)
        .and_then(Value::as_str)
}

/// The first condition of the type in the list at the path.
pub(crate) fn condition<'a>(object: &'a Value, path: &str, r#type: &str) -> Option<&'a Value> {
    list(object, path)
        .iter()
        .find(|condition| text(condition, "type") == r#type)
}

/// Whether the first condition of the type is true.
pub(crate) fn condition_is_true(object: &Value, path: &str, r#type: &str) -> bool {
    condition(object, path, r#type).is_some_and(|condition| text(condition, "status") == "True")
}

/// A number or a percentage, as it is written.
pub(crate) fn int_or_string(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// A quantity in its canonical form, however it was written; nothing counts as zero.
pub(crate) fn quantity(value: &Value) -> String {
    match int_or_string(value) {
        None => "0".to_owned(),
        Some(text) => Quantity::parse(&text).map_or(text, |quantity| quantity.to_string()),
    }
}

/// Labels as `a=1,b=2`, in the order of those texts; `<none>` when there are none.
pub(crate) fn labels(value: &Value) -> String {
    let Some(map) = value.as_object().filter(|map| !map.is_empty()) else {
        return NONE.to_owned();
    };
    let mut pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    pairs.join(",")
}

/// A label selector as text (empty when it selects everything or is missing), or nothing when it is not valid.
pub(crate) fn selector(value: &Value) -> Option<String> {
    let mut requirements: Vec<(&str, String)> = Vec::new();
    if let Some(labels) = at(value, "matchLabels").as_object() {
        for (key, value) in labels {
            requirements.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
        }
    }
    for expression in list(value, "matchExpressions") {
        let key = text(expression, "key");
        let mut values = texts(expression, "values", None);
        values.sort_unstable();
        let printed = match (text(expression, "operator"), values.is_empty()) {
            ("In", false) => format!("{key} in ({})", values.join(",")),
            ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
            ("Exists", true) => key.to_owned(),
            ("DoesNotExist", true) => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key, printed));
    }
    requirements.sort_by(|a, b| a.0.cmp(b.0));
    Some(
        requirements
            .into_iter()
            .map(|(_, printed)| printed)
            .collect::<Vec<_>>()
            .join(","),
    )
}

/// A label selector as most tables print it.
pub(crate) fn selector_cell(value: &Value) -> String {
    match selector(value) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => NONE.to_owned(),
        Some(text) => text,
    }
}

/// The names and the images of the containers of a pod template, each joined with commas.
pub(crate) fn containers(template: &Value) -> (String, String) {
    let joined = |field| texts(template, "spec.containers", Some(field)).join(",");
    (joined("name"), joined("image"))
}

/// Up to three items and how many more there are; `<unset>` when there is nothing to show.
pub(crate) fn three_of(items: &[String]) -> String {
    let shown = items
        .iter()
        .take(3)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",");
    match items.len() {
        4.. => format!("{shown} + {} more...", items.len() - 3),
        _ if shown.is_empty() => UNSET.to_owned(),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_ordered_by_the_whole_pair() {
        let cases = [
            (json!(null), "<none>"),
            (json!({}), "<none>"),
            (json!({"b": "2", "a": "1"}), "a=1,b=2"),
            (json!({"a": "1", "a-b": "2"}), "a-b=2,a=1"),
        ];
        for (value, want) in cases {
            assert_eq!(labels(&value), want, "{value}");
        }
    }

    #[test]
    fn selectors_are_ordered_by_key() {
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]});
        let cases = [
            (json!(null), "<none>"),
            (json!({}), "<none>"),
            (
                json!({"matchLabels": {"b": "2", "a-b": "0", "a": "1"}}),
                "a=1,a-b=0,b=2",
            ),
            (
                json!({"matchLabels": {"z": "1"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                "a,z=1",
            ),
            (expression("In", json!(["y", "x"])), "k in (x,y)"),
            (expression("NotIn", json!(["x"])), "k notin (x)"),
            (expression("DoesNotExist", json!(null)), "!k"),
            (expression("In", json!([])), "<error>"),
            (expression("Exists", json!(["x"])), "<error>"),
            (expression("Near", json!(["x"])), "<error>"),
        ];
        for (value, want) in cases {
            assert_eq!(selector_cell(&value), want, "{value}");
        }
    }
}
