//! A `lockgate up` of the tests' own, and a small client for it.
//!
//! (A `mod.rs`, since cargo takes every other file beside the tests for a test of its own.)

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use machinery_value::Value;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `lockgate up`; killed when dropped.
pub(crate) struct Fleet {
    child: Child,
    kubeconfig: Value,
}

impl Fleet {
    /// Starts it in `directory` and waits until it says that it is up.
    pub(crate) async fn start(arguments: &[&str], directory: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lockgate"))
            .arg("up")
            .arg("--data-dir")
            .arg(directory)
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line())
                .await
                .unwrap()
                .unwrap();
            let line = line.expect("lockgate ended before it was up; what it said is above");
            if line.contains(" is up ") {
                break;
            }
        }
        // Whatever else it prints must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let text = std::fs::read(directory.join("kubeconfig")).unwrap();
        let kubeconfig = machinery_value::decode::from_yaml(&text).unwrap().value;
        Self { child, kubeconfig }
    }

    /// A connection to one of the clusters, with the certificate of the kubeconfig.
    pub(crate) async fn connect(&self, cluster: &str) -> Connection {
        let entry = |section: &str, field: &str| -> Value {
            let list = self.kubeconfig[section].as_array().unwrap();
            list.iter().find(|e| e["name"] == cluster).unwrap()[field].clone()
        };
        let (server, user) = (entry("clusters", "cluster"), entry("users", "user"));
        let certificate = CertificateDer::from_pem_slice(&decoded(&user["client-certificate-data"])).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&decoded(&user["client-key-data"])).unwrap();
        let address = server["server"].as_str().unwrap();
        let authority = decoded(&server["certificate-authority-data"]);
        Connection::open(address, &authority, Some((certificate, key)), None).await
    }

    /// Ends it as Ctrl-C does; its exit code.
    #[allow(dead_code, reason = "not every test that shares this file ends it so")]
    pub(crate) async fn interrupt(&mut self) -> i32 {
        let pid = self.child.id().unwrap().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .await
                .unwrap()
                .success()
        );
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap()
            .unwrap()
            .code()
            .unwrap()
    }

    /// Ends it without any warning.
    #[allow(dead_code, reason = "not every test that shares this file ends it so")]
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}

pub(crate) fn decoded(value: &Value) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap())
        .unwrap()
}

/// One connection; requests go one after the other.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    token: Option<String>,
}

impl Connection {
    /// A connection to the server at an `https://` address, known by its authority; with a certificate, or a token.
    pub(crate) async fn open(
        address: &str,
        authority: &[u8],
        certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
        token: Option<String>,
    ) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
            None => config.with_no_client_auth(),
        };
        let address = address.strip_prefix("https://").unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let (sender, connection) =
            hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        Self { sender, token }
    }

    /// Code and body of the answer; none when the server went away before it was whole.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1")
            .header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        // The answer before may have been read just now.
        self.sender.ready().await.ok()?;
        let response = tokio::time::timeout(PATIENCE, self.sender.send_request(request))
            .await
            .unwrap()
            .ok()?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        Some((code, serde_json::from_slice(&bytes).unwrap()))
    }
}
