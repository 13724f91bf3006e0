//! What the RuntimeClass of a Pod asks for: its overhead, and the nodes that have the runtime.

use machinery_value::quantity::Quantity;
use machinery_value::{Map, Value};
use serde_json::json;

use crate::meta;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

/// Completes a new Pod by its class, or refuses it.
pub(super) fn apply(server: &Inner, pod: &mut Value) -> Result<(), ApiError> {
    let class = match pod["spec"]["runtimeClassName"].as_str() {
        None => Value::Null,
        Some(wanted) => {
            let key = format!("{}{wanted}", key_prefix("node.k8s.io", "runtimeclasses"));
            let class = server.store.get(&key).map(|stored| stored.value.content());
            class.ok_or_else(|| refuse(pod, format!("pod rejected: RuntimeClass {wanted:?} not found")))?
        }
    };
    complete(pod, &class).map_err(|why| refuse(pod, why))
}

fn refuse(pod: &Value, why: String) -> ApiError {
    let pods = Subject {
        group: "",
        name: "pods",
    };
    ApiError::forbidden(pods, meta::name(pod), why)
}

/// Puts into a Pod what its class says; an absent class says nothing.
fn complete(pod: &mut Value, class: &Value) -> Result<(), String> {
    let spec = &mut pod["spec"];
    let has_overhead = spec["overhead"]
        .as_object()
        .is_some_and(|amounts| !amounts.is_empty());
    match class.get("overhead") {
        Some(overhead) => {
            if has_overhead && !same_amounts(&overhead["podFixed"], &spec["overhead"]) {
                return Err(
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".into(),
                );
            }
            if overhead["podFixed"].is_object() {
                spec["overhead"] = overhead["podFixed"].clone();
            }
        }
        None if has_overhead => {
            return Err(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".into(),
            );
        }
        None => {}
    }
    let Some(scheduling) = class.get("scheduling") else {
        return Ok(());
    };
    let mut selector = spec["nodeSelector"].as_object().cloned().unwrap_or_default();
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let wanted = value.as_str().unwrap_or("");
        let before = selector.insert(key.clone(), value.clone());
        if let Some(before) = before.filter(|before| before != value) {
            let before = before.as_str().unwrap_or("");
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {before}"
            ));
        }
    }
    if !selector.is_empty() {
        spec["nodeSelector"] = selector.into();
    }
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for toleration in scheduling["tolerations"].as_array().into_iter().flatten() {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    if !tolerations.is_empty() {
        spec["tolerations"] = json!(tolerations);
    }
    Ok(())
}

/// Whether two lists of amounts are the same, however they are written.
fn same_amounts(left: &Value, right: &Value) -> bool {
    let amounts = |value: &Value| -> Vec<(String, Option<Quantity>)> {
        let empty = Map::new();
        let amounts = value.as_object().unwrap_or(&empty).iter();
        let amounts = amounts.map(|(key, amount)| {
            let amount = amount.as_str().and_then(|amount| amount.parse().ok());
            (key.clone(), amount)
        });
        amounts.collect()
    };
    amounts(left) == amounts(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(spec: Value, class: &Value) -> Result<Value, String> {
        let mut pod = json!({"spec": spec});
        complete(&mut pod, class).map(|()| pod["spec"].take())
    }

    #[test]
    fn a_class_completes_its_pods() {
        let class = json!({
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}]},
        });
        let want =
            json!({"overhead": {"cpu": "250m"}, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}]});
        assert_eq!(completed(json!({}), &class), Ok(want.clone()));
        assert_eq!(completed(want.clone(), &class), Ok(want));
        let other = completed(
            json!({"overhead": {"cpu": "0.25"}, "nodeSelector": {"c": "d"}}),
            &class,
        );
        assert_eq!(other.unwrap()["nodeSelector"], json!({"a": "b", "c": "d"}));
        for wrong in [
            json!({"overhead": {"cpu": "1"}}),
            json!({"nodeSelector": {"a": "c"}}),
        ] {
            assert!(completed(wrong.clone(), &class).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_class_there_is_no_overhead() {
        assert_eq!(completed(json!({}), &Value::Null), Ok(json!({})));
        assert!(completed(json!({"overhead": {"cpu": "1"}}), &Value::Null).is_err());
    }
}
