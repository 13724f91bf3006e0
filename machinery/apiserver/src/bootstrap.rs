//! What every cluster has from the start: its namespaces, and the usual roles.

use serde_json::json;

use crate::ops::WriteOptions;
use crate::ops::create::create;
use crate::registry::built_in;
use crate::server::Inner;
use crate::status::ApiError;

const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// For the Pods without which a cluster does not work.
const PRIORITY_CLASSES: &[(&str, i64, &str)] = &[
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Makes what is missing; leaves alone what is there.
pub(crate) async fn ensure(server: &Inner, roles: bool) -> Result<(), ApiError> {
    let options = WriteOptions::internal();
    if let Some(namespaces) = built_in().find("", "v1", "namespaces") {
        for name in NAMESPACES {
            if server.store.get(&namespaces.key("", name)).is_none() {
                let mut content = json!({"metadata": {"name": name}});
                machinery_kinds::defaults::apply("", "v1", "Namespace", &mut content);
                create(server, namespaces, "", content, &options).await?;
            }
        }
    }
    if let Some(classes) = built_in().find("scheduling.k8s.io", "v1", "priorityclasses") {
        for (name, value, description) in PRIORITY_CLASSES {
            if server.store.get(&classes.key("", name)).is_none() {
                let mut content =
                    json!({"metadata": {"name": name}, "value": value, "description": description});
                machinery_kinds::defaults::apply("scheduling.k8s.io", "v1", "PriorityClass", &mut content);
                create(server, classes, "", content, &options).await?;
            }
        }
    }
    if roles {
        for mut object in machinery_auth::bootstrap::bootstrap_objects() {
            let kind = object["kind"].as_str().unwrap_or("").to_owned();
            let plural = format!("{}s", kind.to_ascii_lowercase());
            let Some(resource) = built_in().find("rbac.authorization.k8s.io", "v1", &plural) else {
                continue;
            };
            let namespace = crate::meta::namespace(&object).to_owned();
            if server
                .store
                .get(&resource.key(&namespace, crate::meta::name(&object)))
                .is_none()
            {
                crate::meta::strip_type(&mut object);
                create(server, resource, &namespace, object, &options).await?;
            }
        }
    }
    Ok(())
}
