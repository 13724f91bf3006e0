//! Tokens of service accounts: issued, verified, and described to whoever verifies them elsewhere.

use std::sync::Arc;

use jiff::Timestamp;
use machinery_value::{Map, Value};
use serde_json::json;

use super::jwt::{self, Unverified};
use super::key::TokenKey;
use super::live::{BoundKind, BoundObject, Expect, LiveCheck, ObjectRef};
use super::{LEEWAY_SECONDS, TokenError};
use crate::user::{
    EXTRA_CREDENTIAL_ID, EXTRA_NODE_NAME, EXTRA_NODE_UID, EXTRA_POD_NAME, EXTRA_POD_UID, UserInfo,
    service_account_user, split_service_account, text, texts,
};

/// Who issues tokens unless told otherwise.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Who issued the tokens of the old sort, which live in secrets and do not expire.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

const LEGACY_NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const LEGACY_SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const LEGACY_NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const LEGACY_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// For whom a token is to be made. The objects are those that the server found, with their uids.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// The account's namespace.
    pub namespace: &'a str,
    /// The account.
    pub account: &'a ObjectRef,
    /// As the request asks; empty means the API server.
    pub audiences: &'a [String],
    /// As the request asks.
    pub expiration_seconds: i64,
    /// What it is to be bound to.
    pub bound: Option<&'a BoundObject>,
    /// The node of the pod that it is bound to, if that has one.
    pub node: Option<&'a ObjectRef>,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The token.
    pub token: String,
    /// Until when it is valid.
    pub expires: Timestamp,
    /// For whom it is.
    pub audiences: Vec<String>,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// What a token says, once its signature, its time and its audience are in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The service account as a user.
    pub user: UserInfo,
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub service_account: String,
    /// The account's uid when the token was issued.
    pub service_account_uid: String,
    /// What it is bound to.
    pub bound: Option<BoundObject>,
    /// For a token of the old sort: the secret that must hold it.
    pub legacy_secret: Option<String>,
    /// Those of the wanted audiences that it is for.
    pub audiences: Vec<String>,
    /// Until when it is valid; tokens of the old sort do not expire.
    pub expires: Option<Timestamp>,
}

impl VerifiedToken {
    /// The objects that must be looked up and judged before the token is believed.
    pub fn live_checks(&self) -> Vec<LiveCheck> {
        let check = |kind, namespace: &str, name: &str, expect| LiveCheck {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            expect,
        };
        let namespace = &self.namespace;
        let account = Expect::AccountUid(self.service_account_uid.clone());
        let mut checks = vec![check("ServiceAccount", namespace, &self.service_account, account)];
        if let Some(secret) = &self.legacy_secret {
            checks.push(check("Secret", namespace, secret, Expect::Token));
        }
        if let Some(BoundObject { kind, name, uid }) = &self.bound {
            let namespace = if *kind == BoundKind::Node { "" } else { namespace };
            checks.push(check(
                kind.as_str(),
                namespace,
                name,
                Expect::BoundUid(*kind, uid.clone()),
            ));
        }
        checks
    }
}

/// Issues and verifies the tokens of service accounts.
///
/// Servers that share a key should differ in their issuers. Where they do not, it is the uids in the live checks
/// that keep an account of one server from being taken for its namesake on another.
#[derive(Clone, Debug)]
pub struct ServiceAccountTokens {
    /// The first signs; the others are still believed.
    keys: Vec<Arc<TokenKey>>,
    issuer: String,
    audiences: Vec<String>,
    max_expiration: Option<i64>,
}

impl ServiceAccountTokens {
    /// Tokens from `issuer`, an `https` address; the API server is the audience `issuer` too.
    pub fn new(key: Arc<TokenKey>, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self {
            keys: vec![key],
            audiences: vec![issuer.clone()],
            issuer,
            max_expiration: None,
        }
    }

    /// The API server is these audiences instead of the issuer.
    #[must_use]
    pub fn with_audiences(mut self, audiences: Vec<String>) -> Self {
        self.audiences = audiences;
        self
    }

    /// Tokens signed by this key are still believed, though none are made with it.
    #[must_use]
    pub fn with_former_key(mut self, key: Arc<TokenKey>) -> Self {
        self.keys.push(key);
        self
    }

    /// No token lives longer; whoever asks for more gets this.
    #[must_use]
    pub fn with_max_expiration(mut self, seconds: i64) -> Self {
        self.max_expiration = Some(seconds);
        self
    }

    /// The audiences that the API server is.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Makes a token for an account. Fails only if the system has no randomness to sign with.
    pub fn issue(&self, wanted: &Issue<'_>, now: Timestamp) -> Option<Issued> {
        let Issue {
            namespace,
            account,
            audiences,
            expiration_seconds,
            bound,
            node,
        } = *wanted;
        let audiences = if audiences.is_empty() {
            self.audiences.clone()
        } else {
            audiences.to_vec()
        };
        let seconds = expiration_seconds.min(self.max_expiration.unwrap_or(i64::MAX));
        let issued_at = now.as_second();
        let expires = Timestamp::from_second(issued_at.saturating_add(seconds)).unwrap_or(Timestamp::MAX);

        let mut about = Map::new();
        about.insert("namespace".into(), namespace.into());
        about.insert("serviceaccount".into(), to_claim(&account.name, &account.uid));
        if let Some(BoundObject { kind, name, uid }) = bound {
            about.insert(kind.claim().into(), to_claim(name, uid));
            if let (BoundKind::Pod, Some(node)) = (kind, node) {
                about.insert("node".into(), to_claim(&node.name, &node.uid));
            }
        }
        let claims = json!({
            "iss": self.issuer,
            "sub": service_account_user(namespace, &account.name),
            "aud": audiences,
            "exp": expires.as_second(),
            "iat": issued_at,
            "nbf": issued_at,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": about,
        });
        let token = jwt::sign(self.keys.first()?, &claims)?;
        Some(Issued {
            token,
            expires,
            audiences,
        })
    }

    /// Makes a token of the old sort, to be kept in the secret `secret`. Fails only without randomness.
    pub fn issue_legacy(&self, namespace: &str, account: &ObjectRef, secret: &str) -> Option<String> {
        let mut claims = Map::new();
        for (key, value) in [
            ("iss", LEGACY_ISSUER),
            ("sub", &service_account_user(namespace, &account.name)),
            (LEGACY_NAMESPACE, namespace),
            (LEGACY_SECRET, secret),
            (LEGACY_NAME, &account.name),
            (LEGACY_UID, &account.uid),
        ] {
            claims.insert(key.into(), value.into());
        }
        jwt::sign(self.keys.first()?, &Value::Object(claims))
    }

    /// Reads a token that is presented to one of `audiences`, or to the API server if that is empty.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<VerifiedToken, TokenError> {
        let unverified = Unverified::parse(token).ok_or(TokenError::Unknown)?;
        let legacy = match unverified.issuer() {
            LEGACY_ISSUER => true,
            issuer if issuer == self.issuer => false,
            _ => return Err(TokenError::Unknown),
        };
        let claims = unverified.verify(self.keys.iter().map(|key| &**key))?;

        let held = audiences_of(&claims);
        // Only the API server accepts tokens that name nobody.
        let held = if held.is_empty() {
            self.audiences.clone()
        } else {
            held
        };
        let wanted = if audiences.is_empty() {
            &self.audiences
        } else {
            audiences
        };
        let common: Vec<String> = held.iter().filter(|a| wanted.contains(a)).cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Audience {
                token: held,
                wanted: wanted.to_vec(),
            });
        }
        if legacy {
            from_legacy(&claims, common)
        } else {
            from_claims(&claims, common, now)
        }
    }

    /// The public keys, for `/openid/v1/jwks`.
    pub fn jwks(&self) -> Value {
        json!({"keys": self.keys.iter().map(|key| key.to_jwk()).collect::<Vec<_>>()})
    }

    /// The document for `/.well-known/openid-configuration`; `jwks_uri` is where the keys are.
    pub fn openid_configuration(&self, jwks_uri: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

fn to_claim(name: &str, uid: &str) -> Value {
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
fn audiences_of(claims: &Value) -> Vec<String> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        list => texts(list),
    }
}

fn from_claims(claims: &Value, audiences: Vec<String>, now: Timestamp) -> Result<VerifiedToken, TokenError> {
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

fn from_legacy(claims: &Value, audiences: Vec<String>) -> Result<VerifiedToken, TokenError> {
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
