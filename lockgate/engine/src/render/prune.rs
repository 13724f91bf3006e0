//! What a manifest does not carry: what the hub's server wrote, and what belongs to the hub's copy alone.

use serde_json::{Map, Value};

use crate::object;

/// Metadata that servers write, or that is about other objects of the same cluster.
pub(crate) const SERVER_METADATA: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];

/// The type of Secrets that hold a service account's token.
pub(crate) const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";
/// On such Secrets: the account's uid.
pub(crate) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Labels by which a Job finds its pods; the server makes them up.
const JOB_UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
/// Labels by which people find a Job's pods; the server adds them.
const JOB_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// Removes from a manifest what must not be sent.
pub fn prune(manifest: &mut Value) {
    let kind = object::text(manifest, "kind").to_owned();
    let Some(fields) = manifest.as_object_mut() else {
        return;
    };
    remove_servers(fields);
    match kind.as_str() {
        "Deployment" => remove_annotations(
            fields,
            &[
                "deployment.kubernetes.io/revision",
                "deployment.kubernetes.io/revision-history",
            ],
        ),
        "Job" => prune_job(fields),
        "Secret" if fields.get("type").and_then(Value::as_str) == Some(TOKEN_SECRET) => {
            fields.remove("data");
            remove_annotations(fields, &[ACCOUNT_UID]);
        }
        "ServiceAccount" => prune_service_account(fields),
        "Service" => prune_service(fields),
        "PersistentVolumeClaim" => remove_annotations(fields, &["volume.kubernetes.io/selected-node"]),
        _ => {}
    }
}

/// Removes what servers write: it moves without anybody wanting something, so that nothing may follow from it.
pub(super) fn prune_servers(manifest: &mut Value) {
    if let Some(fields) = manifest.as_object_mut() {
        remove_servers(fields);
    }
}

fn remove_servers(fields: &mut Map<String, Value>) {
    fields.remove("status");
    if let Some(metadata) = map_at(fields, &["metadata"]) {
        for field in SERVER_METADATA {
            metadata.remove(field);
        }
    }
}

/// A member that removed a finished Job would get it again, so the time to live stays with the template.
fn prune_job(fields: &mut Map<String, Value>) {
    let Some(spec) = map_at(fields, &["spec"]) else {
        return;
    };
    spec.remove("ttlSecondsAfterFinished");
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    if let Some(labels) = map_at(spec, &["selector", "matchLabels"]) {
        JOB_UID.iter().for_each(|key| drop(labels.remove(*key)));
    }
    if let Some(labels) = map_at(spec, &["template", "metadata", "labels"]) {
        let keys = JOB_UID.iter().chain(&JOB_NAME);
        keys.for_each(|key| drop(labels.remove(*key)));
    }
}

/// Tokens that the hub made for the account mean nothing elsewhere.
fn prune_service_account(fields: &mut Map<String, Value>) {
    let name = map_at(fields, &["metadata"])
        .and_then(|metadata| metadata.get("name")?.as_str())
        .unwrap_or_default();
    let prefix = format!("{name}-token-");
    if let Some(Value::Array(secrets)) = fields.get_mut("secrets") {
        secrets.retain(|secret| !object::text(secret, "name").starts_with(&prefix));
    }
}

/// Addresses are the member's to give; a service that is to have none says so.
fn prune_service(fields: &mut Map<String, Value>) {
    let Some(spec) = map_at(fields, &["spec"]) else {
        return;
    };
    if spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default() != "None" {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
}

fn remove_annotations(fields: &mut Map<String, Value>, keys: &[&str]) {
    if let Some(annotations) = map_at(fields, &["metadata", "annotations"]) {
        keys.iter().for_each(|key| drop(annotations.remove(*key)));
    }
}

/// The map at a path below `fields`, if there is one.
pub(crate) fn map_at<'a>(
    fields: &'a mut Map<String, Value>,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(fields, |map, key| map.get_mut(*key)?.as_object_mut())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is left of an object.
    fn pruned(mut object: Value) -> Value {
        prune(&mut object);
        object
    }

    #[test]
    fn what_servers_write_is_not_sent() {
        let object = json!({
            "kind": "ConfigMap", "data": {"a": "b"}, "status": {"x": 1},
            "metadata": {
                "name": "c", "generateName": "c-", "labels": {"l": "1"},
                "creationTimestamp": "2026-11-15T08:59:20Z", "deletionTimestamp": "2026-11-15T08:59:20Z",
                "deletionGracePeriodSeconds": 1, "generation": 2, "managedFields": [], "resourceVersion": "1",
                "selfLink": "/x", "uid": "u", "ownerReferences": [{}], "finalizers": ["f"],
            },
        });
        let left = json!({
            "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "c", "generateName": "c-", "labels": {"l": "1"}},
        });
        assert_eq!(pruned(object), left);
        assert_eq!(pruned(json!({"metadata": 1})), json!({"metadata": 1}));
        assert_eq!(pruned(json!([1])), json!([1]));
    }

    #[test]
    fn each_kind_leaves_behind_what_is_the_hubs() {
        let job = |spec: Value| json!({"kind": "Job", "spec": spec});
        let generated = json!({
            "controller-uid": "1", "batch.kubernetes.io/controller-uid": "1", "job-name": "j",
            "batch.kubernetes.io/job-name": "j", "app": "x",
        });
        let table = [
            (
                json!({"kind": "Deployment", "metadata": {"annotations": {
                    "deployment.kubernetes.io/revision": "3", "deployment.kubernetes.io/revision-history": "1,2", "a": "b",
                }}}),
                json!({"kind": "Deployment", "metadata": {"annotations": {"a": "b"}}}),
            ),
            (
                job(json!({
                    "ttlSecondsAfterFinished": 5, "completions": 3,
                    "selector": {"matchLabels": {"controller-uid": "1", "batch.kubernetes.io/controller-uid": "1"}},
                    "template": {"metadata": {"labels": generated.clone()}},
                })),
                job(json!({
                    "completions": 3, "selector": {"matchLabels": {}},
                    "template": {"metadata": {"labels": {"app": "x"}}},
                })),
            ),
            (
                job(json!({
                    "ttlSecondsAfterFinished": 5, "manualSelector": true,
                    "selector": {"matchLabels": {"controller-uid": "1"}},
                    "template": {"metadata": {"labels": generated.clone()}},
                })),
                job(json!({
                    "manualSelector": true, "selector": {"matchLabels": {"controller-uid": "1"}},
                    "template": {"metadata": {"labels": generated}},
                })),
            ),
            (
                json!({"kind": "Secret", "type": TOKEN_SECRET, "data": {"token": "x"},
                       "metadata": {"annotations": {ACCOUNT_UID: "u", "kubernetes.io/service-account.name": "a"}}}),
                json!({"kind": "Secret", "type": TOKEN_SECRET,
                       "metadata": {"annotations": {"kubernetes.io/service-account.name": "a"}}}),
            ),
            (
                json!({"kind": "Secret", "type": "Opaque", "data": {"token": "x"}}),
                json!({"kind": "Secret", "type": "Opaque", "data": {"token": "x"}}),
            ),
            (
                json!({"kind": "ServiceAccount", "metadata": {"name": "a"},
                       "secrets": [{"name": "a-token-1"}, {"name": "a-token-2"}, {"name": "mine"}]}),
                json!({"kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "mine"}]}),
            ),
            (
                json!({"kind": "Service", "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": []}}),
                json!({"kind": "Service", "spec": {"ports": []}}),
            ),
            (
                json!({"kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
                json!({"kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
            ),
            (
                json!({"kind": "PersistentVolumeClaim",
                       "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n", "a": "b"}}}),
                json!({"kind": "PersistentVolumeClaim", "metadata": {"annotations": {"a": "b"}}}),
            ),
        ];
        for (object, left) in table {
            assert_eq!(pruned(object.clone()), left, "{object}");
        }
    }
}
