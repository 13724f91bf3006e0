//! Makes a script that shows a difference as small as it can be.

use std::future::Future;

use serde_json::Value;

use crate::script::{Body, Script};

/// How often a smaller script is tried.
const MAX_TRIES: usize = 200;

/// Leaves out steps, then parts of bodies, as long as `shows` says that the difference is still there. `last` is the step
/// that shows it, from 1.
pub(crate) async fn shrink<F>(script: &Script, last: usize, shows: impl Fn(Script) -> F) -> Script
where
    F: Future<Output = bool>,
{
    let mut small = script.clone();
    let mut tries = 0;
    let mut cut = small.clone();
    cut.steps.truncate(last);
    if shows(cut.clone()).await {
        small = cut;
    }
    let mut size = small.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at + 1 < small.steps.len() && tries < MAX_TRIES {
            tries += 1;
            let mut smaller = small.clone();
            let end = (at + size).min(smaller.steps.len() - 1);
            smaller.steps.drain(at..end);
            if shows(smaller.clone()).await {
                small = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for step in 0..small.steps.len() {
        let Some(Body::Json(body)) = small.steps[step].body.clone() else {
            continue;
        };
        for place in places(&body) {
            if tries >= MAX_TRIES {
                return small;
            }
            let mut smaller = small.clone();
            let Some(Body::Json(body)) = &mut smaller.steps[step].body else {
                break;
            };
            // Something above it may be gone already.
            if !remove(body, &place) {
                continue;
            }
            tries += 1;
            if shows(smaller.clone()).await {
                small = smaller;
            }
        }
    }
    small
}

/// Every value inside, by its JSON pointer: outer ones first, and the last of a list first, so that earlier ones keep
/// their places.
fn places(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        let inside: Vec<(String, &Value)> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
                .collect(),
            Value::Array(list) => {
                let numbered = list.iter().enumerate().rev();
                numbered
                    .map(|(index, value)| (index.to_string(), value))
                    .collect()
            }
            _ => Vec::new(),
        };
        for (key, value) in inside {
            let path = format!("{at}/{key}");
            found.push(path.clone());
            walk(value, &path, found);
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

fn remove(value: &mut Value, place: &str) -> bool {
    let Some((parent, last)) = place.rsplit_once('/') else {
        return false;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&last.replace("~1", "/").replace("~0", "~")).is_some(),
        Some(Value::Array(list)) => match last.parse::<usize>() {
            Ok(index) if index < list.len() => {
                list.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::Step;

    #[tokio::test]
    async fn only_what_is_needed_is_left() {
        let step = |request: &str, body: Value| Step {
            request: request.to_owned(),
            body: Some(Body::Json(body)),
            ..Step::default()
        };
        let script = Script {
            steps: vec![
                step("POST /a", json!({"x": 1})),
                step(
                    "POST /b",
                    json!({"keep": {"this": [1, 2, 3]}, "not": {"that": 1}}),
                ),
                step("GET /c", json!({})),
                step("GET /d", json!({})),
                step("GET /e", json!({})),
            ],
            ..Script::default()
        };
        let small = shrink(&script, 4, |script| async move {
            let has = |request: &str| script.steps.iter().position(|step| step.request == request);
            let Some(b) = has("POST /b") else { return false };
            let Some(Body::Json(body)) = &script.steps[b].body else {
                return false;
            };
            let two = body["keep"]["this"]
                .as_array()
                .is_some_and(|list| list.contains(&json!(2)));
            two && has("GET /d").is_some()
        })
        .await;
        let left: Vec<String> = small
            .steps
            .iter()
            .map(|step| format!("{} {}", step.request, serde_json::to_string(&step.body).unwrap()))
            .collect();
        assert_eq!(left, ["POST /b {\"keep\":{\"this\":[2]}}", "GET /d {}"]);
    }
}
