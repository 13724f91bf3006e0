//! The programs: obtained once, run once for each check.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::server::Server;

/// The programs give up sooner by themselves.
const PATIENCE: Duration = Duration::from_secs(150);
/// What `clients/get` exits with when something cannot be obtained here.
const UNAVAILABLE: i32 = 77;

#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// `clients/go/cmd/operations`.
    Go,
    /// `clients/python/operations.py`.
    Python,
}

impl Program {
    /// How to start it with one argument, if it can be had here.
    fn command(self, argument: &str) -> Option<Command> {
        static GO: OnceLock<Option<PathBuf>> = OnceLock::new();
        static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
        let mut command = match self {
            Self::Go => Command::new(GO.get_or_init(|| obtain("operations")).as_ref()?),
            Self::Python => {
                let packages = PYTHON.get_or_init(|| obtain("python")).as_ref()?;
                let mut command = Command::new("python3");
                command
                    .env("PYTHONPATH", packages)
                    .env("PYTHONDONTWRITEBYTECODE", "1")
                    .arg(directory().join("python/operations.py"));
                command
            }
        };
        command
            .arg(argument)
            .env("KUBE_FEATURE_WatchListClient", "true")
            .env("LOCKGATE_CASES", directory().join("../../kinds/tests/golden"))
            .stdin(Stdio::null());
        Some(command)
    }
}

/// Runs a check on a server of its own.
pub(crate) async fn run(program: Program, check: &str) {
    let Some(mut command) = obtained(program, check).await else {
        return;
    };
    let server = Server::start().await;
    command.env("KUBECONFIG", server.kubeconfig());
    let mut command = tokio::process::Command::from(command);
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output())
        .await
        .expect("the program does not end")
        .unwrap();
    assert!(output.status.success(), "{check}: {}", words(&output));
}

/// Obtaining may take minutes; the tests beside this one go on.
async fn obtained(program: Program, argument: &str) -> Option<Command> {
    let argument = argument.to_owned();
    tokio::task::spawn_blocking(move || program.command(&argument))
        .await
        .unwrap()
}

/// The checks that a program has, if it can be had here.
pub(crate) fn checks(program: Program) -> Option<Vec<String>> {
    let output = program.command("list")?.output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let names = String::from_utf8(output.stdout).unwrap();
    Some(names.lines().map(str::to_owned).collect())
}

fn obtain(what: &str) -> Option<PathBuf> {
    let output = Command::new(directory().join("get"))
        .arg(what)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match output.status.code() {
        Some(0) => Some(String::from_utf8(output.stdout).unwrap().trim().into()),
        Some(UNAVAILABLE) => {
            // Past the capture of test output: a test that checked nothing must be seen to have done so.
            let _ = writeln!(
                std::io::stderr(),
                "clients of other languages: NOTHING WAS CHECKED with {what}: {}",
                words(&output)
            );
            None
        }
        _ => panic!("clients/get {what}: {}", words(&output)),
    }
}

fn words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    format!("{}\n{}", output.status, String::from_utf8_lossy(&text).trim())
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}
