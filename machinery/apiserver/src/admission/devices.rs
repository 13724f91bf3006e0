//! Claims to devices: access to devices that others use is for namespaces of administrators. And the names of drivers.

use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};

use crate::meta;
use crate::ops::WriteOptions;
use crate::resource::{Resource, key_prefix};
use crate::server::Inner;

const LABEL: &str = "resource.kubernetes.io/admin-access";

/// What is wrong with the requests of a new claim, or of the template of claims.
pub(crate) fn check_admin(server: &Inner, resource: &Resource, content: &Value) -> Option<FieldError> {
    let spec = match (resource.group.as_str(), resource.kind.as_str()) {
        ("resource.k8s.io", "ResourceClaim") => &content["spec"],
        ("resource.k8s.io", "ResourceClaimTemplate") => &content["spec"]["spec"],
        _ => return None,
    };
    let path = FieldPath::from("spec.devices.requests");
    let index = wanted(&spec["devices"]["requests"], |request| &request["exactly"])?;
    refuse(server, content, &path.index(index))
}

/// What is wrong with what a claim is given.
pub(crate) fn check_admin_status(
    server: &Inner,
    resource: &Resource,
    new: &Value,
    old: &Value,
) -> Option<FieldError> {
    if (resource.group.as_str(), resource.kind.as_str()) != ("resource.k8s.io", "ResourceClaim") {
        return None;
    }
    let given = |claim: &Value| {
        wanted(&claim["status"]["allocation"]["devices"]["results"], |result| {
            result
        })
    };
    if given(old).is_some() {
        return None;
    }
    let path = FieldPath::from("status.allocation.devices.results");
    refuse(server, new, &path.index(given(new)?))
}

/// Tells whoever offers devices that a driver's name should not have capitals.
pub(super) fn warn(resource: &Resource, content: &Value, options: &WriteOptions) {
    let driver = content["spec"]["driver"].as_str().unwrap_or("");
    let is_slice = (resource.group.as_str(), resource.kind.as_str()) == ("resource.k8s.io", "ResourceSlice");
    if is_slice && driver != driver.to_lowercase() {
        options.warn(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

/// The first of a list that asks for the access of an administrator.
fn wanted(list: &Value, part: impl Fn(&Value) -> &Value) -> Option<usize> {
    list.as_array()?
        .iter()
        .position(|one| part(one)["adminAccess"] == Value::Bool(true))
}

fn refuse(server: &Inner, content: &Value, path: &FieldPath) -> Option<FieldError> {
    let key = format!("{}{}", key_prefix("", "namespaces"), meta::namespace(content));
    let allowed = server
        .store
        .get(&key)
        .is_some_and(|namespace| namespace.value.label(LABEL) == Some("true"));
    (!allowed).then(|| {
        let why =
            format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
        FieldError::forbidden(&path.child("adminAccess"), why)
    })
}
