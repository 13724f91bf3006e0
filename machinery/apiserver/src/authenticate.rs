//! Who is asking: the connection's certificate, a bearer token, a caller in this process, or nobody.

use std::sync::Arc;

use http::{HeaderMap, header};
use machinery_auth::token::{
    LiveCheck, ServiceAccountTokens, StaticTokens, TokenError, VerifiedToken, bearer_token,
};
use machinery_auth::x509::PeerCertificate;
use machinery_auth::{Pki, UserInfo};
use machinery_value::Value;

use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// The issuer of service account tokens, as every cluster names itself inside.
pub const ISSUER: &str = "https://kubernetes.default.svc";

/// Put into a request's extensions by a caller in this process, who vouches for it.
#[derive(Clone, Debug)]
pub struct Caller(pub Arc<UserInfo>);

/// Put into a request's extensions by the TLS transport: the client's verified certificate.
#[derive(Clone, Debug)]
pub struct Peer(pub Arc<PeerCertificate>);

/// What is needed to know somebody.
pub(crate) struct Authenticator {
    pub(crate) accounts: ServiceAccountTokens,
    tokens: StaticTokens,
    anonymous: Arc<UserInfo>,
}

impl Authenticator {
    pub(crate) fn new(pki: &Pki, known: Vec<(String, UserInfo)>) -> Self {
        Self {
            accounts: ServiceAccountTokens::new(pki.token_key(), ISSUER),
            tokens: StaticTokens::new(known),
            anonymous: Arc::new(UserInfo::anonymous()),
        }
    }

    /// The user behind a request, or a refusal. Without credentials it is the anonymous user.
    pub(crate) fn authenticate(
        &self,
        server: &Inner,
        headers: &HeaderMap,
        extensions: &http::Extensions,
    ) -> Result<Arc<UserInfo>, ApiError> {
        if let Some(Caller(user)) = extensions.get::<Caller>() {
            return Ok(user.clone());
        }
        if let Some(Peer(certificate)) = extensions.get::<Peer>() {
            return certificate
                .user(server.now())
                .cloned()
                .map_err(|_| ApiError::unauthorized());
        }
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Ok(self.anonymous.clone());
        };
        // Another scheme than Bearer says nothing to us.
        let Some(token) = value.to_str().ok().and_then(bearer_token) else {
            return Ok(self.anonymous.clone());
        };
        if let Some(user) = self.tokens.find(token) {
            return Ok(Arc::new(user.clone()));
        }
        match self.verify(server, token, &[]) {
            Ok(verified) => Ok(Arc::new(verified.user.authenticated())),
            Err(_) => Err(ApiError::unauthorized()),
        }
    }

    /// A service account's token that is signed, in time, and whose objects are still there.
    pub(crate) fn verify(
        &self,
        server: &Inner,
        token: &str,
        audiences: &[String],
    ) -> Result<VerifiedToken, TokenError> {
        let now = server.now();
        let verified = self.accounts.verify(token, audiences, now)?;
        for check in verified.live_checks() {
            check.judge(look_up(server, &check).as_ref(), token, now)?;
        }
        Ok(verified)
    }

    /// The user of a fixed token.
    pub(crate) fn known(&self, token: &str) -> Option<&UserInfo> {
        self.tokens.find(token)
    }
}

fn look_up(server: &Inner, check: &LiveCheck) -> Option<Value> {
    let plural = format!("{}s", check.kind.to_ascii_lowercase());
    core_object(server, &plural, &check.namespace, &check.name)
}

/// The content of an object of the core group.
pub(crate) fn core_object(server: &Inner, plural: &str, namespace: &str, name: &str) -> Option<Value> {
    let prefix = key_prefix("", plural);
    let key = if namespace.is_empty() {
        format!("{prefix}{name}")
    } else {
        format!("{prefix}{namespace}/{name}")
    };
    server.store.get(&key).map(|stored| stored.value.content())
}
