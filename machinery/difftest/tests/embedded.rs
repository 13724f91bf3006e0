//! The embedded server answers as a real one does: the differential suite, hand-written and generated.
//!
//! The generated part is the same each time, so that a run does not fail for what somebody else has changed;
//! `LOCKGATE_DIFF_SEED` makes another one (any number, or `clock`), and `LOCKGATE_DIFF_ONLY` picks scripts by a part of their name.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use machinery_apiserver::{ApiServer, Options as ServerOptions};
use machinery_auth::Pki;
use machinery_difftest::{
    Credential, Options, RealError, RealServer, Report, Target, generate, load_scripts, run,
};

/// How many scripts are generated, each of some twenty exchanges.
const GENERATED: usize = 45;

/// What is generated unless somebody asks for something else.
const SEED: u64 = 2;

/// A difference that is known, where it shows, and why it stays. An empty text stands for any.
struct Allowed {
    script: &'static str,
    step: usize,
    path: &'static str,
    real: &'static str,
    why: &'static str,
}

const fn allow(script: &'static str, path: &'static str, real: &'static str, why: &'static str) -> Allowed {
    Allowed {
        script,
        step: 0,
        path,
        real,
        why,
    }
}

const fn allow_step(script: &'static str, step: usize, why: &'static str) -> Allowed {
    Allowed {
        script,
        step,
        path: "",
        real: "",
        why,
    }
}

const NO_PROTOBUF: &str = "protobuf is read but not written, and so not offered";
const YAML_KEYS: &str = "keys of YAML are text, also those that could be a truth value";
const NO_PVC_PROTECTION: &str = "a finalizer is not set where no controller would ever take it off";
const NO_TAINT: &str = "nodes are not tainted where no controller would ever lift it";

const ALLOWED: &[Allowed] = &[
    allow(
        "accept",
        ".message",
        "application/vnd.kubernetes.protobuf",
        NO_PROTOBUF,
    ),
    allow_step("apply", 13, "the YAML parser has its own words"),
    allow_step("apply", 17, YAML_KEYS),
    allow_step("apply", 18, YAML_KEYS),
    allow_step("apply-widget", 5, "what the server itself writes is nobody's"),
    allow_step(
        "crd-schema",
        34,
        "CEL takes 2.0 for an integer here, as the schema does",
    ),
    allow_step(
        "crd-schema",
        42,
        "an object of another version is not pruned before it is refused",
    ),
    allow_step(
        "deployment-refusals",
        21,
        "versions that are no longer served are not known by name",
    ),
    allow(
        "field-validation",
        "warnings",
        "",
        "unknown fields are named in the order of their names",
    ),
    allow_step(
        "malformed",
        19,
        "a number that no float holds is refused by the parser already",
    ),
    allow_step(
        "malformed",
        20,
        "a number beyond 64 bits is shown as the float that it was read as",
    ),
    allow_step("malformed", 31, "the YAML parser has its own words"),
    allow_step(
        "other-kinds",
        12,
        "one of several causes of a refusal is not found",
    ),
    allow(
        "other-kinds",
        ".metadata",
        "kubernetes.io/pvc-protection",
        NO_PVC_PROTECTION,
    ),
    allow_step("other-kinds", 15, NO_PVC_PROTECTION),
    allow(
        "other-kinds",
        ".spec.taints[1]",
        "node.kubernetes.io/not-ready",
        NO_TAINT,
    ),
    allow_step(
        "patch-merge",
        14,
        "a patch that changes the kind is refused for that first",
    ),
    allow(
        "workloads",
        ".metadata.annotations",
        "",
        "tables carry a DaemonSet's own annotation, too",
    ),
    allow(
        "",
        ".message",
        "StorageError: invalid object",
        "the real server names the key in its own store",
    ),
    allow(
        "",
        "",
        "Invalid value: {}: `selector` does not match",
        "an empty map and a missing one are shown alike",
    ),
    allow(
        "",
        "warnings",
        "is ignored",
        "Services are not searched for what is merely odd",
    ),
    allow(
        "",
        "warnings",
        "duplicate port definition",
        "Pod templates are not searched for what is merely odd",
    ),
    allow(
        "",
        "warnings",
        "$retainKeys",
        "directives of a patch are gone before its fields are checked",
    ),
];

/// Takes allowed differences out of a report; says which entries of the list were of use.
fn without_allowed(report: &mut Report) -> Vec<bool> {
    let mut used = vec![false; ALLOWED.len()];
    for failure in &mut report.failures {
        failure.differences.retain(|difference| {
            let real = difference
                .left
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let found = ALLOWED.iter().position(|allowed| {
                (allowed.script.is_empty() || failure.script == allowed.script)
                    && (allowed.step == 0 || failure.step == allowed.step)
                    && difference.path.contains(allowed.path)
                    && real.contains(allowed.real)
            });
            if let Some(place) = found {
                used[place] = true;
            }
            found.is_none()
        });
    }
    report
        .failures
        .retain(|failure| !failure.differences.is_empty() || !failure.trouble.is_empty());
    used
}

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
    let seed = match std::env::var("LOCKGATE_DIFF_SEED").as_deref() {
        Ok("clock") => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
        Ok(seed) => seed.parse().expect("LOCKGATE_DIFF_SEED is a number"),
        Err(_) => SEED,
    };
    let only = std::env::var("LOCKGATE_DIFF_ONLY").unwrap_or_default();
    let mut scripts = load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges")).unwrap();
    scripts.extend(generate::scripts(seed, GENERATED).unwrap());

    scripts.retain(|script| script.name.contains(&only));
    let options = Options {
        run: "embedded".to_owned(),
        transcript: false,
    };
    let mut report = run(&real.target("real").unwrap(), &embedded, &scripts, &options)
        .await
        .unwrap();
    let used = without_allowed(&mut report);
    println!(
        "{} exchanges in {} scripts compared, seed {seed}",
        report.exchanges, report.scripts
    );
    assert!(
        report.is_clean(),
        "{report}\nto repeat: LOCKGATE_DIFF_SEED={seed}"
    );
    if only.is_empty() {
        // Those of the hand-written scripts must show each time; the others are up to the seed.
        let unused = ALLOWED
            .iter()
            .zip(used)
            .filter(|(allowed, used)| !used && !allowed.script.is_empty());
        let unused: Vec<&str> = unused.map(|(allowed, _)| allowed.why).collect();
        assert!(
            unused.is_empty(),
            "allowed differences that did not show, to be taken off the list: {unused:?}"
        );
    }
}
