//! A request for a certificate (PKCS #10): who is to be named in it, and whether whoever asks holds the key.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::der_parser::oid;
use x509_parser::prelude::FromDer as _;

/// Why a request cannot become a certificate, in the words of a kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is no PEM block, or one of something else.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    /// The block has other contents.
    #[error("asn1: structure error: {0}")]
    Malformed(String),
    /// It was not signed with the key that it names.
    #[error("{0}")]
    BadSignature(&'static str),
}

/// What a well-made request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// The organisations of the subject: the groups of its holder.
    pub organizations: Vec<String>,
}

impl SigningRequest {
    /// Reads a request in PEM, and checks its signature.
    pub fn parse(pem: &[u8]) -> Result<Self, RequestError> {
        let (_, block) = x509_parser::pem::parse_x509_pem(pem).map_err(|_| RequestError::NotPem)?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(RequestError::NotPem);
        }
        let (_, request) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|error| RequestError::Malformed(error.to_string()))?;
        request
            .verify_signature()
            .map_err(|_| RequestError::BadSignature(failure(&request)))?;
        let subject = &request.certification_request_info.subject;
        Ok(Self {
            organizations: subject
                .iter_organization()
                .filter_map(|name| name.as_str().ok().map(str::to_owned))
                .collect(),
        })
    }
}

/// How a failed check of a signature is called, by its algorithm.
fn failure(request: &X509CertificationRequest<'_>) -> &'static str {
    let algorithm = &request.signature_algorithm.algorithm;
    if *algorithm == oid!(1.3.101.112) {
        "x509: Ed25519 verification failure"
    } else if algorithm.to_id_string().starts_with("1.2.840.10045.") {
        "x509: ECDSA verification failure"
    } else {
        "crypto/rsa: verification error"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn request() -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "ann");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        let request = params.serialize_request(&KeyPair::generate().unwrap());
        request.unwrap().pem().unwrap()
    }

    #[test]
    fn a_request_names_its_groups() {
        let parsed = SigningRequest::parse(request().as_bytes()).unwrap();
        assert_eq!(parsed.organizations, ["devs"]);
    }

    #[test]
    fn what_is_no_request_is_told() {
        let other = request().replace("CERTIFICATE REQUEST", "CERTIFICATE");
        for wrong in ["", "x", &other] {
            assert_eq!(
                SigningRequest::parse(wrong.as_bytes()),
                Err(RequestError::NotPem),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_request_is_signed_with_its_key() {
        let pem = request();
        let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let mut der = block.contents;
        let at = der.windows(3).position(|part| part == b"ann").unwrap();
        der[at..at + 3].copy_from_slice(b"bob");
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&der);
        let forged =
            format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n");
        let error = SigningRequest::parse(forged.as_bytes()).unwrap_err();
        assert_eq!(
            error,
            RequestError::BadSignature("x509: ECDSA verification failure")
        );
    }
}
