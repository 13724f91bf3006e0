//! The server that a session talks to; it ends with the session.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a server may take to start.
const START: Duration = Duration::from_secs(60);
/// The longest that it may take to end.
const END: Duration = Duration::from_secs(10);

/// What the banner of `lockgate up` ends with: by then the kubeconfig is written and the ports answer.
const UP: &str = "Ctrl-C stops it.";

pub(crate) struct Server {
    kubeconfig: PathBuf,
    kind: Kind,
}

enum Kind {
    Embedded(Child),
    Real(PathBuf),
}

impl Server {
    /// Starts the binary under test: a hub and one member, servers alone; or two members, and the control plane.
    pub(crate) fn embedded(scratch: &Path, controlled: bool) -> Self {
        let kubeconfig = scratch.join("kubeconfig");
        let log =
            std::fs::File::create(scratch.join("server.log")).expect("the scratch directory can be written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_lockgate"))
            .args(["up", "--ephemeral", "--port", "0", "--ready-after", "100"])
            .args(if controlled {
                &["--members", "2"][..]
            } else {
                &["--members", "1", "--bare"]
            })
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary can be run");
        let banner = child.stdout.take().expect("its output is piped");
        let server = Self {
            kubeconfig,
            kind: Kind::Embedded(child),
        };
        let (up, started) = mpsc::channel();
        // Reads on to the end, so that the server never waits for a reader.
        std::thread::spawn(move || {
            for line in BufReader::new(banner).lines().map_while(Result::ok) {
                if line == UP {
                    let _ = up.send(());
                }
            }
        });
        assert!(
            started.recv_timeout(START).is_ok(),
            "the server did not start: see {}",
            scratch.display()
        );
        server
    }

    /// Starts a real kube-apiserver.
    pub(crate) fn real(scratch: &Path) -> Self {
        let directory = scratch.join("real");
        let output = script("start")
            .arg(&directory)
            .output()
            .expect("real/start can be run");
        assert!(
            output.status.success(),
            "real/start: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self {
            kubeconfig: directory.join("kubeconfig"),
            kind: Kind::Real(directory),
        }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Embedded(child) => end(child),
            Kind::Real(directory) => {
                let _ = script("stop").arg(directory).output();
            }
        }
    }
}

fn script(name: &str) -> Command {
    Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../real")
            .join(name),
    )
}

/// Asks a server to end, and ends it if it does not.
fn end(child: &mut Child) {
    let _ = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    let deadline = Instant::now() + END;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}
