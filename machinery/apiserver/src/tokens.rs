//! Tokens of service accounts: the answer to a TokenRequest.

use machinery_auth::token::{BoundKind, BoundObject, BoundObjectRef, Issue, ObjectRef, TokenRequest};
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::audit::Trail;
use crate::authenticate::core_object;
use crate::meta;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

const KIND: Subject<'static> = Subject {
    group: "authentication.k8s.io",
    name: "TokenRequest",
};

/// A request that names an account names that of the path.
pub(crate) fn check_name(account: &str, request: &Value) -> Result<(), ApiError> {
    let own = meta::name(request);
    if own.is_empty() || own == account {
        return Ok(());
    }
    let path = FieldPath::from("metadata.name");
    let why = "must match the service account name if specified";
    let error = FieldError::invalid(&path, &json!(own), why);
    Err(ApiError::invalid(KIND, account, &[error]))
}

/// What `request` asks for; it must be meant for this very account.
pub(crate) fn read_request(account: &Value, request: &Value) -> Result<TokenRequest, ApiError> {
    let (own, uid) = (meta::uid(request), meta::uid(account));
    if !own.is_empty() && own != uid {
        let why = format!(
            "the UID in the token request ({own}) does not match the UID of the service account ({uid})"
        );
        return Err(ApiError::conflict(KIND, meta::name(account), why));
    }
    TokenRequest::from_json(request).map_err(|errors| ApiError::invalid(KIND, "", &errors))
}

/// A token for `account`, as `wanted`. The log, if there is one, is told which.
pub(crate) fn answer_request(
    server: &Inner,
    account: &Value,
    wanted: &TokenRequest,
    trail: Option<&Trail>,
) -> Result<Value, ApiError> {
    let (namespace, name) = (meta::namespace(account), meta::name(account));
    let (bound, node) = match &wanted.bound {
        None => (None, None),
        Some(reference) => {
            let (bound, found) = bound_object(server, account, reference)?;
            let node = if bound.kind == BoundKind::Pod {
                node_of(server, &found)
            } else {
                None
            };
            (Some(bound), node)
        }
    };
    let owner = ObjectRef {
        name: name.to_owned(),
        uid: meta::uid(account).to_owned(),
    };
    let accounts = &server.authenticator.accounts;
    let issue = Issue {
        namespace,
        account: &owner,
        audiences: &wanted.audiences,
        expiration_seconds: wanted.expiration_seconds,
        bound: bound.as_ref(),
        node: node.as_ref(),
    };
    let issued = accounts
        .issue(&issue, server.now())
        .ok_or_else(|| ApiError::internal("failed to sign a token"))?;
    if let Some(trail) = trail {
        let key = "authentication.kubernetes.io/issued-credential-id";
        trail.annotate(key.to_owned(), format!("JTI={}", issued.id));
    }
    let mut answer = machinery_auth::review::token_request(namespace, name, wanted, &issued, server.now());
    meta::set_text(&mut answer, "uid", meta::uid(account));
    Ok(answer)
}

/// The object that a token is to end with, which must be there.
fn bound_object(
    server: &Inner,
    account: &Value,
    reference: &BoundObjectRef,
) -> Result<(BoundObject, Value), ApiError> {
    let BoundObjectRef { kind, name, uid, .. } = reference;
    let (group, version) = group_version(&reference.api_version);
    let (bound, plural, namespace) = match (group, kind.as_str()) {
        ("", "Pod") => (BoundKind::Pod, "pods", meta::namespace(account)),
        ("", "Secret") => (BoundKind::Secret, "secrets", meta::namespace(account)),
        ("", "Node") => (BoundKind::Node, "nodes", ""),
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let subject = |name| Subject { group: "", name };
    let found = core_object(server, plural, namespace, name)
        .ok_or_else(|| ApiError::not_found(subject(plural), name))?;
    // A token of another account would outlive the Pod's right to it, and say of the Pod what does not hold.
    if bound == BoundKind::Pod
        && found["spec"]["serviceAccountName"].as_str().unwrap_or("") != meta::name(account)
    {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount \"{}\" to pod running with different serviceaccount name.",
            meta::name(account)
        )));
    }
    if !uid.is_empty() && uid != meta::uid(&found) {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(ApiError::conflict(subject(kind), name, why));
    }
    let object = BoundObject {
        kind: bound,
        name: name.clone(),
        uid: meta::uid(&found).to_owned(),
    };
    Ok((object, found))
}

/// The group and the version that an `apiVersion` names; what is neither names none.
fn group_version(text: &str) -> (&str, &str) {
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(group), Some(version), None) => (group, version),
        (Some(version), None, None) => ("", version),
        _ => ("", ""),
    }
}

/// The node of a Pod, which is told for information: by its name alone if it is not there.
fn node_of(server: &Inner, pod: &Value) -> Option<ObjectRef> {
    let name = pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())?;
    let node = core_object(server, "nodes", "", name);
    Some(ObjectRef {
        name: name.to_owned(),
        uid: node.map(|node| meta::uid(&node).to_owned()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_are_taken_apart() {
        let table = [
            ("", ("", "")),
            ("v1", ("", "v1")),
            ("apps/v1", ("apps", "v1")),
            ("a/b/c", ("", "")),
        ];
        for (text, expected) in table {
            assert_eq!(group_version(text), expected, "{text}");
        }
    }
}
