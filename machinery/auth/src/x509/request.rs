//! A request for a certificate (PKCS #10): who is to be named in it, and whether whoever asks holds the key.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::der_parser::oid;
use x509_parser::error::X509Error;
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
    /// It may have been: this server cannot tell. A kube-apiserver verifies more algorithms.
    #[error(
        "x509: cannot verify signature: algorithm unimplemented: {0}; sign with a key of P-256, P-384, Ed25519 or RSA, by \
         SHA-256 or SHA-384"
    )]
    Unsupported(String),
    /// An organisation of the subject is text of a kind that is not read here. Left out, it would be a group that nobody saw
    /// when the request was approved.
    #[error(
        "x509: an organization of the subject is no UTF8String, PrintableString or IA5String: encode it as one"
    )]
    UnreadableOrganization,
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
        request.verify_signature().map_err(|error| match error {
            X509Error::SignatureUnsupportedAlgorithm => RequestError::Unsupported(algorithm(&request)),
            _ => RequestError::BadSignature(failure(&request)),
        })?;
        let subject = &request.certification_request_info.subject;
        let organizations: Result<_, _> = subject
            .iter_organization()
            .map(|name| name.as_str().map(str::to_owned))
            .collect();
        Ok(Self {
            organizations: organizations.map_err(|_| RequestError::UnreadableOrganization)?,
        })
    }
}

/// How a request is signed, in words where there are any.
fn algorithm(request: &X509CertificationRequest<'_>) -> String {
    let signature = request.signature_algorithm.algorithm.to_id_string();
    let signature = match signature.as_str() {
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.3.4" => "ecdsa-with-SHA512",
        other => other,
    };
    let key = &request.certification_request_info.subject_pki.algorithm;
    let curve = key.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
    match curve.map(|curve| curve.to_id_string()).as_deref() {
        Some("1.2.840.10045.3.1.7") => format!("{signature} with P-256"),
        Some("1.3.132.0.34") => format!("{signature} with P-384"),
        Some("1.3.132.0.35") => format!("{signature} with P-521"),
        Some(curve) => format!("{signature} with the curve {curve}"),
        None => signature.to_owned(),
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

    /// A key of P-521, by SHA-512.
    const P521: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBYDCBwgIBADAdMQwwCgYDVQQDDANhbm4xDTALBgNVBAoMBGRldnMwgZswEAYH
KoZIzj0CAQYFK4EEACMDgYYABAEwhpW70djuHnaX4aetv+O+KEu81auOBomZpfu0
OAIhgYjpqdYOWnQbsupVGpyyHrLMqbvwHOvLyUbfNHQLs0naZQCWNJwscejQQdDp
c6K19w1vtZNDaakXH9+Kt55W6SJop/wzBXAgk8fy1OlnO4x71KatkFZuOX+zWWg+
rcRofrmRdKAAMAoGCCqGSM49BAMEA4GMADCBiAJCAKB18Er3+SAQk6wKkA8J3L2s
YT8NqJGbQvEuJz7YAjeTXx4NXRxZ5db3tf/a5P1uIG/q/IQEX+prvt2q3kso5ei3
AkIBYP81LCoRIZCFaxRTIh1jrAO9HflftOIEtTlID0JNOyNWdaGH1hJFZa8jrw1F
k80r27d87oH7cbfKGeD6SqnduS4=
-----END CERTIFICATE REQUEST-----";
    /// A key of P-256, by SHA-512.
    const P256_SHA512: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHXMH8CAQAwHTEMMAoGA1UEAwwDYW5uMQ0wCwYDVQQKDARkZXZzMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAELLUxixfHO1PouRA5oPN1SyreeBp3JJiv8mShWbPg
/egBQSCfS+6S92RoNjJSJknCoSelOS4LjOoRNvidGBfVmKAAMAoGCCqGSM49BAME
A0gAMEUCIQDumyo8dpfPjuVVW8IKFoklVAuALfUWveWFwWN48KDMoAIgb+t+uhk8
0/SiwU2LIHFqSOapqw0Hd0x/ibK7eXWEvN0=
-----END CERTIFICATE REQUEST-----";
    /// Its organisation is a BMPString.
    const BMP: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHfMIGGAgEAMCQxDzANBgNVBAMeBgBhAG4AbjERMA8GA1UECh4IAGQAZQB2AHMw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQstTGLF8c7U+i5EDmg83VLKt54Gnck
mK/yZKFZs+D96AFBIJ9L7pL3ZGg2MlImScKhJ6U5LguM6hE2+J0YF9WYoAAwCgYI
KoZIzj0EAwIDSAAwRQIgT2Nv/W7EfM6+ClqF0x7qVS6Yjxn84qvym7IQJEDaP+EC
IQCLqfF9m5FD8hpZ9KQ8PA/zfoi7KzTM4aeKXLf2VSaeag==
-----END CERTIFICATE REQUEST-----";

    #[test]
    fn what_cannot_be_verified_here_is_told() {
        for (pem, algorithm) in [
            (P521, "ecdsa-with-SHA512 with P-521"),
            (P256_SHA512, "ecdsa-with-SHA512 with P-256"),
        ] {
            let error = SigningRequest::parse(pem.as_bytes()).unwrap_err();
            assert_eq!(error, RequestError::Unsupported(algorithm.to_owned()));
            assert!(error.to_string().contains(algorithm), "{error}");
        }
    }

    #[test]
    fn an_organization_that_cannot_be_read_is_not_left_out() {
        assert_eq!(
            SigningRequest::parse(BMP.as_bytes()),
            Err(RequestError::UnreadableOrganization)
        );
    }
}
