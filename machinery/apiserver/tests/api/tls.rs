//! Who is at the other end of a connection: client certificates over real TLS.

use std::sync::Arc;
use std::time::Duration;

use machinery_apiserver::Options;
use machinery_auth::pki::PkiOptions;
use machinery_auth::{Pki, UserInfo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::harness::Server;

type Identity = (String, String);

fn client(ca: &str, identity: Option<&Identity>) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    }
}

/// Asks who we are, on a connection of its own; the first line and the whole of the answer.
async fn who(address: std::net::SocketAddr, config: &Arc<ClientConfig>, token: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(config.clone())
        .connect(name, stream)
        .await
        .expect("the handshake succeeds whatever the certificate is");
    let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let authorization = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    let request = format!(
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\n{authorization}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server may leave without a farewell.
    stream.read_to_end(&mut answer).await.ok();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let code = answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or_default();
    (code, answer)
}

#[tokio::test]
async fn a_certificate_that_means_nothing_is_no_reason_to_hang_up() {
    let days = |n: u64| Duration::from_secs(n * 86_400);
    let now = jiff::Timestamp::now();
    let pki = Pki::ephemeral_with(&PkiOptions::default(), now - days(20)).unwrap();
    let pki = Arc::new(pki);
    let mut options = Options::new(pki.clone());
    options.tokens.push((
        "secret".to_owned(),
        UserInfo::new("bob", Vec::<String>::new()).authenticated(),
    ));
    let server = Server::with(options).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listening = server.api.listen(listener, pki.server_config()).unwrap();

    let groups = ["system:masters"];
    let good = pki.client_cert("ann", &groups).unwrap();
    let foreign = Pki::ephemeral().unwrap().client_cert("root", &groups).unwrap();
    let expired = pki
        .client_cert_for("old", &groups, days(9), now - days(10))
        .unwrap();
    // Certificate, token, and what becomes of the request: a name, or a refusal.
    let table: [(Option<&Identity>, &str, Result<&str, u16>); 10] = [
        (Some(&good), "", Ok("ann")),
        (Some(&good), "nonsense", Ok("ann")),
        (Some(&good), "secret", Ok("ann")),
        (Some(&foreign), "", Err(401)),
        (Some(&foreign), "nonsense", Err(401)),
        (Some(&foreign), "secret", Ok("bob")),
        (Some(&expired), "", Err(401)),
        (Some(&expired), "secret", Ok("bob")),
        (None, "nonsense", Err(401)),
        // Somebody without anything is anonymous, and may not even ask.
        (None, "", Err(403)),
    ];
    for (at, (identity, token, expected)) in table.into_iter().enumerate() {
        let config = Arc::new(client(pki.ca_pem(), identity));
        // The second connection resumes the session of the first, and is no better for it.
        for _ in 0..2 {
            let (code, answer) = who(listening.address, &config, token).await;
            match expected {
                Ok(name) => {
                    assert_eq!(code, 201, "row {at}: {answer}");
                    assert!(
                        answer.contains(&format!("\"username\":\"{name}\"")),
                        "row {at}: {answer}"
                    );
                }
                Err(wanted) => assert_eq!(code, wanted, "row {at}: {answer}"),
            }
        }
    }
}

/// Whoever shakes hands and is silent, or stops in the middle of saying which HTTP it speaks, is let go.
#[tokio::test]
async fn a_silent_connection_keeps_no_place() {
    let pki = Arc::new(Pki::ephemeral().unwrap());
    let mut options = Options::new(pki.clone());
    options.first_bytes_within = Duration::from_millis(50);
    let server = Server::with(options).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listening = server.api.listen(listener, pki.server_config()).unwrap();
    let config = Arc::new(client(pki.ca_pem(), None));
    for said in ["", "PRI * HTTP/2.0"] {
        let stream = TcpStream::connect(listening.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(config.clone());
        let mut stream = connector.connect(name, stream).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        // It ends, sooner or later; the server may leave without a farewell.
        let ended = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(ended.is_ok(), "{said:?}");
        assert!(answer.is_empty(), "{said:?}");
    }
}
