//! Limits that are too large for recorded answers, and rules that a server's own state decides.

use machinery_value::field::{FieldError, aggregate};
use serde_json::{Value, json};

use super::*;

fn config_map(change: impl FnOnce(&mut Value)) -> Vec<FieldError> {
    let mut object = json!({"metadata": {"name": "a", "namespace": "n"}});
    change(&mut object);
    validate_create(Gvk::new("", "v1", "ConfigMap"), &object)
}

#[test]
fn sizes_are_limited() {
    const MIB: usize = 1024 * 1024;
    let table: [(&str, Value, usize, &str); 3] = [
        (
            "/data",
            json!({"k": ""}),
            MIB,
            "[]: Too long: may not be more than 1048576 bytes",
        ),
        (
            "/metadata/annotations",
            json!({"k": ""}),
            256 * 1024 - 1,
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            "/metadata/labels",
            json!({"k": ""}),
            63,
            "metadata.labels: Invalid value: \"X\": must be no more than 63 bytes",
        ),
    ];
    for (pointer, holder, limit, says) in table {
        let filled = |size: usize| {
            config_map(|object| {
                let mut holder = holder.clone();
                holder["k"] = "x".repeat(size).into();
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap()[key] = holder;
            })
        };
        assert_eq!(filled(limit), [], "{pointer} at its limit");
        let text = aggregate(&filled(limit + 1));
        assert_eq!(text.replace(&"x".repeat(limit + 1), "X"), says);
    }
}

#[test]
fn binary_data_counts_as_the_bytes_it_stands_for() {
    let encoded = |bytes: usize| "AAAA".repeat(bytes / 3);
    let fits = config_map(|object| object["binaryData"] = json!({"k": encoded(1024 * 1024 - 1)}));
    assert_eq!(fits, []);
    assert_eq!(
        config_map(|object| object["binaryData"] = json!({"k": encoded(1024 * 1024 + 2)})).len(),
        1
    );
}

#[test]
fn a_deleted_object_gets_no_new_finalizers() {
    let old = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1", "finalizers": ["a.b/c"],
        "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a.b/c", "lab.io/g"]);
    let errors = validate_update(Gvk::new("", "v1", "ConfigMap"), &new, &old);
    let says = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                finalizers []string{\"lab.io/g\"}";
    assert_eq!((errors.len(), aggregate(&errors).as_str()), (2, says));
}

#[test]
fn an_update_needs_a_version() {
    let old = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}});
    let new = json!({"metadata": {"name": "a", "namespace": "n"}});
    let text = aggregate(&object_meta_update(true, &new, &old));
    assert_eq!(
        text,
        "metadata.resourceVersion: Invalid value: \"\": must be specified for an update"
    );
}

#[test]
fn custom_kinds_may_have_short_finalizers_and_built_in_ones_may_not() {
    let object = json!({"metadata": {"name": "a", "namespace": "n", "finalizers": ["short"]}});
    assert_eq!(
        object_meta_create(Gvk::new("lab.io", "v1", "Thing"), true, &object),
        []
    );
    assert_eq!(validate_create(Gvk::new("", "v1", "ConfigMap"), &object).len(), 1);
}

#[test]
fn a_definition_keeps_the_versions_that_may_be_stored() {
    let gvk = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let version =
        |name: &str| json!({"name": name, "storage": name == "v2", "schema": {"openAPIV3Schema": {}}});
    let definition = |versions: &[&str]| {
        let versions: Vec<Value> = versions.iter().map(|name| version(name)).collect();
        let names =
            json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
        json!({"metadata": {"name": "things.lab.io", "resourceVersion": "1"}, "status": {"storedVersions": ["v1", "v2"]},
            "spec": {"group": "lab.io", "scope": "Cluster", "names": names, "versions": versions,
                "conversion": {"strategy": "None"}}})
    };
    let (both, one) = (definition(&["v1", "v2"]), definition(&["v2"]));
    assert_eq!(validate_update(gvk, &both, &both), []);
    let text = aggregate(&validate_update(gvk, &one, &both));
    assert!(
        text.starts_with(
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was"
        ),
        "{text}"
    );
}
