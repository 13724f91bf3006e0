//! The server's certificate, and how to accept connections with it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authority::{Authority, generate_key, parse_key, set_validity, validity};
use super::clients::{AnyHeld, Clients};
use super::files::Directory;
use super::{LEAF_LIFETIME, PkiError, PkiOptions, RENEW_BEFORE, SERVER_NAMES};

const CERTIFICATE_FILE: &str = "apiserver.crt";
const KEY_FILE: &str = "apiserver.key";
const REMEDY: &str = "remove apiserver.crt and apiserver.key, and they are made anew";

/// A certificate and its key, both PEM.
pub(super) struct ServerIdentity {
    certificate: String,
    key: String,
    pub(super) until: Timestamp,
}

pub(super) fn load_or_create(
    directory: &mut Directory,
    authority: &Authority,
    options: &PkiOptions,
    now: Timestamp,
) -> Result<ServerIdentity, PkiError> {
    let certificate = directory.read(CERTIFICATE_FILE)?;
    let key = directory.read_key(KEY_FILE)?;
    if let (Some(certificate), Some(key)) = (certificate, key) {
        let damaged = |file: &str, what: String| PkiError::Damaged {
            path: directory.path(file),
            what,
            remedy: REMEDY,
        };
        let public = parse_key(&key)
            .map_err(|what| damaged(KEY_FILE, what))?
            .public_key_raw()
            .to_vec();
        let stored = inspect(&certificate).map_err(|what| damaged(CERTIFICATE_FILE, what))?;
        let judged = stored.judge(authority, &public, &wanted_names(options)?, now);
        if let Some(until) = judged.map_err(|what| damaged(CERTIFICATE_FILE, what))? {
            return Ok(ServerIdentity {
                certificate,
                key,
                until,
            });
        }
    }
    let made = create(authority, options, now)?;
    directory.write_key(KEY_FILE, &made.key)?;
    directory.write_certificate(CERTIFICATE_FILE, &made.certificate)?;
    Ok(made)
}

pub(super) fn create(
    authority: &Authority,
    options: &PkiOptions,
    now: Timestamp,
) -> Result<ServerIdentity, PkiError> {
    let names: Vec<String> = wanted_names(options)?.into_iter().collect();
    let making = PkiError::make("the server certificate");
    let mut params = CertificateParams::new(names).map_err(&making)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    params.is_ca = rcgen::IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let until = authority.until(now, LEAF_LIFETIME);
    set_validity(&mut params, now, until);
    let key = generate_key()?;
    let certificate = params.signed_by(&key, authority.issuer()).map_err(&making)?.pem();
    Ok(ServerIdentity {
        certificate,
        key: key.serialize_pem(),
        until,
    })
}

/// The fixed names and the configured ones, in one spelling.
fn wanted_names(options: &PkiOptions) -> Result<BTreeSet<String>, PkiError> {
    let mut names: BTreeSet<String> = SERVER_NAMES.iter().map(|&name| name.to_owned()).collect();
    for name in &options.server_names {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => names.insert(address.to_string()),
            Err(_) if is_host_name(name) => names.insert(name.to_ascii_lowercase()),
            Err(_) => return Err(PkiError::BadName(name.clone())),
        };
    }
    Ok(names)
}

fn is_host_name(name: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    name.len() <= 253 && name.split('.').all(part)
}

struct Stored(CertificateDer<'static>);

fn inspect(pem: &str) -> Result<Stored, String> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .map(Stored)
        .map_err(|error| error.to_string())
}

impl Stored {
    /// Until when it can be used; `None` if it should be renewed, an error if it cannot be read.
    fn judge(
        &self,
        authority: &Authority,
        public_key: &[u8],
        names: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, String> {
        let (_, parsed) = X509Certificate::from_der(&self.0).map_err(|error| error.to_string())?;
        let (from, until) = validity(&parsed)?;
        let held = names_of(&parsed).map_err(|error| error.to_string())?;
        // A key of another certificate: a crash came between the two writes.
        let fits = *parsed.public_key().subject_public_key.data == *public_key
            && authority.issued(&parsed)
            && names.is_subset(&held);
        let fresh = from <= now && now.checked_add(RENEW_BEFORE).is_ok_and(|soon| soon < until);
        Ok((fits && fresh).then_some(until))
    }
}

fn names_of(certificate: &X509Certificate<'_>) -> Result<BTreeSet<String>, x509_parser::error::X509Error> {
    let mut names = BTreeSet::new();
    if let Some(extension) = certificate.subject_alternative_name()? {
        for name in &extension.value.general_names {
            match name {
                GeneralName::DNSName(name) => {
                    names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => {
                    let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                    let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                    names.extend(address.ok().map(|address| address.to_string()));
                }
                _ => {}
            }
        }
    }
    Ok(names)
}

impl ServerIdentity {
    /// How to accept connections, and who the clients are that come with certificates.
    pub(super) fn tls_config(
        &self,
        authority: &Authority,
    ) -> Result<(rustls::ServerConfig, Clients), PkiError> {
        let failed = |why: String| PkiError::Make {
            what: "the TLS configuration",
            why,
        };
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| failed(error.to_string()))?;

        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(authority.certificate().clone())
            .map_err(|error| failed(error.to_string()))?;
        // Named here rather than taken from the process: a library must not depend on what main installed.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| failed(error.to_string()))?
            .with_client_cert_verifier(Arc::new(AnyHeld(verifier.clone())))
            .with_single_cert(vec![certificate], key)
            .map_err(|error| failed(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok((config, Clients::new(verifier)))
    }
}
