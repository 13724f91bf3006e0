//! ValidatingAdmissionPolicies: rules in CEL about what may be written, made and bound by objects of the API itself.
//!
//! [`PolicySet`] holds the policies in force, compiled when one of them changes. [`check`] runs on every write; it only
//! gathers what the policies may ask for, and only when they ask. What they match (`matching`), what their
//! expressions say (`expression`) and what follows from it (`decide`) are decided without a server.
//!
//! What always holds: without a policy that has a binding a write costs one read of a lock; an expression that fails
//! refuses the request or is ignored, as its policy says, and never ends anything else.

mod compile;
mod decide;
mod expression;
mod matching;
mod source;
mod vet;
mod world;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use machinery_value::Value;
use serde_json::json;

use crate::admission::Operation;
use crate::ops::WriteOptions;
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

pub(crate) use vet::{check_policy, expression_warnings};

/// Resources about which policies have no say: the policies themselves, and questions that leave nothing behind.
const EXEMPT: [(&str, &str); 10] = [
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// What is asked to be written.
pub(crate) struct Request<'a> {
    pub(crate) resource: &'a Resource,
    /// Such as `status`; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) operation: Operation,
    pub(crate) name: &'a str,
    /// The object as it would be; none on delete. Without apiVersion and kind.
    pub(crate) new: Option<&'a Value>,
    /// The object as it is; none on create.
    pub(crate) old: Option<&'a Value>,
    pub(crate) options: &'a WriteOptions,
}

/// The policies and bindings in force, compiled.
#[derive(Default)]
pub(crate) struct PolicySet {
    hooks: Arc<[compile::Hook]>,
}

impl PolicySet {
    /// Compiles the policies that have a binding.
    pub(crate) fn new(policies: Vec<Value>, bindings: Vec<Value>) -> Self {
        Self {
            hooks: compile::hooks(&policies, &bindings).into(),
        }
    }
}

/// Refuses what a policy with a binding denies. What others warn of travels with the options, also with a refusal.
pub(crate) fn check(server: &Inner, request: &Request<'_>) -> Result<(), ApiError> {
    let hooks = server.indexes.policies.read().hooks.clone();
    let Resource { group, plural, .. } = request.resource;
    if hooks.is_empty() || EXEMPT.contains(&(group.as_str(), plural.as_str())) {
        return Ok(());
    }
    let gathered = world::Gathered::new(server, request);
    let trail = request.options.trail.as_ref();
    let outcome = decide::decide(&hooks, &gathered.asked(), &gathered, trail.is_some());
    if let Some(trail) = trail {
        for (key, value) in outcome.annotations {
            trail.annotate(key, value);
        }
    }
    for warning in outcome.warnings {
        request.options.warn(warning);
    }
    match outcome.denial {
        Some(denial) => Err(refusal(request, &denial)),
        None => Ok(()),
    }
}

fn refusal(request: &Request<'_>, denial: &decide::Denial) -> ApiError {
    let mut error = ApiError::forbidden(request.resource.subject(), request.name, &denial.message);
    (error.reason, error.code) = denial.reason.status();
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{"message": denial.message}]);
    }
    error
}
