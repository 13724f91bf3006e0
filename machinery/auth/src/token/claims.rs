//! What is written into tokens, and read out of them once their signatures are verified.

use jiff::Timestamp;
use machinery_value::{Map, Value};

use super::accounts::VerifiedToken;
use super::live::{BoundKind, BoundObject, ObjectRef};
use super::{LEEWAY_SECONDS, TokenError};
use crate::user::{
    EXTRA_CREDENTIAL_ID, EXTRA_NODE_NAME, EXTRA_NODE_UID, EXTRA_POD_NAME, EXTRA_POD_UID, UserInfo,
    split_service_account, text, texts,
};

pub(super) const LEGACY_NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
pub(super) const LEGACY_SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
pub(super) const LEGACY_NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
pub(super) const LEGACY_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

pub(super) fn to_claim(name: &str, uid: &str) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), name.into());
    if !uid.is_empty() {
        out.insert("uid".into(), uid.into());
    }
    Value::Object(out)
}

fn from_claim(about: &Value, key: &str) -> Option<ObjectRef> {
    let claim = about.get(key).filter(|claim| claim.is_object())?;
    Some(ObjectRef {
        name: text(claim, "name").to_owned(),
        uid: text(claim, "uid").to_owned(),
    })
}

/// One audience may stand alone instead of in a list.
pub(super) fn audiences_of(claims: &Value) -> Vec<String> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        list => texts(list),
    }
}

pub(super) fn from_claims(
    claims: &Value,
    audiences: Vec<String>,
    now: Timestamp,
) -> Result<VerifiedToken, TokenError> {
    let at = |key: &str| claims.get(key).and_then(Value::as_i64);
    let now = now.as_second();
    let expires = at("exp").ok_or(TokenError::BadClaim("exp claim is missing"))?;
    if now.saturating_sub(LEEWAY_SECONDS) > expires {
        return Err(TokenError::Expired);
    }
    let soon = now.saturating_add(LEEWAY_SECONDS);
    if at("nbf").is_some_and(|from| soon < from) {
        return Err(TokenError::NotYetValid);
    }
    if at("iat").is_some_and(|issued| soon < issued) {
        return Err(TokenError::IssuedInTheFuture);
    }
    let about = claims
        .get("kubernetes.io")
        .ok_or(TokenError::BadClaim("kubernetes.io claim is missing"))?;
    let namespace = text(about, "namespace");
    let account = from_claim(about, "serviceaccount").unwrap_or(ObjectRef {
        name: String::new(),
        uid: String::new(),
    });
    check_subject(claims, namespace, &account.name)?;

    let mut user = UserInfo::service_account(namespace, &account.name, &account.uid);
    let mut extra = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    let (pod, node) = (from_claim(about, "pod"), from_claim(about, "node"));
    if let Some(pod) = &pod {
        extra(EXTRA_POD_NAME, &pod.name);
        extra(EXTRA_POD_UID, &pod.uid);
    }
    if let Some(node) = &node {
        extra(EXTRA_NODE_NAME, &node.name);
        extra(EXTRA_NODE_UID, &node.uid);
    }
    match text(claims, "jti") {
        "" => {}
        id => extra(EXTRA_CREDENTIAL_ID, &format!("JTI={id}")),
    }
    // The node of a bound pod is told for information; only a token bound to a node alone depends on it.
    let bound = [
        (BoundKind::Pod, pod),
        (BoundKind::Secret, from_claim(about, "secret")),
        (BoundKind::Node, node),
    ]
    .into_iter()
    .find_map(|(kind, object)| object.map(|ObjectRef { name, uid }| BoundObject { kind, name, uid }));
    Ok(VerifiedToken {
        user,
        namespace: namespace.to_owned(),
        service_account: account.name,
        service_account_uid: account.uid,
        bound,
        legacy_secret: None,
        audiences,
        expires: Timestamp::from_second(expires).ok(),
    })
}

pub(super) fn from_legacy(claims: &Value, audiences: Vec<String>) -> Result<VerifiedToken, TokenError> {
    let (namespace, name, uid) = (
        text(claims, LEGACY_NAMESPACE),
        text(claims, LEGACY_NAME),
        text(claims, LEGACY_UID),
    );
    let secret = text(claims, LEGACY_SECRET);
    for (value, missing) in [
        (text(claims, "sub"), "sub claim is missing"),
        (namespace, "namespace claim is missing"),
        (secret, "secretName claim is missing"),
        (name, "serviceAccountName claim is missing"),
        (uid, "serviceAccountUID claim is missing"),
    ] {
        if value.is_empty() {
            return Err(TokenError::BadClaim(missing));
        }
    }
    check_subject(claims, namespace, name)?;
    Ok(VerifiedToken {
        user: UserInfo::service_account(namespace, name, uid),
        namespace: namespace.to_owned(),
        service_account: name.to_owned(),
        service_account_uid: uid.to_owned(),
        bound: None,
        legacy_secret: Some(secret.to_owned()),
        audiences,
        expires: None,
    })
}

/// The subject must say the same as the other claims.
fn check_subject(claims: &Value, namespace: &str, name: &str) -> Result<(), TokenError> {
    match split_service_account(text(claims, "sub")) {
        Some(subject) if subject == (namespace, name) => Ok(()),
        _ => Err(TokenError::BadClaim("sub claim is invalid")),
    }
}
