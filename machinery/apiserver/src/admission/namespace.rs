//! Namespaces: objects live in those that exist, and none are born in one that is going.

use crate::registry;
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

const NAMESPACES: Subject<'static> = Subject {
    group: "",
    name: "namespaces",
};

/// Namespaces that every cluster has; they are never deleted.
pub(crate) const PERMANENT: &[&str] = &["default", "kube-system", "kube-public"];

/// Refuses an object in a namespace that is missing or going.
pub(crate) fn check_create(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    if !resource.namespaced {
        return Ok(());
    }
    let Some(namespaces) = registry::built_in().find("", "v1", "namespaces") else {
        return Ok(());
    };
    let Some(stored) = server.store.get(&namespaces.key("", namespace)) else {
        return Err(ApiError::not_found(NAMESPACES, namespace));
    };
    if stored.value.links().deletion_timestamp.is_none() {
        return Ok(());
    }
    let mut error = ApiError::forbidden(
        resource.subject(),
        name,
        format_args!("unable to create new content in namespace {namespace} because it is being terminated"),
    );
    if let Some(details) = &mut error.details {
        let cause = serde_json::json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        details["causes"] = serde_json::json!([cause]);
    }
    Err(error)
}

/// Refuses the deletion of a namespace without which there is no cluster.
pub(crate) fn check_delete(resource: &Resource, name: &str) -> Result<(), ApiError> {
    if resource.group.is_empty() && resource.kind == "Namespace" && PERMANENT.contains(&name) {
        return Err(ApiError::forbidden(
            resource.subject(),
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}
