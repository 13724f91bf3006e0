//! Two real servers must agree in everything: whatever differs here is noise that the placeholders do not cover yet.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use machinery_difftest::{Options, RealServer, generate, load_scripts, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "builds and runs two real kube-apiservers, which takes minutes"]
async fn two_real_servers_agree() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = match std::env::var("LOCKGATE_DIFF_SEED") {
        Ok(seed) => seed.parse().expect("LOCKGATE_DIFF_SEED is a number"),
        Err(_) => clock.as_secs(),
    };
    let (first, second) = (RealServer::start().unwrap(), RealServer::start().unwrap());
    let mut scripts = load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges")).unwrap();
    scripts.extend(generate::scripts(seed, 12).unwrap());
    let options = Options {
        run: "self".to_owned(),
        transcript: false,
    };
    let report = run(
        &first.target("first").unwrap(),
        &second.target("second").unwrap(),
        &scripts,
        &options,
    )
    .await
    .unwrap();
    assert!(
        report.is_clean(),
        "{report}\nto repeat: LOCKGATE_DIFF_SEED={seed}"
    );
}
