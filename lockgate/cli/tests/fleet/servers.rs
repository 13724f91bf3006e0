//! The servers of one test: `real/fleet` in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::api::Api;
use crate::program::{kubectl, say};

/// What the scripts say when the servers cannot be had here.
const UNAVAILABLE: i32 = 77;

/// Four servers at a time are enough for any machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A hub and members, until this is dropped.
pub(crate) struct Servers {
    directory: TempDir,
    members: usize,
    kubectl: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Servers {
    /// Starts them; none, with a word about it, where they cannot be had.
    pub(crate) fn start(members: usize) -> Option<Self> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = Self {
            directory: tempfile::tempdir().unwrap(),
            members,
            kubectl: kubectl()?,
            _turn: turn,
        };
        match servers.launch() {
            Some(0) => Some(servers),
            Some(UNAVAILABLE) => {
                say("NOTHING WAS CHECKED: there is no kube-apiserver here (real/get obtains one)");
                None
            }
            code => panic!("real/fleet start ended with {code:?}"),
        }
    }

    /// Starts what does not run.
    pub(crate) fn start_again(&self) {
        assert_eq!(self.launch(), Some(0));
    }

    fn launch(&self) -> Option<i32> {
        let status = script("fleet")
            .arg("start")
            .arg(self.directory())
            .arg(self.members.to_string())
            .env("LOCKGATE_REAL_AUDIT", "1")
            .status()
            .unwrap();
        status.code()
    }

    /// Stops one server.
    pub(crate) fn stop(&self, name: &str) {
        let status = script("stop").arg(self.directory().join(name)).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn kubeconfig(&self, name: &str) -> PathBuf {
        self.directory().join(format!("{name}.kubeconfig"))
    }

    pub(crate) async fn api(&self, name: &str) -> Api {
        Api::connect(&self.kubeconfig(name)).await
    }

    /// A kubectl of one server; it must succeed, and not warn of anything.
    pub(crate) fn kubectl(&self, name: &str, arguments: &[&str], input: &str) -> String {
        use std::io::Write as _;
        use std::process::Stdio;
        let mut child = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(self.kubeconfig(name))
            .args(arguments)
            .env("HOME", self.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (said, warned) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(output.status.success(), "kubectl {arguments:?}: {said}{warned}");
        assert_eq!(warned, "", "kubectl {arguments:?}");
        said
    }

    /// Runs the binary against the hub; it must succeed. What it printed.
    pub(crate) fn lockgate(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_lockgate"))
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig("hub"))
            .output()
            .unwrap();
        let (said, warned) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(output.status.success(), "lockgate {arguments:?}: {said}{warned}");
        said
    }

    /// The names of the members.
    pub(crate) fn members(&self) -> Vec<String> {
        (1..=self.members)
            .map(|number| format!("member{number}"))
            .collect()
    }

    /// Everything that a server was asked to change, and its answer, since it started.
    pub(crate) fn audit(&self, name: &str) -> Vec<Asked> {
        let file = self.directory().join(name).join("log/audit.log");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter_map(Asked::parse).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = script("fleet").arg("stop").arg(self.directory()).status();
    }
}

fn script(name: &str) -> Command {
    Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../real")
            .join(name),
    )
}

/// One request that changes something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    /// When its first bytes came, which may be long before it ended.
    pub(crate) received: Timestamp,
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) code: u64,
    pub(crate) user: String,
}

impl Asked {
    fn parse(line: &str) -> Option<Self> {
        let entry: Value = serde_json::from_str(line).unwrap();
        let object = &entry["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = match object["subresource"].as_str() {
            Some(part) => format!("{}/{part}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        Some(Self {
            received: text(&entry["requestReceivedTimestamp"]).parse().unwrap(),
            verb: text(&entry["verb"]),
            resource,
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            code: entry["responseStatus"]["code"].as_u64()?,
            user: text(&entry["user"]["username"]),
        })
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.code < 300
    }
}
