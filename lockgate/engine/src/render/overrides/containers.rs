//! Containers of the kinds that hold pods, and changes of their commands and arguments.

use lockgate_api::overrides::CommandArgsOverrider;
use serde_json::Value;

use super::{Misfit, unknown_operator};
use crate::object;

/// A pointer to the containers of a kind; none for kinds that hold no pods.
pub(super) fn path(manifest: &Value) -> Option<&'static str> {
    match object::text(manifest, "kind") {
        "Pod" => Some("/spec/containers"),
        "ReplicaSet" | "Deployment" | "DaemonSet" | "StatefulSet" | "Job" => {
            Some("/spec/template/spec/containers")
        }
        _ => None,
    }
}

/// The containers; init containers are not among them.
pub(super) fn containers(manifest: &mut Value) -> Option<(&'static str, &mut Vec<Value>)> {
    let path = path(manifest)?;
    Some((path, manifest.pointer_mut(path)?.as_array_mut()?))
}

/// Changes the `command` or `args` of the containers with a name. There need be none.
pub(super) fn apply(
    manifest: &mut Value,
    field: &str,
    overrider: &CommandArgsOverrider,
) -> Result<(), Misfit> {
    let Some((path, containers)) = containers(manifest) else {
        return Ok(());
    };
    for (index, container) in containers.iter_mut().enumerate() {
        if object::text(container, "name") != overrider.container_name {
            continue;
        }
        let place = || format!("{path}/{index}/{field}");
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let list = container.entry(field).or_insert(Value::Null);
        if list.is_null() {
            *list = Value::Array(Vec::new());
        }
        let Some(list) = list.as_array_mut() else {
            return Err(Misfit::new(place(), "this is not a list"));
        };
        match overrider.operator.as_str() {
            "add" => list.extend(overrider.value.iter().cloned().map(Value::String)),
            "remove" => {
                let goes = |item: &Value| {
                    item.as_str()
                        .is_some_and(|item| overrider.value.iter().any(|v| v == item))
                };
                list.retain(|item| !goes(item));
            }
            other => return Err(Misfit::new(place(), unknown_operator(other))),
        }
    }
    Ok(())
}
