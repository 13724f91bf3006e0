//! Bearer tokens: fixed ones, and the signed ones of service accounts.
//!
//! [`StaticTokens`] knows a few fixed tokens. [`ServiceAccountTokens`] issues and verifies JSON web tokens, signed
//! with ES256. A signature shows that we issued a token, not that it still holds: the account, or the pod or
//! secret it is bound to, may be gone. What must be compared with live objects comes out of
//! [`VerifiedToken::live_checks`], for the server to look up and have judged by [`LiveCheck::judge`].
//!
//! What always holds: nothing in a token is believed before its signature is verified, apart from the issuer,
//! which only decides whether the token is ours to judge.

mod accounts;
mod claims;
mod jwt;
mod key;
mod live;
mod memo;
mod request;
#[cfg(test)]
mod tests;

pub use accounts::{DEFAULT_ISSUER, Issue, Issued, LEGACY_ISSUER, ServiceAccountTokens, VerifiedToken};
pub use key::TokenKey;
pub use live::{BoundKind, BoundObject, LiveCheck, ObjectRef};
pub use request::{BoundObjectRef, TokenRequest};

use crate::quote::quote_list;
use crate::user::UserInfo;

/// A token may be this much too old or too young, because clocks differ.
pub const LEEWAY_SECONDS: i64 = 60;

/// Longer tokens are not looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// Why a token does not say who is asking. The texts are those of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token of ours; somebody else may know it.
    #[error("invalid bearer token")]
    Unknown,
    /// Signed with a key that is not ours.
    #[error("invalid signature, no keys found")]
    UnknownKey,
    /// Not signed by the key it names.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    BadSignature,
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    NotYetValid,
    /// It claims to be issued later than now.
    #[error("service account token is issued in the future")]
    IssuedInTheFuture,
    /// Meant for somebody else.
    #[error("token audiences {} is invalid for the target audiences {}", quote_list(.token), quote_list(.wanted))]
    Audience {
        /// Whom it is meant for.
        token: Vec<String>,
        /// Who is asked to accept it.
        wanted: Vec<String>,
    },
    /// Something in it is missing or contradicts the rest.
    #[error("{0}")]
    BadClaim(&'static str),
    /// An object that it depends on is gone or has become another.
    #[error("{0}")]
    Stale(String),
}

/// The token in an `Authorization` header, if that is a bearer token.
pub fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().split(' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A few tokens that stand for a user each. Only their digests are kept.
#[derive(Default)]
pub struct StaticTokens {
    entries: Vec<([u8; 32], UserInfo)>,
}

impl std::fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let users: Vec<&str> = self.entries.iter().map(|(_, user)| user.name.as_str()).collect();
        f.debug_struct("StaticTokens").field("users", &users).finish()
    }
}

impl StaticTokens {
    /// These tokens; see [`StaticTokens::insert`].
    pub fn new(tokens: impl IntoIterator<Item = (String, UserInfo)>) -> Self {
        let mut out = Self::default();
        for (token, user) in tokens {
            out.insert(&token, user);
        }
        out
    }

    /// Lets `token` stand for `user`, who becomes a member of `system:authenticated`; an empty token is ignored.
    pub fn insert(&mut self, token: &str, user: UserInfo) {
        if token.is_empty() {
            return;
        }
        let digest = digest(token);
        self.entries.retain(|(known, _)| *known != digest);
        self.entries.push((digest, user.authenticated()));
    }

    /// The user for whom `token` stands. How long this takes says nothing about how close a guess was.
    pub fn find(&self, token: &str) -> Option<&UserInfo> {
        let wanted = digest(token);
        let mut found = None;
        for (known, user) in &self.entries {
            if equal(known, &wanted) {
                found = Some(user);
            }
        }
        found
    }
}

fn digest(token: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// Compares in a time that does not depend on where the two differ.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y));
    std::hint::black_box(difference) == 0
}

/// Whether two secrets are the same, compared by their digests.
pub(crate) fn same_secret(a: &[u8], b: &str) -> bool {
    std::str::from_utf8(a).is_ok_and(|a| equal(&digest(a), &digest(b)))
}
