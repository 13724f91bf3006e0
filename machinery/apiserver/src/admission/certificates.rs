//! Requests for certificates: who asks is known by the server, and who approves or signs needs a right for the signer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery_auth::x509::{RequestError, SigningRequest};
use machinery_auth::{Attributes, UserInfo};
use machinery_kinds::strategy;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};

use super::{Asked, Operation};
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

const GROUP: &str = "certificates.k8s.io";
/// Certificates of this signer let their holders in here.
const CLIENTS_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

pub(crate) fn concerns(resource: &Resource) -> bool {
    resource.group == GROUP && resource.kind == "CertificateSigningRequest"
}

/// Writes down who asks for a certificate, and since when its conditions hold.
pub(super) fn complete(server: &Inner, new: &mut Value, old: Option<&Value>, user: &UserInfo) {
    match old {
        None => strategy::identify(new, &user.name, &user.uid, &user.groups, user.extra.clone()),
        Some(old) => strategy::time_conditions(new, old, &server.now_text()),
    }
}

/// The request that is to become a certificate, or what is wrong with it.
fn request(content: &Value) -> Result<SigningRequest, RequestError> {
    let bytes = STANDARD
        .decode(content["spec"]["request"].as_str().unwrap_or(""))
        .unwrap_or_default();
    SigningRequest::parse(&bytes)
}

/// Adds what is wrong with the request itself, at the place where a real server tells it.
pub(crate) fn check_request(content: &Value, errors: &mut Vec<FieldError>) {
    if let Err(problem) = request(content) {
        let path = FieldPath::from("spec.request");
        let error = FieldError::invalid(&path, &content["spec"]["request"], problem.to_string());
        let after_metadata = errors
            .iter()
            .position(|error| !error.field.starts_with("metadata"))
            .unwrap_or(errors.len());
        errors.insert(after_metadata, error);
    }
}

/// Refuses decisions of those who may not decide for the signer, and requests to become everything.
pub(super) fn check(
    server: &Inner,
    asked: &Asked<'_>,
    new: &Value,
    old: Option<&Value>,
    user: &UserInfo,
) -> Result<(), ApiError> {
    let refuse = |why: String| Err(ApiError::forbidden(asked.resource.subject(), asked.name, why));
    let signer = |request: &Value| request["spec"]["signerName"].as_str().unwrap_or("").to_owned();
    match (asked.subresource, asked.operation, old) {
        ("", Operation::Create | Operation::Update, _) if signer(new) == CLIENTS_SIGNER => {
            let groups = request(new)
                .map(|request| request.organizations)
                .unwrap_or_default();
            if groups.iter().any(|group| group == MASTERS) {
                return refuse(format!(
                    "use of {CLIENTS_SIGNER} signer with {MASTERS} group is not allowed"
                ));
            }
            Ok(())
        }
        ("approval", Operation::Update, Some(old)) if !may(server, user, "approve", &signer(old)) => {
            refuse(format!(
                "user not permitted to approve requests with signerName {:?}",
                signer(old)
            ))
        }
        ("status", Operation::Update, Some(old))
            if new["status"] != old["status"] && !may(server, user, "sign", &signer(old)) =>
        {
            refuse(format!(
                "user not permitted to sign requests with signerName {:?}",
                signer(old)
            ))
        }
        _ => Ok(()),
    }
}

/// Whether the roles let a user do something for a signer, or for all signers of its domain.
fn may(server: &Inner, user: &UserInfo, verb: &str, signer: &str) -> bool {
    let domain = format!("{}/*", signer.split('/').next().unwrap_or(""));
    let index = server.indexes.rbac.read();
    [signer, &domain].into_iter().any(|name| {
        let attributes = Attributes::resource(user, verb, GROUP, "signers");
        index.authorize(&Attributes { name, ..attributes }).allowed
    })
}
