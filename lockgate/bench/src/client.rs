//! The client of both servers: HTTP/2 over TLS, some connections, everything bounded.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::BenchError;
use crate::kubeconfig::{Credential, Target};

const JSON: &str = "application/json";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Enough for a list of 100,000 objects.
const ANSWER_LIMIT: usize = 1 << 30;
/// The windows of Go's client, which is what servers of this API meet most.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Connections to one server.
pub(crate) struct Client {
    connections: Vec<SendRequest<Full<Bytes>>>,
    authority: String,
    token: Option<HeaderValue>,
}

/// One request, and the answer that it must get.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    /// What the body is, if there is one.
    content_type: &'static str,
    pub(crate) expected: StatusCode,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: Bytes::new(),
            content_type: JSON,
            expected: StatusCode::OK,
        }
    }

    pub(crate) fn post(path: impl Into<String>, body: Bytes) -> Self {
        Self {
            method: Method::POST,
            path: path.into(),
            body,
            content_type: JSON,
            expected: StatusCode::CREATED,
        }
    }

    pub(crate) fn put(path: impl Into<String>, body: Bytes) -> Self {
        Self {
            method: Method::PUT,
            path: path.into(),
            body,
            content_type: JSON,
            expected: StatusCode::OK,
        }
    }

    /// A server-side apply: of a new object, or to one that is there.
    pub(crate) fn apply(path: &str, manager: &str, body: Bytes, new: bool) -> Self {
        Self {
            method: Method::PATCH,
            path: format!("{path}?fieldManager={manager}"),
            body,
            content_type: "application/apply-patch+yaml",
            expected: if new { StatusCode::CREATED } else { StatusCode::OK },
        }
    }

    fn failed(&self, reason: impl std::fmt::Display) -> BenchError {
        BenchError::Request {
            request: format!("{} {}", self.method, self.path),
            reason: reason.to_string(),
        }
    }
}

impl Client {
    /// Opens the connections.
    pub(crate) async fn connect(target: &Target, connections: usize) -> Result<Self, BenchError> {
        let authority = format!("{}:{}", target.host, target.port);
        let lost = |error: String| BenchError::server(&authority, error);
        let tls = TlsConnector::from(Arc::new(tls_config(target).map_err(lost)?));
        let name = ServerName::try_from(target.host.clone()).map_err(|e| lost(e.to_string()))?;
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(&authority)
                .await
                .map_err(|e| lost(e.to_string()))?;
            stream.set_nodelay(true).map_err(|e| lost(e.to_string()))?;
            let stream = tls
                .connect(name.clone(), stream)
                .await
                .map_err(|e| lost(e.to_string()))?;
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(lost("does not speak HTTP/2".into()));
            }
            let (sender, connection) = Builder::new(TokioExecutor::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|e| lost(e.to_string()))?;
            // Ends with the last sender; an error of its own is seen by the requests.
            tokio::spawn(async move { connection.await.ok() });
            open.push(sender);
        }
        let token = match &target.credential {
            Credential::Token(token) => {
                Some(HeaderValue::try_from(format!("Bearer {token}")).map_err(|e| lost(e.to_string()))?)
            }
            Credential::Certificate { .. } => None,
        };
        Ok(Self {
            connections: open,
            authority,
            token,
        })
    }

    /// Sends a request over the connection of `lane` and reads the whole answer.
    pub(crate) async fn call(&self, lane: usize, call: &Call) -> Result<Bytes, BenchError> {
        let whole = async {
            let response = self.send(lane, call).await?;
            let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
            Ok(body
                .map_err(|e| call.failed(format!("the answer broke off: {e}")))?
                .to_bytes())
        };
        tokio::time::timeout(REQUEST_TIMEOUT, whole)
            .await
            .map_err(|_| call.failed(format!("no answer after {REQUEST_TIMEOUT:?}")))?
    }

    /// Sends a request whose answer goes on: a watch.
    pub(crate) async fn open(&self, lane: usize, call: &Call) -> Result<Incoming, BenchError> {
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.send(lane, call))
            .await
            .map_err(|_| call.failed(format!("no answer after {REQUEST_TIMEOUT:?}")))??;
        Ok(response.into_body())
    }

    async fn send(&self, lane: usize, call: &Call) -> Result<Response<Incoming>, BenchError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("https://{}{}", self.authority, call.path))
            .header(header::ACCEPT, JSON);
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let request = request
            .body(Full::new(call.body.clone()))
            .map_err(|e| call.failed(e))?;
        let mut connection = self.connections[lane % self.connections.len()].clone();
        connection.ready().await.map_err(|e| call.failed(e))?;
        let response = connection
            .send_request(request)
            .await
            .map_err(|e| call.failed(e))?;
        if response.status() == call.expected {
            return Ok(response);
        }
        let status = response.status();
        let body = Limited::new(response.into_body(), 4096)
            .collect()
            .await
            .map(|b| b.to_bytes())
            .unwrap_or_default();
        Err(call.failed(format!(
            "answered {status}: {}",
            String::from_utf8_lossy(&body).trim()
        )))
    }
}

fn tls_config(target: &Target) -> Result<ClientConfig, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&target.authority_pem) {
        roots
            .add(certificate.map_err(|e| text(&e))?)
            .map_err(|e| text(&e))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| text(&e))?
        .with_root_certificates(roots);
    let mut config = match &target.credential {
        Credential::Certificate { chain_pem, key_pem } => {
            let chain = CertificateDer::pem_slice_iter(chain_pem)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| text(&e))?;
            let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|e| text(&e))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| text(&e))?
        }
        Credential::Token(_) => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
