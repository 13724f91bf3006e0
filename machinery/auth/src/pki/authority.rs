//! The certificate authority.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
    SigningKey as _,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::der::{self, ClientCertificate};
use super::files::Directory;
use super::{CA_LIFETIME, CLOCK_SKEW, PkiError};

const CERTIFICATE_FILE: &str = "ca.crt";
const KEY_FILE: &str = "ca.key";
const REMEDY: &str =
    "restore it, or remove ca.crt and ca.key to start a new authority, which clients must then be told";
/// Names longer than this are nobody's; certificates should stay small.
const MAX_NAME: usize = 1024;
/// More groups than this are a mistake.
const MAX_GROUPS: usize = 128;

/// A certificate and the key that signs with it.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// The subject's name, encoded: the issuer's name in what is signed.
    name: Vec<u8>,
    key_id: Vec<u8>,
    from: Timestamp,
    until: Timestamp,
}

impl Authority {
    pub(super) fn load_or_create(directory: &mut Directory, now: Timestamp) -> Result<Self, PkiError> {
        let certificate = directory.read(CERTIFICATE_FILE)?;
        let key = directory.read_key(KEY_FILE)?;
        let damaged = |file: &str, what: String| PkiError::Damaged {
            path: directory.path(file),
            what,
            remedy: REMEDY,
        };
        match (certificate, key) {
            (Some(pem), Some(key)) => {
                let key = parse_key(&key).map_err(|what| damaged(KEY_FILE, what))?;
                let authority = Self::from_pem(pem, key).map_err(|what| damaged(CERTIFICATE_FILE, what))?;
                if now < authority.from || now > authority.until {
                    let (from, until) = (authority.from, authority.until);
                    return Err(PkiError::AuthorityNotValid {
                        path: directory.path(CERTIFICATE_FILE),
                        from,
                        until,
                    });
                }
                Ok(authority)
            }
            (Some(_), None) => Err(PkiError::Incomplete {
                present: directory.path(CERTIFICATE_FILE),
                missing: directory.path(KEY_FILE),
            }),
            // A crash came between the two writes: nobody has seen a certificate of this key.
            (None, Some(key)) => {
                let key = parse_key(&key).map_err(|what| damaged(KEY_FILE, what))?;
                let authority = Self::with_key(key, now)?;
                directory.write_certificate(CERTIFICATE_FILE, &authority.pem)?;
                Ok(authority)
            }
            (None, None) => {
                let authority = Self::create(now)?;
                directory.write_key(KEY_FILE, &authority.issuer.key().serialize_pem())?;
                directory.write_certificate(CERTIFICATE_FILE, &authority.pem)?;
                Ok(authority)
            }
        }
    }

    pub(super) fn create(now: Timestamp) -> Result<Self, PkiError> {
        Self::with_key(generate_key()?, now)
    }

    fn with_key(key: KeyPair, now: Timestamp) -> Result<Self, PkiError> {
        let making = PkiError::make("the certificate authority");
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        // Authorities that follow each other must not have the same name, or clients mix them up.
        params
            .distinguished_name
            .push(DnType::CommonName, format!("machinery-ca@{}", now.as_second()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::CrlSign,
        ];
        set_validity(&mut params, now, later(now, CA_LIFETIME));
        let pem = params.self_signed(&key).map_err(making)?.pem();
        Self::from_pem(pem, key).map_err(|why| PkiError::Make {
            what: "the certificate authority",
            why,
        })
    }

    fn from_pem(pem: String, key: KeyPair) -> Result<Self, String> {
        let certificate =
            CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|error| error.to_string())?;
        if !parsed.is_ca() {
            return Err("not the certificate of an authority".into());
        }
        if *parsed.public_key().subject_public_key.data != *key.public_key_raw() {
            return Err("the certificate and the key do not belong together".into());
        }
        let name = parsed.subject().as_raw().to_vec();
        let (from, until) = validity(&parsed)?;
        let key_id = parsed
            .iter_extensions()
            .find_map(|extension| match extension.parsed_extension() {
                x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
            .ok_or("no subject key identifier")?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| error.to_string())?;
        Ok(Self {
            issuer,
            certificate,
            pem,
            name,
            key_id,
            from,
            until,
        })
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(super) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Whether a certificate says that it comes from here.
    pub(super) fn issued(&self, certificate: &X509Certificate<'_>) -> bool {
        certificate.issuer().as_raw() == self.name
            && certificate.iter_extensions().any(|extension| {
                matches!(extension.parsed_extension(),
                    x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(id)
                        if id.key_identifier.as_ref().is_some_and(|id| id.0 == self.key_id))
            })
    }

    /// When something that is made now for `lifetime` ends: not after the authority.
    pub(super) fn until(&self, now: Timestamp, lifetime: Duration) -> Timestamp {
        later(now, lifetime).min(self.until)
    }

    pub(super) fn client_certificate<S: AsRef<str>>(
        &self,
        user: &str,
        groups: &[S],
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(String, String), PkiError> {
        let groups: Vec<&str> = groups.iter().map(AsRef::as_ref).collect();
        for name in groups.iter().chain([&user]) {
            if name.is_empty() || name.len() > MAX_NAME {
                return Err(PkiError::BadName((*name).to_owned()));
            }
        }
        let what = "a client certificate";
        if groups.len() > MAX_GROUPS {
            return Err(PkiError::Make {
                what,
                why: format!("more than {MAX_GROUPS} groups"),
            });
        }
        let key = generate_key()?;
        let to_be_signed = ClientCertificate {
            serial: uuid::Uuid::new_v4().into_bytes(),
            issuer: &self.name,
            issuer_key_id: &self.key_id,
            from: earlier(now, CLOCK_SKEW).max(self.from),
            until: self.until(now, lifetime),
            user,
            groups,
            public_key_info: &key.subject_public_key_info(),
        }
        .to_be_signed();
        let signature = self
            .issuer
            .key()
            .sign(&to_be_signed)
            .map_err(PkiError::make(what))?;
        let certificate = der::certificate(&to_be_signed, &signature);
        Ok((pem("CERTIFICATE", &certificate), key.serialize_pem()))
    }
}

pub(super) fn generate_key() -> Result<KeyPair, PkiError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::make("a key"))
}

/// Keys of one kind only: the one that is made here.
pub(super) fn parse_key(pem: &str) -> Result<KeyPair, String> {
    KeyPair::from_pkcs8_pem_and_sign_algo(pem, &rcgen::PKCS_ECDSA_P256_SHA256)
        .map_err(|_| "not an ECDSA P-256 private key in PKCS #8 and PEM".to_owned())
}

/// From when until when a certificate is valid.
pub(super) fn validity(certificate: &X509Certificate<'_>) -> Result<(Timestamp, Timestamp), String> {
    let validity = certificate.validity();
    let at = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| error.to_string());
    Ok((
        at(validity.not_before.timestamp())?,
        at(validity.not_after.timestamp())?,
    ))
}

pub(super) fn set_validity(params: &mut CertificateParams, now: Timestamp, until: Timestamp) {
    let date_time = |at: Timestamp| {
        let seconds = u64::try_from(at.as_second()).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = date_time(earlier(now, CLOCK_SKEW));
    params.not_after = date_time(until);
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        // Base64 is ASCII, so every chunk is text.
        out.push_str(std::str::from_utf8(line).unwrap_or_default());
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}
