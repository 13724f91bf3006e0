//! A small HTTP client: one connection for each request, so that no step can disturb the next, and everything bounded.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longer than any watch of a script, and than the server's own wait for a resource version that never comes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);
const ANSWER_LIMIT: usize = 64 << 20;

/// A server to talk to, and who we are there. The scripts expect an administrator.
#[derive(Clone, Debug)]
pub struct Target {
    /// What reports call it.
    pub name: String,
    /// `https://host:port` or `http://host:port`, without a path.
    pub base_url: String,
    /// The certificates that sign the server's; needed for `https`.
    pub ca_pem: Option<Vec<u8>>,
    /// How we prove who we are.
    pub credential: Credential,
}

/// How a client proves who it is.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Not at all.
    Anonymous,
    /// `Authorization: Bearer`.
    Token(String),
    /// A certificate chain and its key, both PEM.
    ClientCert {
        /// The chain, leaf first.
        cert_pem: Vec<u8>,
        /// The key of the leaf.
        key_pem: Vec<u8>,
    },
}

impl Target {
    /// The server that `real/start DIR` runs, reached with its administrator's token.
    pub fn from_directory(name: &str, dir: &Path) -> Result<Target, TargetError> {
        let read = |file: &str| {
            std::fs::read(dir.join(file))
                .map_err(|error| TargetError(format!("{}: {error}", dir.join(file).display())))
        };
        let text = |file: &str| Ok(String::from_utf8_lossy(&read(file)?).trim().to_owned());
        Ok(Target {
            name: name.to_owned(),
            base_url: text("url")?,
            ca_pem: Some(read("ca.crt")?),
            credential: Credential::Token(text("admin.token")?),
        })
    }
}

/// A target that cannot be used as it is described.
#[derive(Debug, thiserror::Error)]
#[error("target cannot be used: {0}")]
pub struct TargetError(pub(crate) String);

/// A request that got no whole answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer: {0}")]
pub struct TransportError(String);

/// What a server answered, as far as it is compared.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Content-Type`, if any.
    pub content_type: String,
    /// Every `Warning` header, in order.
    pub warnings: Vec<String>,
    /// `Retry-After`, if any.
    pub retry_after: Option<String>,
    /// `Audit-Id`, if any.
    pub audit_id: Option<String>,
    /// `Cache-Control`, if any.
    pub cache_control: Option<String>,
    /// `ETag`, if any.
    pub etag: Option<String>,
    /// The body as it came.
    pub body: Bytes,
}

impl Answer {
    /// Whether the server asks to try again.
    pub(crate) fn is_later(&self) -> bool {
        self.status == 429 && self.retry_after.is_some()
    }
}

/// One request, ready to send.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) anonymous: bool,
}

pub(crate) struct Client {
    host: String,
    port: u16,
    token: Option<String>,
    tls: Option<Tls>,
}

struct Tls {
    name: ServerName<'static>,
    known: TlsConnector,
    anonymous: TlsConnector,
}

impl Client {
    pub(crate) fn new(target: &Target) -> Result<Client, TargetError> {
        let bad = |what: &str| TargetError(format!("{}: {what}", target.base_url));
        let uri: Uri = target.base_url.parse().map_err(|_| bad("not a URL"))?;
        let host = uri.host().ok_or_else(|| bad("no host"))?.to_owned();
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("neither http nor https")),
        };
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = if secure {
            let name = ServerName::try_from(host.clone()).map_err(|_| bad("not a server name"))?;
            let (known, anonymous) = (connector(target, true)?, connector(target, false)?);
            Some(Tls {
                name,
                known,
                anonymous,
            })
        } else {
            None
        };
        let token = match &target.credential {
            Credential::Token(token) => Some(token.clone()),
            _ => None,
        };
        Ok(Client {
            host,
            port,
            token,
            tls,
        })
    }

    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, TransportError> {
        tokio::time::timeout(REQUEST_TIMEOUT, self.exchange(call))
            .await
            .map_err(|_| TransportError(format!("not finished after {REQUEST_TIMEOUT:?}")))?
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, TransportError> {
        let lost = |error: &dyn std::fmt::Display| TransportError(error.to_string());
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| lost(&e))?;
        stream.set_nodelay(true).map_err(|e| lost(&e))?;
        let request = self.request(call)?;
        match &self.tls {
            None => answer(stream, request).await,
            Some(tls) => {
                let connector = if call.anonymous {
                    &tls.anonymous
                } else {
                    &tls.known
                };
                let stream = connector
                    .connect(tls.name.clone(), stream)
                    .await
                    .map_err(|e| lost(&e))?;
                answer(stream, request).await
            }
        }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, TransportError> {
        let mut request = Request::builder()
            .method(call.method.as_str())
            .uri(call.path.as_str())
            .header(header::HOST, format!("{}:{}", self.host, self.port))
            .header(header::CONNECTION, "close");
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let (Some(token), false) = (&self.token, call.anonymous) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request
            .body(Full::new(call.body.clone()))
            .map_err(|error| TransportError(format!("{} {}: {error}", call.method, call.path)))
    }
}

fn connector(target: &Target, with_identity: bool) -> Result<TlsConnector, TargetError> {
    let bad = |what: &str, error: &dyn std::fmt::Display| {
        TargetError(format!("{}: {what}: {error}", target.base_url))
    };
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(target.ca_pem.as_deref().unwrap_or_default()) {
        let cert = cert.map_err(|e| bad("CA", &e))?;
        roots.add(cert).map_err(|e| bad("CA", &e))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad("TLS", &e))?
        .with_root_certificates(roots);
    let config = match &target.credential {
        Credential::ClientCert { cert_pem, key_pem } if with_identity => {
            let chain = CertificateDer::pem_slice_iter(cert_pem)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| bad("client certificate", &e))?;
            let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|e| bad("client key", &e))?;
            config
                .with_client_auth_cert(chain, key)
                .map_err(|e| bad("client certificate", &e))?
        }
        _ => config.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn answer<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, TransportError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let lost = |error: hyper::Error| TransportError(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(lost)?;
    // The connection ends with the request; its own error is seen by the request too.
    let driver = tokio::spawn(async move { connection.await.ok() });
    let answered = match sender.send_request(request).await {
        Ok(response) => whole(response).await,
        Err(error) => Err(lost(error)),
    };
    driver.abort();
    answered
}

async fn whole(response: Response<Incoming>) -> Result<Answer, TransportError> {
    let (head, body) = response.into_parts();
    let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let body = Limited::new(body, ANSWER_LIMIT)
        .collect()
        .await
        .map_err(|error| TransportError(format!("the answer broke off: {error}")))?;
    Ok(Answer {
        status: head.status.as_u16(),
        content_type: head
            .headers
            .get(header::CONTENT_TYPE)
            .map(text)
            .unwrap_or_default(),
        warnings: head.headers.get_all(header::WARNING).iter().map(text).collect(),
        retry_after: head.headers.get(header::RETRY_AFTER).map(text),
        audit_id: head.headers.get("audit-id").map(text),
        cache_control: head.headers.get(header::CACHE_CONTROL).map(text),
        etag: head.headers.get(header::ETAG).map(text),
        body: body.to_bytes(),
    })
}
