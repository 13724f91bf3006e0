//! Tokens of service accounts: issued, verified, and described to whoever verifies them elsewhere.

use std::sync::Arc;

use jiff::Timestamp;
use machinery_value::{Map, Value};
use serde_json::json;

use super::claims::{
    LEGACY_NAME, LEGACY_NAMESPACE, LEGACY_SECRET, LEGACY_UID, audiences_of, from_claims, from_legacy,
    to_claim,
};
use super::jwt::{self, Unverified};
use super::key::TokenKey;
use super::live::{BoundKind, BoundObject, Expect, LiveCheck, ObjectRef};
use super::memo::GoodSignatures;
use super::{TokenError, digest};
use crate::user::{UserInfo, service_account_user};

/// Who issues tokens unless told otherwise.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Who issued the tokens of the old sort, which live in secrets and do not expire.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

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
    /// Its id, by which it can be spoken of.
    pub id: String,
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
    good: GoodSignatures,
}

impl ServiceAccountTokens {
    /// Tokens from `issuer`, an `https` address; the API server is the audience `issuer` too.
    pub fn new(key: Arc<TokenKey>, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let audiences = vec![issuer.clone()];
        Self {
            keys: vec![key],
            audiences,
            issuer,
            max_expiration: None,
            good: GoodSignatures::default(),
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

    #[cfg(test)]
    pub(super) fn signing_key(&self) -> Arc<TokenKey> {
        Arc::clone(&self.keys[0])
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
        let id = uuid::Uuid::new_v4().to_string();
        let claims = json!({
            "iss": self.issuer,
            "sub": service_account_user(namespace, &account.name),
            "aud": audiences,
            "exp": expires.as_second(),
            "iat": issued_at,
            "nbf": issued_at,
            "jti": id,
            "kubernetes.io": about,
        });
        let token = jwt::sign(self.keys.first()?, &claims)?;
        Some(Issued {
            token,
            expires,
            audiences,
            id,
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
        let digest = digest(token);
        let claims = if self.good.contains(&digest) {
            unverified.into_claims()
        } else {
            let claims = unverified.verify(self.keys.iter().map(|key| &**key))?;
            self.good.insert(digest);
            claims
        };

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
