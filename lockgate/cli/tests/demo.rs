//! `lockgate demo` as a person sees it for the first time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn it_shows_a_rollout_a_failure_the_stop_and_the_way_back() {
    let demo = Command::new(env!("CARGO_BIN_EXE_lockgate"))
        .arg("demo")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, demo).await.unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}{error}");
    let mut rest = said.as_str();
    for part in [
        "member1    Soaking",
        "Succeeded",
        "Version 2.",
        "member3",
        "RollingBack",
        "RolledBack",
        "Do it yourself",
        "lockgate up",
    ] {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} does not follow: {said}"));
        rest = &rest[at + part.len()..];
    }
    // What it tells people to apply is there, and about what they have then.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files: Vec<&str> = rest
        .split_whitespace()
        .filter(|word| word.starts_with("examples/"))
        .collect();
    assert_eq!(files.len(), 2, "{rest}");
    for file in files {
        assert!(root.join(file).exists(), "{file}");
    }
    assert!(
        rest.contains("lockgate rollout status deployment/web -n shop --watch"),
        "{rest}"
    );
}
