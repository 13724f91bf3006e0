//! JSON web tokens in the compact form: header, claims and signature, in base64 with dots between.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery_value::Value;
use serde_json::json;

use super::key::TokenKey;
use super::{MAX_TOKEN, TokenError};
use crate::user::text;

/// A token with these claims, or `None` if the system has no randomness to sign with.
pub(super) fn sign(key: &TokenKey, claims: &Value) -> Option<String> {
    let header = json!({"alg": "ES256", "kid": key.id()}).to_string();
    let mut token = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&URL_SAFE_NO_PAD.encode(signature));
    Some(token)
}

/// A token that was taken apart but whose signature was not looked at.
pub(super) struct Unverified<'a> {
    signed: &'a str,
    header: Value,
    claims: Value,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    /// `None` if this is no such token at all.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let json = |part: &str| {
            serde_json::from_slice::<Value>(&bytes(part)?)
                .ok()
                .filter(Value::is_object)
        };
        Some(Self {
            signed,
            header: json(header)?,
            claims: json(claims)?,
            signature: bytes(signature)?,
        })
    }

    /// Who says to have issued it.
    pub(super) fn issuer(&self) -> &str {
        text(&self.claims, "iss")
    }

    /// The claims of a token whose signature is known to be good.
    pub(super) fn into_claims(self) -> Value {
        self.claims
    }

    /// The claims, if one of the keys signed them.
    pub(super) fn verify<'k>(self, keys: impl Iterator<Item = &'k TokenKey>) -> Result<Value, TokenError> {
        // The token does not choose the algorithm: our keys know one only.
        if text(&self.header, "alg") != "ES256" || self.header.get("crit").is_some() {
            return Err(TokenError::BadSignature);
        }
        let id = text(&self.header, "kid");
        let mut known = false;
        for key in keys.filter(|key| id.is_empty() || key.id() == id) {
            known = true;
            if key.verify(self.signed.as_bytes(), &self.signature) {
                return Ok(self.claims);
            }
        }
        Err(if known {
            TokenError::BadSignature
        } else {
            TokenError::UnknownKey
        })
    }
}
