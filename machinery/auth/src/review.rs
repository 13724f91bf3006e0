//! The answers of the review kinds, which ask the server about itself: who am I, may I, may they, what may I.
//!
//! Each function takes what the client sent and what was found out, and gives the whole object to answer with.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::{Map, Value};
use serde_json::json;

use crate::rbac::{Attributes, Decision, UserRules};
use crate::token::{Issued, TokenRequest};
use crate::user::{UserInfo, text, texts};

const AUTHENTICATION: &str = "authentication.k8s.io/v1";
const AUTHORIZATION: &str = "authorization.k8s.io/v1";

/// The three kinds that ask whether something is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessReview {
    /// May I.
    SelfSubject,
    /// May they.
    Subject,
    /// May they, in the namespace of the request.
    LocalSubject,
}

impl AccessReview {
    /// The kind's name.
    pub fn kind(self) -> &'static str {
        match self {
            Self::SelfSubject => "SelfSubjectAccessReview",
            Self::Subject => "SubjectAccessReview",
            Self::LocalSubject => "LocalSubjectAccessReview",
        }
    }

    /// What is wrong with such an object; nothing if the list is empty.
    pub fn validate(self, object: &Value) -> Vec<FieldError> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let spec_path = FieldPath::new("spec");
        let resource = spec.get("resourceAttributes").filter(|v| !v.is_null());
        let path = spec.get("nonResourceAttributes").filter(|v| !v.is_null());
        let mut errors = Vec::new();
        let mut invalid = |path: FieldPath, value: &Value, detail: &str| {
            errors.push(FieldError::invalid(&path, value, detail));
        };
        match (resource, path) {
            (Some(_), Some(path)) => invalid(
                spec_path.child("nonResourceAttributes"),
                // Shown as the server's own type has it.
                &json!({"Path": text(path, "path"), "Verb": text(path, "verb")}),
                "cannot be specified in combination with resourceAttributes",
            ),
            (None, None) => invalid(
                spec_path.child("resourceAttributes"),
                &Value::Null,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ),
            _ => {}
        }
        if self != Self::SelfSubject && text(spec, "user").is_empty() && texts(spec.get("groups")).is_empty()
        {
            invalid(
                spec_path.child("user"),
                &json!(""),
                "at least one of user or group must be specified",
            );
        }
        if self == Self::LocalSubject {
            let namespace = text(object.get("metadata").unwrap_or(&Value::Null), "namespace");
            if let Some(asked) = resource
                .map(|r| text(r, "namespace"))
                .filter(|asked| *asked != namespace)
            {
                let path = FieldPath::from("spec.resourceAttributes.namespace");
                invalid(path, &json!(asked), "must match metadata.namespace");
            }
            if let Some(path) = path {
                invalid(
                    spec_path.child("nonResourceAttributes"),
                    path,
                    "disallowed on this kind of request",
                );
            }
        }
        errors
    }

    /// Whom a review asks about: the caller, or whom the spec names.
    pub fn user(self, object: &Value, caller: &UserInfo) -> UserInfo {
        match self {
            Self::SelfSubject => caller.clone(),
            _ => UserInfo::from_fields(object.get("spec").unwrap_or(&Value::Null), "user"),
        }
    }

    /// What a (valid) review asks about `user`.
    pub fn attributes<'a>(self, object: &'a Value, user: &'a UserInfo) -> Attributes<'a> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        match spec.get("resourceAttributes").filter(|v| !v.is_null()) {
            Some(asked) => Attributes {
                subresource: text(asked, "subresource"),
                namespace: text(asked, "namespace"),
                name: text(asked, "name"),
                ..Attributes::resource(
                    user,
                    text(asked, "verb"),
                    text(asked, "group"),
                    text(asked, "resource"),
                )
            },
            None => {
                let asked = spec.get("nonResourceAttributes").unwrap_or(&Value::Null);
                Attributes::path(user, text(asked, "verb"), text(asked, "path"))
            }
        }
    }

    /// The answer: the object with its status.
    pub fn answer(self, object: &Value, decision: &Decision) -> Value {
        let mut status = Map::new();
        status.insert("allowed".into(), decision.allowed.into());
        let reason = decision.reason();
        if !reason.is_empty() {
            status.insert("reason".into(), reason.into());
        }
        with_status(AUTHORIZATION, self.kind(), object, Value::Object(status))
    }
}

/// The answer to a SelfSubjectReview.
pub fn self_subject_review(user: &UserInfo, now: Timestamp) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": AUTHENTICATION,
        "metadata": {"creationTimestamp": seconds(now)},
        "status": {"userInfo": user.to_json()},
    })
}

/// The answer to a SelfSubjectRulesReview. The server must refuse one without `spec.namespace` (400,
/// `no namespace on request`).
pub fn self_subject_rules_review(rules: &UserRules<'_>) -> Value {
    let mut resources = Vec::new();
    let mut paths = Vec::new();
    for rule in &rules.rules {
        let mut shown = rule.to_json();
        let fields = shown.as_object_mut();
        if let (Some(fields), false) = (fields, rule.resources.is_empty()) {
            fields.remove("nonResourceURLs");
            resources.push(shown);
        }
        if !rule.non_resource_urls.is_empty() {
            let whole = rule.to_json();
            paths.push(json!({"verbs": whole["verbs"], "nonResourceURLs": whole["nonResourceURLs"]}));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    match rules.errors.as_slice() {
        [] => {}
        [one] => status["evaluationError"] = one.as_str().into(),
        several => status["evaluationError"] = format!("[{}]", several.join(", ")).into(),
    }
    json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": AUTHORIZATION,
        "metadata": {},
        "spec": {},
        "status": status,
    })
}

/// The answer to a TokenReview: the user and the audiences (may be empty) that the token is for, or why not.
pub fn token_review(object: &Value, found: Result<(&UserInfo, &[String]), &str>) -> Value {
    let mut status = Map::new();
    match found {
        Ok((user, audiences)) => {
            status.insert("authenticated".into(), true.into());
            status.insert("user".into(), user.to_json());
            if !audiences.is_empty() {
                status.insert("audiences".into(), audiences.into());
            }
        }
        Err(error) => {
            status.insert("user".into(), json!({}));
            if !error.is_empty() {
                status.insert("error".into(), error.into());
            }
        }
    }
    with_status(AUTHENTICATION, "TokenReview", object, Value::Object(status))
}

/// The answer to a TokenRequest for the account `name` of `namespace`.
pub fn token_request(
    namespace: &str,
    name: &str,
    request: &TokenRequest,
    issued: &Issued,
    now: Timestamp,
) -> Value {
    let bound = request.bound.as_ref().map(|bound| {
        let mut shown = Map::new();
        for (key, value) in [
            ("kind", &bound.kind),
            ("apiVersion", &bound.api_version),
            ("name", &bound.name),
            ("uid", &bound.uid),
        ] {
            if !value.is_empty() {
                shown.insert(key.into(), value.as_str().into());
            }
        }
        Value::Object(shown)
    });
    json!({
        "kind": "TokenRequest",
        "apiVersion": AUTHENTICATION,
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": seconds(now)},
        "spec": {
            "audiences": issued.audiences,
            "expirationSeconds": request.expiration_seconds,
            "boundObjectRef": bound,
        },
        "status": {"token": issued.token, "expirationTimestamp": seconds(issued.expires)},
    })
}

fn with_status(api_version: &str, kind: &str, object: &Value, status: Value) -> Value {
    let part = |key: &str| {
        object
            .get(key)
            .filter(|v| v.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    json!({
        "kind": kind,
        "apiVersion": api_version,
        "metadata": part("metadata"),
        "spec": part("spec"),
        "status": status,
    })
}

/// Times in the API have whole seconds.
fn seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}
