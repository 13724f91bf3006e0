use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::*;
use crate::x509::{PeerCertificate, X509Error};

fn now() -> Timestamp {
    // The TLS library has its own clock, so these tests live in the present.
    Timestamp::now()
}

fn days(n: u64) -> Duration {
    Duration::from_secs(n * DAY.as_secs())
}

fn client_config(ca: &str, identity: Option<&(String, String)>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots);
    let mut config = match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// Connects in memory; the server's view of the client's certificate, or what went wrong.
fn shake_hands(pki: &Pki, client: ClientConfig, name: &str) -> Result<Option<Vec<u8>>, String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(pki.server_config()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server
                .process_new_packets()
                .map_err(|error| format!("server: {error}"))?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client
                .process_new_packets()
                .map_err(|error| format!("client: {error}"))?;
        }
    }
    assert_eq!(server.alpn_protocol(), Some(b"h2".as_slice()));
    match server.peer_certificates() {
        None => Ok(None),
        Some(chain) => match pki.clients().verify(chain) {
            Ok(_) => Ok(Some(chain[0].to_vec())),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[test]
fn clients_connect_with_and_without_a_certificate() {
    let pki = Pki::ephemeral().unwrap();
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes.default.svc",
        "kubernetes",
    ] {
        assert_eq!(
            shake_hands(&pki, client_config(pki.ca_pem(), None), name),
            Ok(None),
            "{name}"
        );
    }
    let wrong_name = shake_hands(&pki, client_config(pki.ca_pem(), None), "example.com");
    assert!(
        wrong_name
            .unwrap_err()
            .starts_with("client: invalid peer certificate")
    );

    let groups = ["system:masters", "grüße", "a,b=c", "x"];
    let identity = pki.client_cert("jane doe", &groups).unwrap();
    let presented = shake_hands(&pki, client_config(pki.ca_pem(), Some(&identity)), "localhost")
        .unwrap()
        .unwrap();
    let peer = PeerCertificate::parse(&presented).unwrap();
    let user = peer.user(now()).unwrap();
    assert_eq!(user.name, "jane doe");
    assert_eq!(
        user.groups,
        ["system:masters", "grüße", "a,b=c", "x", "system:authenticated"]
    );
    let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
}

#[test]
fn certificates_of_others_and_expired_ones_are_refused() {
    let (pki, other) = (Pki::ephemeral().unwrap(), Pki::ephemeral().unwrap());
    let foreign = other.client_cert("root", &["system:masters"]).unwrap();
    let refused = shake_hands(&pki, client_config(pki.ca_pem(), Some(&foreign)), "localhost");
    let why = refused.unwrap_err();
    assert!(
        why.starts_with("the client certificate cannot be verified: invalid peer certificate"),
        "{why}"
    );
    assert!(pki.clients().verify(&[]).is_err());

    let options = PkiOptions::default();
    let past = Pki::ephemeral_with(&options, now().checked_sub(days(20)).unwrap()).unwrap();
    let short = |lifetime| {
        past.client_cert_for("a", &["g"], lifetime, now().checked_sub(days(10)).unwrap())
            .unwrap()
    };
    let shake = |identity| shake_hands(&past, client_config(past.ca_pem(), Some(&identity)), "localhost");
    assert!(shake(short(days(9))).unwrap_err().contains("xpired"));
    assert!(shake(short(days(11))).is_ok());
}

#[test]
fn validity_is_asked_again_for_every_request() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let pki = Pki::ephemeral_with(&PkiOptions::default(), start).unwrap();
    let (pem, _) = pki
        .client_cert_for("a", &[] as &[&str], Duration::from_secs(3600), start)
        .unwrap();
    let peer = PeerCertificate::parse(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    for (at, expected) in [
        ("2025-12-31T23:55:00Z", Ok(())),
        ("2026-01-01T00:00:00Z", Ok(())),
        ("2026-01-01T01:00:00Z", Ok(())),
        (
            "2026-01-01T01:00:01Z",
            Err(
                "x509: certificate has expired or is not yet valid: current time 2026-01-01T01:00:01Z is after 2026-01-01T01:00:00Z",
            ),
        ),
        (
            "2025-12-31T23:54:00Z",
            Err(
                "x509: certificate has expired or is not yet valid: current time 2025-12-31T23:54:00Z is before 2025-12-31T23:55:00Z",
            ),
        ),
    ] {
        let got = peer
            .user(at.parse().unwrap())
            .map(drop)
            .map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{at}");
    }
    assert_eq!(peer.user(start).unwrap().groups, ["system:authenticated"]);
    assert!(matches!(
        PeerCertificate::parse(b"nonsense"),
        Err(X509Error::Malformed(_))
    ));
}

#[test]
fn names_that_cannot_be_in_a_certificate() {
    let pki = Pki::ephemeral().unwrap();
    assert!(matches!(pki.client_cert("", &["g"]), Err(PkiError::BadName(_))));
    assert!(matches!(pki.client_cert("a", &[""]), Err(PkiError::BadName(_))));
    assert!(matches!(
        pki.client_cert("a", &vec!["g"; 200]),
        Err(PkiError::Make { .. })
    ));
    let options = PkiOptions {
        server_names: vec!["not a name".into()],
    };
    assert!(matches!(
        Pki::ephemeral_with(&options, now()),
        Err(PkiError::BadName(_))
    ));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_directory_is_found_again_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("a/pki");
    let first = Pki::load_or_create(&root).unwrap();
    for (name, expected) in [
        ("", 0o700),
        ("ca.key", 0o600),
        ("apiserver.key", 0o600),
        ("sa.key", 0o600),
        ("ca.crt", 0o644),
        ("apiserver.crt", 0o644),
    ] {
        assert_eq!(mode(&root.join(name)), expected, "{name}");
    }
    assert!(
        fs::read_dir(&root).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .ends_with(".new"))
    );
    let files = || {
        ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "sa.key"]
            .map(|f| fs::read(root.join(f)).unwrap())
    };
    let before = files();
    let identity = first.client_cert("a", &["g"]).unwrap();
    let second = Pki::load_or_create(&root).unwrap();
    assert_eq!(files(), before);
    assert_eq!(second.token_key().id(), first.token_key().id());
    assert!(second.warnings().is_empty());
    // What the first signed, the second accepts.
    let shaken = shake_hands(
        &second,
        client_config(first.ca_pem(), Some(&identity)),
        "localhost",
    );
    assert!(shaken.unwrap().is_some());
}

#[test]
fn open_modes_are_closed_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("pki");
    drop(Pki::load_or_create(&root).unwrap());
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("ca.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let pki = Pki::load_or_create(&root).unwrap();
    assert_eq!((mode(&root), mode(&root.join("ca.key"))), (0o700, 0o600));
    let told: Vec<bool> = pki
        .warnings()
        .iter()
        .map(|w| w.contains("was open to others"))
        .collect();
    assert_eq!(told, [true, true]);
}

#[test]
fn the_server_certificate_is_renewed_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let open = |after: u64, names: &[&str]| {
        let options = PkiOptions {
            server_names: names.iter().map(|&n| n.to_owned()).collect(),
        };
        let pki =
            Pki::load_or_create_with(dir.path(), &options, start.checked_add(days(after)).unwrap()).unwrap();
        let until = pki.server_certificate_until().duration_since(start).as_secs();
        (
            until / i64::try_from(DAY.as_secs()).unwrap(),
            pki.ca_pem().to_owned(),
        )
    };
    let (until, ca) = open(0, &[]);
    assert_eq!(until, 365);
    assert_eq!(open(334, &[]).0, 365);
    assert_eq!(open(336, &[]).0, 336 + 365);
    // Another name, another certificate; a name less is no reason.
    assert_eq!(open(340, &["hub.example.com", "10.0.0.1"]).0, 340 + 365);
    assert_eq!(open(350, &["10.0.0.1"]).0, 340 + 365);
    // Never longer than the authority, which stays the same.
    let (until, same) = open(3640, &[]);
    assert_eq!((until, same == ca), (3650, true));
    let late = Pki::load_or_create_with(
        dir.path(),
        &PkiOptions::default(),
        start.checked_add(days(3651)).unwrap(),
    );
    assert!(matches!(late, Err(PkiError::AuthorityNotValid { .. })));
}

#[test]
fn damage_is_named_and_never_replaced_by_a_new_authority() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("pki");
    drop(Pki::load_or_create(&root).unwrap());
    let other = dir.path().join("other");
    drop(Pki::load_or_create(&other).unwrap());
    for (file, text, expected) in [
        ("ca.crt", Some(String::new()), "ca.crt is damaged"),
        (
            "ca.crt",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into()),
            "ca.crt is damaged",
        ),
        (
            "ca.crt",
            Some(fs::read_to_string(other.join("ca.crt")).unwrap()),
            "ca.crt is damaged: the certificate and the key do not belong together",
        ),
        (
            "ca.crt",
            Some(fs::read_to_string(root.join("apiserver.crt")).unwrap()),
            "ca.crt is damaged: not the certificate of an authority",
        ),
        (
            "ca.key",
            Some("garbage".into()),
            "ca.key is damaged: not an ECDSA P-256 private key in PKCS #8 and PEM",
        ),
        ("ca.key", None, "ca.crt is there but "),
        ("sa.key", Some("garbage".into()), "sa.key is damaged"),
        (
            "apiserver.crt",
            Some("garbage".into()),
            "apiserver.crt is damaged",
        ),
        (
            "apiserver.key",
            Some("garbage".into()),
            "apiserver.key is damaged",
        ),
    ] {
        let path = root.join(file);
        let good = fs::read_to_string(&path).unwrap();
        match &text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = Pki::load_or_create(&root).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
        assert!(!error.contains("garbage"), "no key material in errors");
        fs::write(&path, good).unwrap();
    }
    assert!(Pki::load_or_create(&root).is_ok());
    // What a crash between the writes of key and certificate leaves is mended.
    fs::copy(other.join("apiserver.key"), root.join("apiserver.key")).unwrap();
    assert!(Pki::load_or_create(&root).is_ok());
    fs::remove_file(root.join("ca.crt")).unwrap();
    let pki = Pki::load_or_create(&root).unwrap();
    assert_eq!(
        shake_hands(&pki, client_config(pki.ca_pem(), None), "localhost"),
        Ok(None)
    );
}
