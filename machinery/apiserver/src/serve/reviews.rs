//! Reviews: requests that store nothing and ask the server about itself.

use http::{Method, Response};
use machinery_auth::review::{self, AccessReview};
use machinery_value::Value;

use crate::body::Body;
use crate::negotiate::Accept;
use crate::resource::Resource;
use crate::serve::subresources::read_typed;
use crate::serve::writes::{with_warnings, write_options};
use crate::serve::{Call, respond};
use crate::status::{ApiError, Subject};

/// The answer, if the resource is a review.
pub(crate) fn answer(
    call: &Call,
    resource: &Resource,
    method: &Method,
    body: &[u8],
) -> Result<Option<Response<Body>>, ApiError> {
    if !matches!(
        resource.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    ) {
        return Ok(None);
    }
    if method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let accept = Accept::parse(&call.headers)?;
    let options = write_options(call, "CreateOptions")?;
    let object = read_typed(call, resource.gvk(), &options, body)?;
    let answer = review(call, resource, &object).map(|answer| respond::value(201, accept, &answer));
    with_warnings(&options, answer).map(Some)
}

fn review(call: &Call, resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    Ok(match resource.kind.as_str() {
        "SelfSubjectReview" => review::self_subject_review(&call.user, call.server.now()),
        "SelfSubjectAccessReview" => access(call, resource, AccessReview::SelfSubject, object)?,
        "SubjectAccessReview" => access(call, resource, AccessReview::Subject, object)?,
        "LocalSubjectAccessReview" => access(call, resource, AccessReview::LocalSubject, object)?,
        "SelfSubjectRulesReview" => {
            let namespace = object["spec"]["namespace"].as_str().unwrap_or("");
            if namespace.is_empty() {
                return Err(ApiError::bad_request("no namespace on request"));
            }
            review::self_subject_rules_review(
                &call.server.indexes.rbac.read().rules_for(&call.user, namespace),
            )
        }
        "TokenReview" if object["spec"]["token"].as_str().unwrap_or("").is_empty() => {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        "TokenReview" => token(call, object),
        _ => return Err(ApiError::no_resource()),
    })
}

fn access(call: &Call, resource: &Resource, kind: AccessReview, object: &Value) -> Result<Value, ApiError> {
    let errors = kind.validate(object);
    if !errors.is_empty() {
        // These registries do not say which kind they are about.
        return Err(ApiError::invalid(
            Subject {
                group: &resource.group,
                name: "",
            },
            "",
            &errors,
        ));
    }
    let user = kind.user(object, &call.user);
    let attributes = kind.attributes(object, &user);
    let decision = call.server.indexes.rbac.read().authorize(&attributes);
    Ok(kind.answer(object, &decision))
}

fn token(call: &Call, object: &Value) -> Value {
    let token = object["spec"]["token"].as_str().unwrap_or("");
    let audiences: Vec<String> = object["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|a| a.as_str().map(str::to_owned))
        .collect();
    let authenticator = &call.server.authenticator;
    if let Some(user) = authenticator.known(token) {
        return review::token_review(object, Ok((user, &[])));
    }
    match authenticator.verify(&call.server, token, &audiences) {
        Ok(verified) => {
            let user = verified.user.clone().authenticated();
            review::token_review(object, Ok((&user, &verified.audiences)))
        }
        Err(error) => review::token_review(object, Err(&error.to_string())),
    }
}
