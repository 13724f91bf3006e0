//! Client certificates: whose they are is decided for the requests, not for the connection.
//!
//! A client may come with a certificate that means nothing here, and a token besides; or with one that is over, and be
//! told so. Neither is a reason to refuse the connection, so that TLS asks for a certificate, sees that the client holds
//! its key, and leaves the rest to [`Clients::verify`].

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};

use crate::x509::{PeerCertificate, X509Error};

/// Knows the certificates of one authority.
#[derive(Clone, Debug)]
pub struct Clients(Arc<dyn ClientCertVerifier>);

impl Clients {
    pub(super) fn new(strict: Arc<dyn ClientCertVerifier>) -> Self {
        Self(strict)
    }

    /// The peer whose chain this is, its own certificate first, if the authority vouches for it now.
    pub fn verify(&self, chain: &[CertificateDer<'_>]) -> Result<PeerCertificate, X509Error> {
        let (own, others) = chain
            .split_first()
            .ok_or_else(|| X509Error::Unverified("there is none".to_owned()))?;
        self.0
            .verify_client_cert(own, others, UnixTime::now())
            .map_err(|error| X509Error::Unverified(error.to_string()))?;
        PeerCertificate::parse(own)
    }
}

/// Takes any certificate whose key the client holds: nobody is known by it before [`Clients::verify`].
#[derive(Debug)]
pub(super) struct AnyHeld(pub(super) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyHeld {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
