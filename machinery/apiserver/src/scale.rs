//! The scale subresource: a small view of replicas and selector, the same for every kind.

use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::gofmt::{GoValue, go_type};
use serde_json::{Map, json};

use crate::meta;
use crate::resource::Resource;
use crate::status::ApiError;

/// The `Scale` of an object.
pub(crate) fn view(resource: &Resource, content: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = content["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let (spec_replicas, status_replicas, selector) = match resource.custom().and_then(|c| c.scale.as_ref()) {
        Some(paths) => (
            at(content, &paths.spec_replicas).and_then(Value::as_i64),
            at(content, &paths.status_replicas).and_then(Value::as_i64),
            paths
                .selector
                .as_ref()
                .and_then(|p| at(content, p))
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned(),
        ),
        None => (
            content["spec"]["replicas"].as_i64(),
            content["status"]["replicas"].as_i64(),
            selector_text(&content["spec"]["selector"]),
        ),
    };
    let mut spec = Map::new();
    if let Some(replicas) = spec_replicas.filter(|r| *r != 0) {
        spec.insert("replicas".into(), json!(replicas));
    }
    let mut status = json!({"replicas": status_replicas.unwrap_or(0)});
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// The object that has the replicas of `scale`.
pub(crate) fn apply(resource: &Resource, present: &Value, scale: &Value) -> Result<Value, ApiError> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    // A custom resource's own rules judge its replicas.
    if replicas < 0 && resource.custom().is_none() {
        let error = FieldError::invalid(
            &FieldPath::from("spec.replicas"),
            &json!(replicas),
            "must be greater than or equal to 0",
        );
        let kind = crate::status::Subject {
            group: "autoscaling",
            name: "Scale",
        };
        return Err(ApiError::invalid(kind, meta::name(present), &[error]));
    }
    let mut content = present.clone();
    match resource.custom().and_then(|c| c.scale.as_ref()) {
        Some(paths) => set(&mut content, &paths.spec_replicas, json!(replicas)),
        None => content["spec"]["replicas"] = json!(replicas),
    }
    // The resource version of the request counts, and none means any.
    match scale["metadata"]["resourceVersion"].as_str() {
        Some(version) if !version.is_empty() => meta::set_text(&mut content, "resourceVersion", version),
        _ => {
            let version = meta::resource_version(present).to_owned();
            meta::set_text(&mut content, "resourceVersion", version);
        }
    }
    Ok(content)
}

/// What is wrong with the fields that the scale subresource of a custom resource shows.
pub(crate) fn check(resource: &Resource, content: &Value, status_only: bool) -> Vec<FieldError> {
    let Some(paths) = resource.custom().and_then(|c| c.scale.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if !status_only {
        check_count(content, &paths.spec_replicas, &mut errors);
    }
    check_count(content, &paths.status_replicas, &mut errors);
    if let Some(path) = &paths.selector
        && let Err((value, wanted)) = look(content, path, "string", Value::is_string)
    {
        errors.push(accessor_error(path, &json!(""), value, wanted));
    }
    errors
}

fn check_count(content: &Value, path: &[String], errors: &mut Vec<FieldError>) {
    match look(content, path, "int64", |value| value.is_i64()) {
        Err((value, wanted)) => errors.push(accessor_error(path, &json!(0), value, wanted)),
        Ok(Some(value)) => {
            let count = value.as_i64().unwrap_or(0);
            let field = FieldPath::from(format!(".{}", path.join(".")).as_str());
            if count < 0 {
                errors.push(FieldError::invalid(
                    &field,
                    value,
                    "should be a non-negative integer",
                ));
            } else if count > i64::from(i32::MAX) {
                let why = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(&field, value, why));
            }
        }
        Ok(None) => {}
    }
}

/// The value at a path; or the first value on the way that is not of the type that it should have, and that type.
fn look<'v>(
    content: &'v Value,
    path: &[String],
    wanted: &'static str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, (&'v Value, &'static str)> {
    let mut value = content;
    for part in path {
        if !value.is_object() {
            return Err((value, "map[string]interface{}"));
        }
        match value.get(part) {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    if fits(value) {
        Ok(Some(value))
    } else {
        Err((value, wanted))
    }
}

fn accessor_error(path: &[String], shown: &Value, found: &Value, wanted: &str) -> FieldError {
    let name = format!(".{}", path.join("."));
    let why = format!(
        "{name} accessor error: {} is of the type {}, expected {wanted}",
        GoValue(found),
        go_type(found)
    );
    FieldError::invalid(&FieldPath::from(name.as_str()), shown, why)
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, part| value.get(part))
}

fn set(value: &mut Value, path: &[String], new: Value) {
    let mut place = value;
    for part in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part.as_str()];
    }
    *place = new;
}

/// A selector as text: `app=web,tier in (a,b)`; a plain map for ReplicationControllers.
fn selector_text(selector: &Value) -> String {
    let Some(map) = selector.as_object() else {
        return String::new();
    };
    let plain = !map.contains_key("matchLabels") && !map.contains_key("matchExpressions");
    let labels = if plain {
        Some(map)
    } else {
        map.get("matchLabels").and_then(Value::as_object)
    };
    let mut parts: Vec<(String, String)> = labels
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), format!("{k}={}", v.as_str().unwrap_or(""))))
        .collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or("");
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_as_text() {
        let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]}, {"key": "x", "operator": "DoesNotExist"}]});
        assert_eq!(selector_text(&selector), "app=web,tier in (a,b),!x");
        assert_eq!(selector_text(&json!({"app": "rc"})), "app=rc");
    }
}
