//! What every cluster has from the start: its namespaces, priorities and flows, and the usual roles.

use machinery_value::Value;
use serde_json::json;

use crate::controllers::flows;
use crate::meta;
use crate::ops::WriteOptions;
use crate::ops::create::create;
use crate::registry::built_in;
use crate::resource::Resource;
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

/// Makes what is missing; leaves alone what is there. A server without the usual roles has none of the usual flows, either:
/// it is one of very many, and small.
pub(crate) async fn ensure(server: &Inner, roles: bool) -> Result<(), ApiError> {
    let mut wanted: Vec<(&'static Resource, Value)> = Vec::new();
    if let Some(namespaces) = built_in().find("", "v1", "namespaces") {
        wanted.extend(
            NAMESPACES
                .iter()
                .map(|name| (&**namespaces, json!({"metadata": {"name": name}}))),
        );
    }
    if let Some(classes) = built_in().find("scheduling.k8s.io", "v1", "priorityclasses") {
        wanted.extend(PRIORITY_CLASSES.iter().map(|(name, value, description)| {
            (
                &**classes,
                json!({"metadata": {"name": name}, "value": value, "description": description}),
            )
        }));
    }
    // Namespaces come first: roles live in some of them.
    make(server, std::mem::take(&mut wanted)).await?;
    if roles {
        for object in machinery_auth::bootstrap::bootstrap_objects() {
            let plural = format!("{}s", object["kind"].as_str().unwrap_or("").to_ascii_lowercase());
            if let Some(resource) = built_in().find("rbac.authorization.k8s.io", "v1", &plural) {
                wanted.push((&**resource, object));
            }
        }
        for object in machinery_kinds::flows::bootstrap_objects() {
            let plural = format!("{}s", object["kind"].as_str().unwrap_or("").to_ascii_lowercase());
            if let Some(resource) = built_in().find("flowcontrol.apiserver.k8s.io", "v1", &plural) {
                wanted.push((&**resource, object.clone()));
            }
        }
    }
    make(server, wanted).await?;
    // A server that is ready has said of its flows what there is to say.
    flows::tend_every(server).await
}

/// Creates all at once, so that they share their way to the disk.
async fn make(server: &Inner, wanted: Vec<(&'static Resource, Value)>) -> Result<(), ApiError> {
    // A server starts, whatever the policies that it finds say.
    let options = WriteOptions::internal().judged();
    let missing = wanted.into_iter().filter_map(|(resource, mut object)| {
        let namespace = meta::namespace(&object).to_owned();
        if server
            .store
            .get(&resource.key(&namespace, meta::name(&object)))
            .is_some()
        {
            return None;
        }
        meta::strip_type(&mut object);
        machinery_kinds::defaults::apply(&resource.group, &resource.version, &resource.kind, &mut object);
        let options = &options;
        Some(async move { create(server, resource, &namespace, object, options).await })
    });
    futures::future::try_join_all(missing).await.map(drop)
}
