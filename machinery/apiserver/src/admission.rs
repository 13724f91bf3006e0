//! Admission: what may change, beyond what the kind itself demands.

pub(crate) mod certificates;
pub(crate) mod devices;
mod grant;
pub(crate) mod namespace;
mod pod;
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

/// Refuses kinds that would be stored and then ignored: a guard that guards nothing is worse than none. And refuses
/// custom objects whose definition is going.
pub(crate) fn check_served(resource: &Resource, name: &str) -> Result<(), ApiError> {
    if resource.is_going {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(resource.subject(), name, why));
    }
    let webhook = matches!(
        resource.kind.as_str(),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" | "MutatingAdmissionPolicy"
    );
    if resource.group == "admissionregistration.k8s.io" && webhook {
        let why = "this server calls no webhooks and changes nothing by policy, and what is not executed is not stored; write \
                   the rule as a ValidatingAdmissionPolicy, or use a kube-apiserver";
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
    options: &WriteOptions,
) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Service") => service::allocate_addresses(server, new, old),
        ("", "Pod") if old.is_none() => pod::complete(server, new),
        _ if certificates::concerns(resource) => {
            certificates::complete(server, new, old, &options.user);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Tells the client what is odd about an object that is valid.
pub(crate) fn warn(resource: &Resource, new: &Value, old: Option<&Value>, options: &WriteOptions) {
    if resource.custom().is_none() {
        for warning in machinery_kinds::warnings::warnings(resource.gvk(), new, old) {
            options.warn(warning);
        }
    }
}

/// What is asked for, for the policies to judge.
pub(crate) struct Asked<'a> {
    pub(crate) resource: &'a Resource,
    /// Such as `status`; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) operation: Operation,
    pub(crate) name: &'a str,
    /// The name in the request's path; empty for a POST.
    pub(crate) path_name: &'a str,
}

/// Checks what a role or a binding grants and who decides about certificates, and asks the ValidatingAdmissionPolicies. Their warnings travel with the options.
pub(crate) fn validate(
    server: &Inner,
    asked: &Asked<'_>,
    new: Option<&Value>,
    old: Option<&Value>,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let Asked {
        resource,
        subresource,
        operation,
        name,
        ..
    } = *asked;
    if let Some(new) = new {
        grant::check(server, asked, new, old, &options.user)?;
        if certificates::concerns(resource) {
            certificates::check(server, asked, new, old, &options.user)?;
        }
        devices::warn(resource, new, options);
    }
    if options.is_judged {
        return Ok(());
    }
    let request = policy::Request {
        resource,
        subresource,
        operation,
        name,
        new,
        old,
        options,
    };
    policy::check(server, &request)
}
