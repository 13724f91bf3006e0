//! Requests about resources: which verb, on what, and who answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response};

use crate::body::Body;
use crate::negotiate::{Accept, OFFERED};
use crate::ops::read;
use crate::ops::select::Selection;
use crate::ops::update::Part;
use crate::resource::Resource;
use crate::serve::{Call, deletes, lists, patch, respond, reviews, subresources, watch, writes};
use crate::status::ApiError;

/// Answers a request about a resource.
pub(crate) async fn dispatch(call: &Call, method: &Method, body: Bytes) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let Some(resource) = call
        .server
        .registry
        .find(&info.group, &info.version, &info.resource)
    else {
        return missing(call);
    };
    let in_namespace = !info.namespace.is_empty() && info.resource != "namespaces";
    let across = resource.namespaced && !in_namespace;
    if (in_namespace && !resource.namespaced) || (across && !info.name.is_empty()) {
        return missing(call);
    }
    let reads = matches!(info.verb, "list" | "watch");
    if across && !reads && method != Method::HEAD && resource.custom().is_some() {
        // A built-in kind has a path across namespaces that lacks this method; a custom one has no such path.
        return missing(call);
    }
    // The handler of custom resources takes HEAD for the GET that it stands for.
    if (method == Method::HEAD && resource.custom().is_none()) || (across && !reads) {
        return Err(ApiError::method_not_allowed());
    }
    if info.name.contains('/') {
        // A name is one part of a path, whatever was escaped in it.
        return Err(ApiError::no_resource());
    }
    let mut response = if info.verb == "watch" && info.subresource.is_empty() {
        accept(call, &resource).and_then(|accept| watch::answer(call, &resource, accept))
    } else if let Some(review) = reviews::answer(call, &resource, method, &body)? {
        Ok(review)
    } else if !info.subresource.is_empty() {
        subresources::dispatch(call, &resource, method, body).await
    } else {
        verb(call, &resource, body).await
    };
    if let Some(warning) = deprecation(&resource) {
        if let Some(trail) = &call.trail {
            trail.annotate("k8s.io/deprecated".to_owned(), "true".to_owned());
        }
        match &mut response {
            Ok(response) => respond::warn(response, &[warning]),
            Err(error) => error.warnings.push(warning),
        }
    }
    response
}

/// What the client accepts. Custom resources share one handler, which refuses in other words than the routes of built-in
/// kinds do.
pub(super) fn accept(call: &Call, resource: &Resource) -> Result<Accept, ApiError> {
    Accept::parse(&call.headers).map_err(|error| match resource.custom() {
        Some(_) => ApiError::not_acceptable(OFFERED),
        None => error,
    })
}

/// A resource that is not there: in a group of ours a Status says so, elsewhere the path is just unknown.
fn missing(call: &Call) -> Result<Response<Body>, ApiError> {
    let ours = crate::registry::built_in()
        .resources()
        .iter()
        .any(|r| r.group == call.info.group);
    if ours {
        Err(ApiError::no_resource())
    } else {
        Ok(crate::serve::text(404, "404 page not found\n"))
    }
}

async fn verb(call: &Call, resource: &Arc<Resource>, body: Bytes) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    if !resource.verbs.iter().any(|v| v == info.verb) {
        return Err(not_allowed(resource, info.verb));
    }
    let accept = accept(call, resource)?;
    let custom = resource.custom().is_some();
    match info.verb {
        "get" => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        "list" => {
            let selection = Selection::parse(resource, &call.query, &info.name)?;
            let listing = read::list(call, resource, &selection).await?;
            lists::answer(call, resource, accept, listing).await
        }
        "create" if info.name.is_empty() || custom => writes::post(call, resource, accept, &body).await,
        "update" if !info.name.is_empty() => writes::put(call, resource, Part::Main, accept, &body).await,
        "patch" if !info.name.is_empty() => patch::answer(call, resource, Part::Main, accept, body).await,
        "delete" => deletes::one(call, resource, accept, &body).await,
        "deletecollection" => deletes::collection(call, resource, accept, &body).await,
        "update" | "patch" if custom => {
            if info.verb == "patch" {
                patch::check_type(call, resource)?;
            }
            Err(ApiError::bad_request("name must be provided"))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// The refusal of a method. Custom resources share one handler, which names what it lacks.
pub(super) fn not_allowed(resource: &Resource, verb: &str) -> ApiError {
    match resource.custom() {
        Some(_) => ApiError::verb_not_supported(resource.subject(), verb),
        None => ApiError::method_not_allowed(),
    }
}

/// What clients of an ageing version are told with every answer.
fn deprecation(resource: &Resource) -> Option<String> {
    match (resource.custom(), resource.group.as_str(), resource.kind.as_str()) {
        (Some(custom), _, _) => custom.deprecation.clone(),
        (None, "", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
        }
        (None, "", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+".to_owned()),
        _ => None,
    }
}
