//! Tokens of service accounts: the answer to a TokenRequest.

use machinery_auth::token::{BoundKind, BoundObject, Issue, ObjectRef, TokenRequest};
use machinery_value::Value;

use crate::audit::Trail;
use crate::authenticate::core_object;
use crate::meta;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

/// A token for `account`, as `request` wants it. The log, if there is one, is told which.
pub(crate) fn answer_request(
    server: &Inner,
    account: &Value,
    request: &Value,
    trail: Option<&Trail>,
) -> Result<Value, ApiError> {
    let (namespace, name) = (meta::namespace(account), meta::name(account));
    let kind = Subject {
        group: "authentication.k8s.io",
        name: "TokenRequest",
    };
    let wanted = TokenRequest::from_json(request).map_err(|errors| ApiError::invalid(kind, "", &errors))?;
    let mut node = None;
    let bound = match &wanted.bound {
        None => None,
        Some(reference) => {
            let (bound_kind, plural, bound_namespace) = match reference.kind.as_str() {
                "Pod" => (BoundKind::Pod, "pods", namespace),
                "Secret" => (BoundKind::Secret, "secrets", namespace),
                "Node" => (BoundKind::Node, "nodes", ""),
                other => {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount \"{name}\" to an object of kind {other}"
                    )));
                }
            };
            let found = core_object(server, plural, bound_namespace, &reference.name).ok_or_else(|| {
                ApiError::not_found(
                    Subject {
                        group: "",
                        name: plural,
                    },
                    &reference.name,
                )
            })?;
            if !reference.uid.is_empty() && reference.uid != meta::uid(&found) {
                return Err(ApiError::conflict(
                    Subject {
                        group: "",
                        name: plural,
                    },
                    &reference.name,
                    format_args!(
                        "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                        reference.uid
                    ),
                ));
            }
            if bound_kind == BoundKind::Pod {
                node = found["spec"]["nodeName"]
                    .as_str()
                    .and_then(|node| core_object(server, "nodes", "", node))
                    .map(|node| ObjectRef {
                        name: meta::name(&node).into(),
                        uid: meta::uid(&node).into(),
                    });
            }
            Some(BoundObject {
                kind: bound_kind,
                name: reference.name.clone(),
                uid: meta::uid(&found).to_owned(),
            })
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
    let mut answer = machinery_auth::review::token_request(namespace, name, &wanted, &issued, server.now());
    meta::set_text(&mut answer, "uid", meta::uid(account));
    Ok(answer)
}
