//! What a field becomes when a template is merged into it: the template's word counts, and what it does not mention stays.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::compare::{Mode, compare_maps, printed};

/// A template's value merged into a live one.
pub fn merge(template: &Value, live: &Value) -> Value {
    match (template, live) {
        (_, Value::Null) => template.clone(),
        (Value::Object(template), Value::Object(live)) => Value::Object(merge_maps(template, live)),
        (Value::Array(template), Value::Array(live)) => Value::Array(merge_lists(template, live)),
        _ => template.clone(),
    }
}

fn merge_maps(template: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = template.clone();
    for (key, value) in live {
        match merged.get_mut(key) {
            // Nothing is said of what is inside.
            Some(Value::Null) if value.is_object() => drop(merged.insert(key.clone(), value.clone())),
            Some(said) => *said = merge(said, value),
            None => drop(merged.insert(key.clone(), value.clone())),
        }
    }
    merged
}

/// Items pair in whatever order they come: those of the same name, and those that say no more than what is there. What finds
/// no partner is kept.
fn merge_lists(template: &[Value], live: &[Value]) -> Vec<Value> {
    let mut merged = template.to_vec();
    if live.is_empty() {
        return merged;
    }
    let mut used = vec![false; template.len()];
    let mut kept = Vec::new();
    let mut seen: Vec<Cow<'_, str>> = Vec::new();
    for item in live {
        let print = printed(item);
        if seen.contains(&print) {
            continue;
        }
        let same = live.iter().filter(|other| printed(other) == print).count();
        let mut paired = 0;
        for (at, said) in template.iter().enumerate() {
            if paired == same {
                break;
            }
            if used[at] {
                continue;
            }
            if let Some(pair) = pair(said, item) {
                merged[at] = pair;
                used[at] = true;
                paired += 1;
            }
        }
        kept.extend(std::iter::repeat_n(item, same - paired).cloned());
        seen.push(print);
    }
    merged.extend(kept);
    merged
}

/// What two items become, if they are about the same.
fn pair(said: &Value, live: &Value) -> Option<Value> {
    let (Value::Object(template), Value::Object(present)) = (said, live) else {
        return (printed(said) == printed(live)).then(|| said.clone());
    };
    let merged = merge_maps(template, present);
    let name = |map: &Map<String, Value>| map.get("name").and_then(Value::as_str).map(str::to_owned);
    let named = name(template).is_some_and(|own| !own.is_empty() && name(present) == Some(own));
    (named || compare_maps(&merged, present, Mode::Strict).matches).then_some(Value::Object(merged))
}
