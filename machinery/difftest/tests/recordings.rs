//! The embedded server answers what a real one answered when it was recorded: the probes of kube-apiserver 1.35, and the
//! requests of kubectl 1.32.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;

use machinery_auth::UserInfo;
use machinery_difftest::{Credential, EmbeddedServer, Script, load_scripts, replay};

/// How many answers are compared in all; one that is lost must be noticed.
const ANSWERS: usize = 205;
/// The recorded server had forgotten its first versions. Ours does so after as many changes, fewer than its start takes.
const HISTORY: usize = 16;

fn recordings() -> Vec<Script> {
    load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")).unwrap()
}

/// Replays one recording on a server of its own, as the administrator who was recorded.
async fn check(name: &str) {
    let embedded = EmbeddedServer::start_with(|options| {
        let admin = UserInfo {
            uid: "admin-uid".to_owned(),
            ..UserInfo::new("admin", ["system:masters"])
        };
        options.tokens = vec![("recorded".to_owned(), admin)];
        options.history_events = HISTORY;
    })
    .await
    .unwrap();
    let mut target = embedded.target.clone();
    target.credential = Credential::Token("recorded".to_owned());
    let mut scripts = recordings();
    scripts.retain(|script| script.name == name);
    assert_eq!(scripts.len(), 1, "{name}");
    let report = replay(&target, &scripts).await.unwrap();
    assert!(report.is_clean(), "{report}");
}

#[tokio::test]
async fn probes_of_configmaps() {
    check("probes-configmap").await;
}

#[tokio::test]
async fn probes_of_a_custom_resource() {
    check("probes-crd").await;
}

#[tokio::test]
async fn probes_of_other_things() {
    check("probes-misc").await;
}

#[tokio::test]
async fn kubectl_on_configmaps() {
    check("kubectl-configmap").await;
}

#[tokio::test]
async fn kubectl_on_a_custom_resource() {
    check("kubectl-crd").await;
}

#[tokio::test]
async fn kubectl_on_other_things() {
    check("kubectl-misc").await;
}

#[test]
fn every_recording_is_replayed_and_every_difference_has_its_reason() {
    let recordings = recordings();
    let names: Vec<&str> = recordings.iter().map(|script| script.name.as_str()).collect();
    let replayed = [
        "kubectl-configmap",
        "kubectl-crd",
        "kubectl-misc",
        "probes-configmap",
        "probes-crd",
        "probes-misc",
    ];
    assert_eq!(names, replayed);
    let mut answers = 0;
    for script in &recordings {
        assert!(
            !script.about.is_empty() && script.recorded.is_some(),
            "{}",
            script.name
        );
        for step in &script.steps {
            let place = format!("{}: {}", script.name, step.request);
            assert!(step.request.contains(" -> "), "{place} expects no status");
            let Some(answer) = &step.answer else { continue };
            answers += 1;
            let mut reasons = answer.lacks.values().chain(answer.differs.values());
            assert!(reasons.all(|reason| !reason.is_empty()), "{place}");
        }
    }
    assert!(answers >= ANSWERS, "{answers} answers");
}
