//! What a pod needs: configuration, secrets, its account, its claims.

use serde_json::Value;

use super::{Dependency, list};
use crate::object::text;

/// Kinds of volumes that name a Secret: where, below the volume.
const SECRET_VOLUMES: [&str; 10] = [
    "/secret/secretName",
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/storageos/secretRef/name",
];

/// Adds what a pod's spec refers to.
pub fn pod_dependencies(pod_spec: &Value, namespace: &str, found: &mut Vec<Dependency>) {
    let mut add = |kind: &str, name: &str| {
        if !name.is_empty() {
            found.push(Dependency::named("v1", kind, namespace, name));
        }
    };
    for volume in list(&pod_spec["volumes"]) {
        let at = |pointer: &str| {
            volume
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        add("ConfigMap", at("/configMap/name"));
        add("PersistentVolumeClaim", at("/persistentVolumeClaim/claimName"));
        for pointer in SECRET_VOLUMES {
            add("Secret", at(pointer));
        }
        for source in list(&volume["projected"]["sources"]) {
            add("ConfigMap", text(&source["configMap"], "name"));
            add("Secret", text(&source["secret"], "name"));
        }
    }
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for container in list(&pod_spec[field]) {
            for variable in list(&container["env"]) {
                let from = &variable["valueFrom"];
                add("ConfigMap", text(&from["configMapKeyRef"], "name"));
                add("Secret", text(&from["secretKeyRef"], "name"));
            }
            for source in list(&container["envFrom"]) {
                add("ConfigMap", text(&source["configMapRef"], "name"));
                add("Secret", text(&source["secretRef"], "name"));
            }
        }
    }
    for secret in list(&pod_spec["imagePullSecrets"]) {
        add("Secret", text(secret, "name"));
    }
    let account = match text(pod_spec, "serviceAccountName") {
        "" => text(pod_spec, "serviceAccount"),
        account => account,
    };
    if account != "default" {
        add("ServiceAccount", account);
    }
}
