//! The key that signs service-account tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery_value::Value;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

use crate::pki::PkiError;

/// In front of an uncompressed P-256 point this makes a SubjectPublicKeyInfo.
const P256_INFO_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// An ECDSA P-256 key pair.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl TokenKey {
    /// A new key.
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self::generate_with_pem()?.0)
    }

    /// A new key, and its PEM to keep.
    pub fn generate_with_pem() -> Result<(Self, String), PkiError> {
        let what = "the token key";
        let made =
            rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::make(what))?;
        let key = Self::from_pkcs8(made.serialized_der()).map_err(|why| PkiError::Make { what, why })?;
        Ok((key, made.serialize_pem()))
    }

    /// Reads a key from PEM (PKCS #8); the error says what is wrong with it.
    pub fn from_pem(pem: &str) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        Self::from_pkcs8(der.secret_pkcs8_der())
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
            .map_err(|_| "not an ECDSA P-256 private key in PKCS #8".to_owned())?;
        let info = [&P256_INFO_PREFIX, pair.public_key().as_ref()].concat();
        let digest = ring::digest::digest(&ring::digest::SHA256, &info);
        Ok(Self {
            pair,
            random,
            id: URL_SAFE_NO_PAD.encode(digest),
        })
    }

    /// The key's id, which tokens carry: the digest of the public key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs; fails only if the system has no randomness to give.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.pair
            .sign(&self.random, message)
            .ok()
            .map(|signature| signature.as_ref().to_vec())
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(message, signature).is_ok()
    }

    /// The public key as one entry of a JWKS document.
    pub(super) fn to_jwk(&self) -> Value {
        // An uncompressed point: a tag, then the two coordinates of 32 bytes each.
        let point = self.pair.public_key().as_ref();
        let (x, y) = (
            point.get(1..33).unwrap_or_default(),
            point.get(33..65).unwrap_or_default(),
        );
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}
