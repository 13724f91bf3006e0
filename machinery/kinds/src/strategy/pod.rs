//! Pods that change through one of their subresources: everything that is not the subresource's stays.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{copy, put};
use crate::access::{items, make, same, text};

/// The lists of containers whose amounts a resize may change.
const RESIZED: [&str; 2] = ["containers", "initContainers"];

/// A change through `ephemeralcontainers`: the ephemeral containers alone.
pub fn prepare_ephemeral_containers(new: &mut Value, old: &Value) {
    let wanted = new["spec"]["ephemeralContainers"].clone();
    keep_all_but(new, old, |spec| {
        if let Some(spec) = spec.as_object_mut() {
            put(spec, "ephemeralContainers", wanted);
        }
    });
}

/// A change through `resize`: the amounts of the containers alone. Containers that are others than before are left for
/// validation to refuse.
pub fn prepare_resize(new: &mut Value, old: &Value) {
    let wanted = RESIZED.map(|key| resized(&new["spec"][key], &old["spec"][key]));
    keep_all_but(new, old, |spec| {
        if let Some(spec) = spec.as_object_mut() {
            for (key, list) in RESIZED.into_iter().zip(wanted) {
                put(spec, key, list);
            }
        }
    });
}

/// The containers as they were, but with the amounts and the policies that are wanted.
fn resized(new: &Value, old: &Value) -> Value {
    let before: BTreeMap<&str, &Value> = items(old)
        .iter()
        .map(|container| (text(&container["name"]), container))
        .collect();
    let mut list = new.clone();
    for container in list.as_array_mut().into_iter().flatten() {
        let Some(before) = before.get(text(&container["name"])) else {
            continue;
        };
        let mut kept = (*before).clone();
        if let Some(kept) = kept.as_object_mut() {
            copy(kept, container, "resources");
            copy(kept, container, "resizePolicy");
        }
        *container = kept;
    }
    list
}

/// The old object with another spec. Who it is and whose fields are whose is the client's to say, for others to check.
fn keep_all_but(new: &mut Value, old: &Value, change: impl FnOnce(&mut Value)) {
    let mut kept = old.clone();
    change(&mut kept["spec"]);
    let raised = !same(&kept["spec"], &old["spec"]);
    if let Some(fields) = kept.as_object_mut() {
        make(fields, "metadata", |meta| {
            for key in ["name", "namespace", "uid", "resourceVersion", "managedFields"] {
                copy(meta, &new["metadata"], key);
            }
            if raised {
                let now = meta.get("generation").and_then(Value::as_i64).unwrap_or_default();
                put(meta, "generation", (now + 1).into());
            }
        });
    }
    *new = kept;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"name": "p", "generation": 1, "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Pending"},
        })
    }

    #[test]
    fn only_ephemeral_containers_come_through_their_subresource() {
        let mut new = pod();
        new["metadata"]["labels"] = json!({});
        new["spec"]["containers"][0]["image"] = json!("y");
        new["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
        prepare_ephemeral_containers(&mut new, &pod());
        let mut expected = pod();
        expected["metadata"]["generation"] = json!(2);
        expected["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
        assert_eq!(new, expected);
    }

    #[test]
    fn only_amounts_come_through_a_resize() {
        let mut new = pod();
        new["spec"]["containers"][0]["image"] = json!("y");
        new["spec"]["nodeName"] = json!("n");
        new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
        prepare_resize(&mut new, &pod());
        let mut expected = pod();
        expected["metadata"]["generation"] = json!(2);
        expected["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
        assert_eq!(new, expected);
    }

    #[test]
    fn a_change_of_nothing_is_none() {
        let mut new = pod();
        new["metadata"]["annotations"] = json!({"x": "y"});
        prepare_resize(&mut new, &pod());
        assert_eq!(new, pod());
    }
}
