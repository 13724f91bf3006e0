//! The embedded server logs as a real one does: the same requests to both, and their lines compared.
//!
//! `LOCKGATE_DIFF_ONLY` picks scripts by a part of their name instead of those that are listed here.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use machinery_apiserver::AuditLog;
use machinery_difftest::allowed::ALLOWED;
use machinery_difftest::normalise::Normaliser;
use machinery_difftest::{
    EmbeddedServer, Options, RealError, RealServer, Script, compare, load_scripts, run,
};
use serde_json::Value;

/// Scripts with requests of every sort.
const SCRIPTS: [&str; 15] = [
    "accept",
    "admission-policies",
    "admission-subresources",
    "apply",
    "configmap-create-refusals",
    "configmap-life",
    "crd-life",
    "delete-collection",
    "delete-options",
    "deployments",
    "dry-run",
    "impersonation",
    "lists",
    "rbac",
    "watches",
];

/// Annotations of plugins that the embedded server does not have, and of requests that took long.
const FOREIGN: [&str; 2] = ["pod-security.kubernetes.io/", "apiserver.latency.k8s.io/"];

/// How long the real server may take for the line of a request that is answered.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_logs_as_the_real_one() {
    let real = match RealServer::start_audited() {
        Ok(real) => real,
        Err(RealError::Unavailable) => {
            println!("NOTHING WAS COMPARED: {}", RealError::Unavailable);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embedded.log");
    let log = AuditLog::append(&file).unwrap();
    let embedded = EmbeddedServer::start_with(|options| options.audit = Some(log.clone()))
        .await
        .unwrap();
    let scripts = scripts();
    let ids: Vec<String> = scripts
        .iter()
        .flat_map(|script| script.steps.iter().map(|step| step.headers["audit-id"].clone()))
        .collect();
    let options = Options {
        run: "audit".to_owned(),
        transcript: false,
    };
    let left = real.target("real").unwrap();
    let report = run(&left, &embedded.target, &scripts, &options).await.unwrap();
    assert_eq!(report.not_run, 0, "{report}");
    assert_eq!(log.lost(), 0);
    let mut differences = Vec::new();
    let mut compared = 0;
    let (of_real, of_embedded) = (lines(&real.audit_log(), &ids), {
        while !log.flush().await {}
        lines(&file, &ids)
    });
    // What may differ in the answer may differ in the log.
    let is_known = |id: &&String| {
        ALLOWED
            .iter()
            .flat_map(|known| known.places)
            .any(|place| format!("{}:{}", place.script, place.step) == **id)
    };
    for id in ids.iter().filter(|id| !is_known(id)) {
        let (left, right) = (of_real.get(id), of_embedded.get(id));
        let (Some(left), Some(right)) = (left, right) else {
            // Questions about health leave no line on either side.
            if left.is_some() || right.is_some() {
                differences.push(format!("{id}: a line of one only: {left:?} {right:?}"));
            }
            continue;
        };
        compared += left.len();
        for difference in compare::differences(&stages(left), &stages(right)) {
            differences.push(format!("{id}: {difference}"));
        }
    }
    println!("{compared} lines compared");
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(compared > 15, "only {compared} lines were compared");
}

/// The scripts, each of whose requests names itself.
fn scripts() -> Vec<Script> {
    let mut scripts = load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges")).unwrap();
    match std::env::var("LOCKGATE_DIFF_ONLY") {
        Ok(only) => scripts.retain(|script| script.name.contains(&only)),
        Err(_) => scripts.retain(|script| SCRIPTS.contains(&script.name.as_str())),
    }
    for script in &mut scripts {
        for (index, step) in script.steps.iter_mut().enumerate() {
            let id = format!("{}:{}", script.name, index + 1);
            step.headers.insert("audit-id".to_owned(), id);
        }
    }
    scripts
}

/// The lines of each request, one for each stage. Of requests that were sent again the last ones count. Waits for the end of
/// those that have begun.
fn lines(log: &Path, ids: &[String]) -> BTreeMap<String, BTreeMap<String, Value>> {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(log).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut found: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let id = event["auditID"].as_str().unwrap_or_default().to_owned();
            if ids.contains(&id) {
                let stage = event["stage"].as_str().unwrap_or_default().to_owned();
                found.entry(id).or_default().insert(stage, normalise(event));
            }
        }
        let is_over = |stages: &BTreeMap<String, Value>| {
            stages.contains_key("ResponseComplete")
                || stages
                    .values()
                    .all(|event| event["responseStatus"]["code"] == 401)
        };
        if found.values().all(is_over) || started.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn stages(lines: &BTreeMap<String, Value>) -> Value {
    lines.clone().into_iter().collect()
}

/// A URI without resource versions, which each server counts by itself, and without tokens that hold them.
fn without_counts(uri: &str) -> String {
    let parts = uri.split_inclusive(['?', '&']).map(|part| {
        let end = part.trim_start_matches(|c: char| c != '&');
        match part.split_once('=') {
            Some((key @ ("resourceVersion" | "continue"), _)) => format!("{key}=<rv>{end}"),
            _ => part.to_owned(),
        }
    });
    parts.collect()
}

/// A line without what must differ: uids, times, how the suite shows who it is, and [`FOREIGN`].
fn normalise(mut event: Value) -> Value {
    let map = event.as_object_mut().unwrap();
    map.remove("user").unwrap();
    for key in ["requestReceivedTimestamp", "stageTimestamp"] {
        assert!(map.remove(key).is_some());
    }
    if let Some(version) = event.pointer_mut("/objectRef/resourceVersion") {
        *version = "<rv>".into();
    }
    let uri = event["requestURI"].as_str().unwrap_or_default();
    event["requestURI"] = without_counts(uri).into();
    if let Some(annotations) = event.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !FOREIGN.iter().any(|start| key.starts_with(start)));
    }
    Normaliser::new(false).value(event)
}
