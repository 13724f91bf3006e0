//! Errors as clients see them: Kubernetes `Status` objects, with the causes that clients parse.

use http::{HeaderValue, Response, header};
use machinery_value::Value;
use machinery_value::field::{FieldError, aggregate};
use serde_json::{Map, json};

use crate::body::Body;
use crate::negotiate::Accept;

/// A request that failed, with everything its `Status` answer says.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty where the real server gives none.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// The `details` object, if any.
    pub details: Option<Value>,
    /// A token with which an expired list can go on, inconsistently.
    pub continue_token: Option<String>,
    /// Seconds after which the client should try again.
    pub retry_after: Option<u32>,
    /// What to tell the client besides.
    pub warnings: Vec<String>,
}

/// What an error is about: a resource (`deployments.apps`) or a kind (`Deployment.apps`).
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural resource name, or the kind.
    pub name: &'a str,
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

fn details(subject: Subject<'_>, name: &str) -> Map<String, Value> {
    let mut details = Map::new();
    if !name.is_empty() {
        details.insert("name".into(), json!(name));
    }
    if !subject.group.is_empty() {
        details.insert("group".into(), json!(subject.group));
    }
    if !subject.name.is_empty() {
        details.insert("kind".into(), json!(subject.name));
    }
    details
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            retry_after: None,
            warnings: Vec::new(),
        }
    }

    fn about(mut self, subject: Subject<'_>, name: &str) -> Self {
        self.details = Some(Value::Object(details(subject, name)));
        self
    }

    /// 404: no such object.
    pub fn not_found(resource: Subject<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} \"{name}\" not found")).about(resource, name)
    }

    /// 404: no such resource or subresource.
    pub fn no_resource() -> Self {
        let mut error = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// 409: an object of that name exists.
    pub fn already_exists(resource: Subject<'_>, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{resource} \"{name}\" already exists"),
        )
        .about(resource, name)
    }

    /// 409: the object is not what the request expected.
    pub fn conflict(resource: Subject<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}"),
        )
        .about(resource, name)
    }

    /// 409: the resource version in the request is not the newest.
    pub fn modified(resource: Subject<'_>, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 422: the object breaks rules of its kind.
    pub fn invalid(kind: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.kind.reason(), "message": e.message, "field": e.field}))
            .collect();
        let mut error = Self::new(
            422,
            "Invalid",
            format!("{kind} \"{name}\" is invalid: {}", aggregate(errors)),
        );
        let mut details = details(kind, name);
        details.insert("causes".into(), Value::Array(causes));
        error.details = Some(Value::Object(details));
        error
    }

    /// 409: others own fields that an apply would change.
    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        error.details = Some(json!({"causes": causes}));
        error
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 403: the request was understood and refused.
    pub fn forbidden(resource: Subject<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 403 with a finished message.
    pub fn forbidden_text(message: impl Into<String>) -> Self {
        let mut error = Self::new(403, "Forbidden", message);
        error.details = Some(json!({}));
        error
    }

    /// 401: nobody we know.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 410: history before this point is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 429: come back later.
    pub fn too_many_requests() -> Self {
        let mut error = Self::new(
            429,
            "TooManyRequests",
            "too many requests in flight on this server, please try again later",
        );
        error.details = Some(json!({"retryAfterSeconds": 1}));
        error.retry_after = Some(1);
        error
    }

    /// 429: a disruption budget does not let a Pod go.
    pub fn over_budget(why: String, retry_after: Option<u32>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut error = Self::new(429, "TooManyRequests", message);
        let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
        if let Some(seconds) = retry_after {
            details["retryAfterSeconds"] = json!(seconds);
        }
        error.details = Some(details);
        error.retry_after = retry_after;
        error
    }

    /// 504: the resource version asked for is in the future.
    pub fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        let mut error = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        );
        error.details = Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        error.retry_after = Some(1);
        error
    }

    /// 408: the body does not come.
    pub fn body_too_slow() -> Self {
        Self::new(
            408,
            "Timeout",
            "Timeout: the body of the request did not come in time",
        )
    }

    /// 415: a body in a format nobody here reads.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 406: an answer in a format nobody here writes.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!(
                "only the following media types are accepted: {}",
                offered.join(", ")
            ),
        )
    }

    /// 405: this resource does not do that.
    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// 405 as the one handler of all custom resources says it; `verb` is empty for methods that are none.
    pub fn verb_not_supported(resource: Subject<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).about(resource, "")
    }

    /// 413: too much.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 422 with the fixed text for a patch that could not be carried out on the object.
    pub fn unprocessable() -> Self {
        let mut error = Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
        error.details = Some(json!({}));
        error
    }

    /// 415 as the router words it, for a type that no kind takes.
    pub fn unroutable_media_type() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        error.details = Some(json!({}));
        error
    }

    /// 406 as the router words it, for a client that reads nothing of what is written here.
    pub fn unroutable_accept(offered: &[&str]) -> Self {
        let message = format!(
            "406: Not Acceptable\n\nAvailable representations: {}",
            offered.join(", ")
        );
        let mut error = Self::new(406, "NotAcceptable", message);
        error.details = Some(json!({}));
        error
    }

    /// 406 with a message of its own.
    pub fn wrong_shape(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 500: our own fault.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut error = Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        error.details = Some(json!({"causes": [{"message": message.to_string()}]}));
        error
    }

    /// 500 without a reason: how the real server answers where it did not expect to fail.
    pub fn unclassified(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// Whether this is a lost race that a retry may win.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Whether an object of that name was there already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Whether the object was not there.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// The `Status` object of this error.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), json!(token));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }

    /// The HTTP answer of this error.
    pub(crate) fn into_response(self, accept: Accept) -> Response<Body> {
        let mut response = crate::serve::json_answer(self.code, accept, &self.to_status());
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        crate::serve::warn(&mut response, &self.warnings);
        response
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
