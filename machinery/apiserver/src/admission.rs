//! Admission: what may change, beyond what the kind itself demands.

pub(crate) mod namespace;
pub(crate) mod policy;
pub(crate) mod service;

use machinery_value::Value;

use crate::ops::WriteOptions;
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As policies name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Refuses kinds that would be stored and then ignored: a guard that guards nothing is worse than none.
pub(crate) fn check_served(resource: &Resource, name: &str) -> Result<(), ApiError> {
    let webhook = matches!(
        resource.kind.as_str(),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" | "MutatingAdmissionPolicy"
    );
    if resource.group == "admissionregistration.k8s.io" && webhook {
        let why = "this server does not execute it, and what is not executed is not stored; \
                   use a ValidatingAdmissionPolicy";
        return Err(ApiError::forbidden(resource.subject(), name, why));
    }
    Ok(())
}

/// Completes an object with what only the server can know.
pub(crate) fn mutate(
    server: &Inner,
    resource: &Resource,
    new: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if resource.group.is_empty() && resource.kind == "Service" {
        service::allocate_addresses(server, new, old)?;
    }
    Ok(())
}

/// Asks the ValidatingAdmissionPolicies.
pub(crate) fn validate(
    server: &Inner,
    resource: &Resource,
    operation: Operation,
    name: &str,
    new: Option<&Value>,
    old: Option<&Value>,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    policy::check(
        server,
        &policy::Request {
            resource,
            subresource: "",
            operation,
            name,
            new,
            old,
            options,
        },
    )
    .map(drop)
}
