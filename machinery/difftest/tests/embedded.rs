//! The embedded server answers as a real one does: the differential suite, hand-written and generated.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use machinery_apiserver::{ApiServer, Options as ServerOptions};
use machinery_auth::Pki;
use machinery_difftest::{Credential, Options, RealError, RealServer, Target, generate, load_scripts, run};

/// How many scripts are generated, each of several exchanges.
const GENERATED: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_answers_as_the_real_one() {
    let real = match RealServer::start() {
        Ok(real) => real,
        Err(RealError::Unavailable) => {
            println!("NOTHING WAS COMPARED: {}", RealError::Unavailable);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let pki = Arc::new(Pki::ephemeral().unwrap());
    let mut options = ServerOptions::new(pki.clone());
    // The real API server runs without the controllers of a cluster.
    options.cluster_controllers = false;
    let server = ApiServer::start(options).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listening = server.listen(listener, pki.server_config()).unwrap();
    let (cert, key) = pki.client_cert("admin", &["system:masters"]).unwrap();
    let embedded = Target {
        name: "embedded".to_owned(),
        base_url: format!("https://{}", listening.address),
        ca_pem: Some(pki.ca_pem().as_bytes().to_vec()),
        credential: Credential::ClientCert {
            cert_pem: cert.into_bytes(),
            key_pem: key.into_bytes(),
        },
    };
    let seed = match std::env::var("LOCKGATE_DIFF_SEED") {
        Ok(seed) => seed.parse().expect("LOCKGATE_DIFF_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
    };
    let only = std::env::var("LOCKGATE_DIFF_ONLY").unwrap_or_default();
    let mut scripts = load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges")).unwrap();
    scripts.extend(generate::scripts(seed, GENERATED).unwrap());
    scripts.retain(|script| script.name.contains(&only) && !script.name.starts_with("apply"));
    let options = Options {
        run: "embedded".to_owned(),
        transcript: false,
    };
    let report = run(&real.target("real").unwrap(), &embedded, &scripts, &options)
        .await
        .unwrap();
    println!("{report}");
    assert!(
        report.is_clean(),
        "{report}\nto repeat: LOCKGATE_DIFF_SEED={seed}"
    );
}
