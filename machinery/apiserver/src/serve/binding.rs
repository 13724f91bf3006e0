//! Bindings: a Pod is put on a node.

use http::Response;
use machinery_kinds::Gvk;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath, aggregate};
use serde_json::json;

use crate::body::Body;
use crate::meta;
use crate::negotiate::Accept;
use crate::ops::WriteOptions;
use crate::ops::update::{Part, Target, update};
use crate::resource::Resource;
use crate::serve::Call;
use crate::serve::subresources::{admit, done, read_typed};
use crate::serve::writes::{Precondition, with_warnings, write_options};
use crate::status::{ApiError, Subject};

/// Answers a request to put a Pod on a node.
pub(super) async fn answer(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let binding = read_typed(call, Gvk::new("", "v1", "Binding"), &options, body)?;
    let bound = match check(&call.info.name, &binding) {
        Ok(()) => carry_out(call, resource, binding, &options).await,
        Err(error) => Err(error),
    };
    with_warnings(&options, bound.map(|()| done(call, accept)))
}

/// A binding is of this Pod, and to a node.
fn check(pod: &str, binding: &Value) -> Result<(), ApiError> {
    if meta::name(binding) != pod {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    let path = FieldPath::new("target");
    let text = |key: &str| binding["target"][key].as_str().unwrap_or("");
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        let (kind, listed) = (json!(text("kind")), ["Node", "<empty>"]);
        errors.push(FieldError::not_supported(&path.child("kind"), &kind, &listed));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::unclassified(aggregate(&errors)))
    }
}

async fn carry_out(
    call: &Call,
    resource: &Resource,
    binding: Value,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let info = &call.info;
    admit(call, resource, binding.clone(), options)?;
    let options = options.clone().judged();
    let now = call.server.now_text();
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part: Part::Whole,
    };
    update(&call.server, &target, &options, |present| {
        // The uid and the version of a binding are those of the Pod that was meant.
        Precondition::Uid(meta::uid(&binding)).check(&target, present)?;
        Precondition::Version(meta::resource_version(&binding)).check(&target, present)?;
        if let Some(why) = obstacle(present) {
            let subject = Subject {
                group: "",
                name: "pods/binding",
            };
            return Err(ApiError::conflict(subject, &info.name, why));
        }
        Ok(placed(present, &binding, &now))
    })
    .await?;
    Ok(())
}

/// Why a Pod cannot be put on a node, if it cannot.
fn obstacle(pod: &Value) -> Option<String> {
    let name = meta::name(pod);
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("");
    if meta::is_deleting(pod) {
        return Some(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gated = pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty());
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// The Pod on its node, with the labels and annotations that the binding has for it.
fn placed(pod: &Value, binding: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for key in ["labels", "annotations"] {
        let Some(given) = binding["metadata"][key].as_object().filter(|map| !map.is_empty()) else {
            continue;
        };
        let own = &mut pod["metadata"][key];
        if !own.is_object() {
            *own = json!({});
        }
        if let Some(own) = own.as_object_mut() {
            own.extend(given.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    let Some(status) = pod["status"].as_object_mut() else {
        return pod;
    };
    // Where a Pod was hoped to go is over when it is there.
    status.remove("nominatedNodeName");
    let scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|condition| condition["type"] != "PodScheduled");
        list.push(scheduled);
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_pod_from_a_node() {
        let table = [
            (json!({"spec": {}}), None),
            (
                json!({"spec": {"nodeName": "n"}}),
                Some("pod p is already assigned to node \"n\""),
            ),
            (
                json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
                Some("pod p has non-empty .spec.schedulingGates"),
            ),
        ];
        for (mut pod, expected) in table {
            pod["metadata"] = json!({"name": "p"});
            assert_eq!(obstacle(&pod).as_deref(), expected);
            pod["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
            let going = "pod p is being deleted, cannot be assigned to a host";
            assert_eq!(obstacle(&pod).as_deref(), Some(going));
        }
    }

    #[test]
    fn a_binding_brings_labels_and_annotations_along() {
        let pod = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {}, "status": {"nominatedNodeName": "m"}});
        let binding =
            json!({"metadata": {"labels": {"b": "2"}, "annotations": {"c": "3"}}, "target": {"name": "n"}});
        let placed = placed(&pod, &binding, "now");
        assert_eq!(
            placed["metadata"],
            json!({"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}})
        );
        assert_eq!(placed["spec"]["nodeName"], "n");
        assert!(placed["status"].get("nominatedNodeName").is_none());
    }
}
