//! Who is asking: the connection's certificate, a bearer token, a caller in this process, or nobody.

use std::sync::Arc;

use http::{HeaderMap, header};
use machinery_auth::pki::Clients;
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

/// Put into a request's extensions by the TLS transport: the client has a certificate that means nothing here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownPeer;

/// What is needed to know somebody.
pub(crate) struct Authenticator {
    /// Who the clients are that come with certificates.
    pub(crate) clients: Clients,
    pub(crate) accounts: ServiceAccountTokens,
    tokens: StaticTokens,
    anonymous: Arc<UserInfo>,
}

impl Authenticator {
    pub(crate) fn new(pki: &Pki, known: Vec<(String, UserInfo)>) -> Self {
        Self {
            clients: pki.clients().clone(),
            accounts: ServiceAccountTokens::new(pki.token_key(), ISSUER),
            tokens: StaticTokens::new(known),
            anonymous: Arc::new(UserInfo::anonymous()),
        }
    }

    /// The user behind a request, or a refusal: one of its credentials must be good, if it has any. Without it is the
    /// anonymous user.
    pub(crate) fn authenticate(
        &self,
        server: &Inner,
        headers: &HeaderMap,
        extensions: &http::Extensions,
    ) -> Result<Arc<UserInfo>, ApiError> {
        if let Some(Caller(user)) = extensions.get::<Caller>() {
            return Ok(user.clone());
        }
        let mut refused = extensions.get::<UnknownPeer>().is_some();
        if let Some(Peer(certificate)) = extensions.get::<Peer>() {
            match certificate.user(server.now()) {
                Ok(user) => return Ok(user.clone()),
                Err(_) => refused = true,
            }
        }
        // Another scheme than Bearer says nothing to us.
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(bearer_token);
        if let Some(token) = token {
            if let Some(user) = self.tokens.find(token) {
                return Ok(Arc::new(user.clone()));
            }
            match self.verify(server, token, &[]) {
                Ok(verified) => return Ok(Arc::new(verified.user.authenticated())),
                Err(_) => refused = true,
            }
        }
        if refused {
            Err(ApiError::unauthorized())
        } else {
            Ok(self.anonymous.clone())
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
