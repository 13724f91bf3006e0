//! The server's own certificate authority, its certificate, and the key that signs service-account tokens.
//!
//! Everything is made on first start and found again at the next ([`Pki::load_or_create`]), or lives in memory
//! only ([`Pki::ephemeral`]). One `Pki` serves any number of servers in a process: they share the certificate
//! authority and one server certificate.
//!
//! The directory, which its owner alone may enter:
//!
//! | file | what | mode |
//! |---|---|---|
//! | `ca.crt`, `ca.key` | the certificate authority, ten years | 0644, 0600 |
//! | `apiserver.crt`, `apiserver.key` | the server, one year, renewed at start in its last 30 days | 0644, 0600 |
//! | `sa.key` | signs service-account tokens | 0600 |
//!
//! What always holds: a file is written whole or not at all, its key before its certificate; a key that others
//! could read is closed to them before use, and [`Pki::warnings`] says so; a damaged file is an error that names
//! it, never a reason to quietly make a new authority that no client knows.

mod authority;
mod clients;
mod der;
mod files;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::token::{DEFAULT_ISSUER, ServiceAccountTokens, TokenKey};
use authority::Authority;
pub use clients::Clients;
use files::Directory;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the certificate authority lives.
const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * DAY.as_secs());
/// How long server certificates live, and client certificates unless told otherwise.
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * DAY.as_secs());
/// A server certificate with less than this left is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * DAY.as_secs());
/// Certificates are valid from a little before they were made, for peers whose clocks are behind.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Under which names every server certificate answers.
const SERVER_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Why the certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// Reading, writing or changing a file did not work.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done: `read`, `write`, …
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {what}; {remedy}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What the owner can do.
        remedy: &'static str,
    },
    /// One of two files that belong together is missing.
    #[error("{} is there but {} is missing; restore it, or remove both to start a new authority", present.display(), missing.display())]
    Incomplete {
        /// The file that is there.
        present: PathBuf,
        /// The file that is not.
        missing: PathBuf,
    },
    /// The certificate authority is not valid now.
    #[error("{} is valid from {from} until {until} only; check the clock, or remove ca.crt and ca.key to start a new authority", path.display())]
    AuthorityNotValid {
        /// The certificate's file.
        path: PathBuf,
        /// Not before.
        from: Timestamp,
        /// Not after.
        until: Timestamp,
    },
    /// A name that cannot be in a certificate.
    #[error("{0:?} cannot be a name in a certificate")]
    BadName(String),
    /// Making a key or a certificate did not work.
    #[error("make {what}: {why}")]
    Make {
        /// What was to be made.
        what: &'static str,
        /// Why it was not.
        why: String,
    },
}

impl PkiError {
    pub(crate) fn make(what: &'static str) -> impl Fn(rcgen::Error) -> Self {
        move |error| Self::Make {
            what,
            why: error.to_string(),
        }
    }
}

/// What may differ from one installation to another.
#[derive(Clone, Debug, Default)]
pub struct PkiOptions {
    /// Further host names and addresses for the server certificate; a stored one that lacks any is renewed.
    pub server_names: Vec<String>,
}

/// A certificate authority and what it needs to serve. See the module's documentation.
pub struct Pki {
    authority: Authority,
    token_key: Arc<TokenKey>,
    service_account_tokens: ServiceAccountTokens,
    server_config: Arc<rustls::ServerConfig>,
    clients: Clients,
    server_until: Timestamp,
    warnings: Vec<String>,
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki")
            .field("server_until", &self.server_until)
            .finish_non_exhaustive()
    }
}

impl Pki {
    /// Opens the directory, making it and whatever is missing in it.
    pub fn load_or_create(dir: impl AsRef<Path>) -> Result<Self, PkiError> {
        Self::load_or_create_with(dir, &PkiOptions::default(), Timestamp::now())
    }

    /// The same with options, and with `now` as the time.
    pub fn load_or_create_with(
        dir: impl AsRef<Path>,
        options: &PkiOptions,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let mut directory = Directory::open(dir.as_ref())?;
        let authority = Authority::load_or_create(&mut directory, now)?;
        let token_key = load_or_create_token_key(&mut directory)?;
        let server = server::load_or_create(&mut directory, &authority, options, now)?;
        Self::assemble(authority, token_key, server, directory.into_warnings())
    }

    /// A new authority that is gone when the process ends.
    pub fn ephemeral() -> Result<Self, PkiError> {
        Self::ephemeral_with(&PkiOptions::default(), Timestamp::now())
    }

    /// The same with options, and with `now` as the time.
    pub fn ephemeral_with(options: &PkiOptions, now: Timestamp) -> Result<Self, PkiError> {
        let authority = Authority::create(now)?;
        let server = server::create(&authority, options, now)?;
        Self::assemble(authority, TokenKey::generate()?, server, Vec::new())
    }

    fn assemble(
        authority: Authority,
        token_key: TokenKey,
        server: server::ServerIdentity,
        warnings: Vec<String>,
    ) -> Result<Self, PkiError> {
        let (server_config, clients) = server.tls_config(&authority)?;
        let token_key = Arc::new(token_key);
        let service_account_tokens = ServiceAccountTokens::new(Arc::clone(&token_key), DEFAULT_ISSUER);
        let server_until = server.until;
        Ok(Self {
            authority,
            token_key,
            service_account_tokens,
            server_config: Arc::new(server_config),
            clients,
            server_until,
            warnings,
        })
    }

    /// How to accept TLS connections: version 1.2 or later, HTTP/2 or HTTP/1.1, and a client certificate if the
    /// client has one. **That a connection has one says nothing yet**: [`Pki::clients`] must verify it.
    pub fn server_config(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.server_config)
    }

    /// Who the clients are that come with certificates.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The authority's certificate, for clients to trust.
    pub fn ca_pem(&self) -> &str {
        self.authority.pem()
    }

    /// The key that signs service-account tokens.
    pub fn token_key(&self) -> Arc<TokenKey> {
        Arc::clone(&self.token_key)
    }

    /// Issues and verifies service-account tokens, for the default issuer.
    pub fn service_account_tokens(&self) -> &ServiceAccountTokens {
        &self.service_account_tokens
    }

    /// Until when the server certificate is valid.
    pub fn server_certificate_until(&self) -> Timestamp {
        self.server_until
    }

    /// What was found and repaired while opening the directory, for the log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A certificate and key (both PEM) that authenticate as `user` in `groups`, valid for a year.
    pub fn client_cert<S: AsRef<str>>(&self, user: &str, groups: &[S]) -> Result<(String, String), PkiError> {
        self.client_cert_for(user, groups, LEAF_LIFETIME, Timestamp::now())
    }

    /// The same from `now` for `lifetime`, though never longer than the authority lives.
    pub fn client_cert_for<S: AsRef<str>>(
        &self,
        user: &str,
        groups: &[S],
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(String, String), PkiError> {
        self.authority.client_certificate(user, groups, lifetime, now)
    }
}

const TOKEN_KEY_FILE: &str = "sa.key";

fn load_or_create_token_key(directory: &mut Directory) -> Result<TokenKey, PkiError> {
    match directory.read_key(TOKEN_KEY_FILE)? {
        Some(pem) => TokenKey::from_pem(&pem).map_err(|error| PkiError::Damaged {
            path: directory.path(TOKEN_KEY_FILE),
            what: error.to_string(),
            remedy: "restore it, or remove it, which makes all issued service-account tokens invalid",
        }),
        None => {
            let (key, pem) = TokenKey::generate_with_pem()?;
            directory.write_key(TOKEN_KEY_FILE, &pem)?;
            Ok(key)
        }
    }
}
