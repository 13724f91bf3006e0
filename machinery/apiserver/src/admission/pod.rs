//! Pods: their priority, what their runtime asks for, and how long they stay on a node that is not well.

mod runtime;

use machinery_store::Range;
use machinery_value::Value;
use serde_json::json;

use crate::meta;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

/// Completes a new Pod.
pub(crate) fn complete(server: &Inner, pod: &mut Value) -> Result<(), ApiError> {
    set_priority(server, pod)?;
    tolerate(pod, "node.kubernetes.io/not-ready");
    tolerate(pod, "node.kubernetes.io/unreachable");
    runtime::apply(server, pod)
}

/// The priority is that of the Pod's class, or of the default class, or zero.
fn set_priority(server: &Inner, pod: &mut Value) -> Result<(), ApiError> {
    let prefix = key_prefix("scheduling.k8s.io", "priorityclasses");
    let wanted = pod["spec"]["priorityClassName"].as_str().unwrap_or("").to_owned();
    let class = if wanted.is_empty() {
        let page = server.store.range(Range {
            prefix: &prefix,
            ..Range::default()
        });
        let classes = page.map(|page| page.entries).unwrap_or_default();
        let default = classes
            .iter()
            .map(|c| c.value.content())
            .filter(|c| c["globalDefault"] == json!(true));
        default.min_by_key(|class| class["value"].as_i64())
    } else {
        let class = server
            .store
            .get(&format!("{prefix}{wanted}"))
            .map(|stored| stored.value.content());
        if class.is_none() {
            let why = format!("no PriorityClass with name {wanted} was found");
            return Err(ApiError::forbidden(
                Subject {
                    group: "",
                    name: "pods",
                },
                meta::name(pod),
                why,
            ));
        }
        class
    };
    let spec = &mut pod["spec"];
    let (value, policy) = match &class {
        Some(class) => (class["value"].clone(), class["preemptionPolicy"].clone()),
        None => (json!(0), Value::Null),
    };
    if let (true, Some(class)) = (wanted.is_empty(), &class) {
        spec["priorityClassName"] = json!(meta::name(class));
    }
    spec["priority"] = value;
    if spec["preemptionPolicy"].is_null() {
        spec["preemptionPolicy"] = if policy.is_null() {
            json!("PreemptLowerPriority")
        } else {
            policy
        };
    }
    Ok(())
}

fn tolerate(pod: &mut Value, taint: &str) {
    let spec = &mut pod["spec"];
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    let Some(list) = spec["tolerations"].as_array_mut() else {
        return;
    };
    let covers = |t: &Value| {
        let key = t["key"].as_str().unwrap_or("");
        let effect = t["effect"].as_str().unwrap_or("");
        (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
    };
    if !list.iter().any(covers) {
        list.push(
            json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
        );
    }
}
