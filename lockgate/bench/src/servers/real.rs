//! A real kube-apiserver with its etcd, run by the scripts in `real/`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use tokio::process::Command;

use super::{Running, Side};
use crate::error::BenchError;
use crate::kubeconfig::Target;
use crate::process::Process;
use crate::progress::say;

const NAME: &str = "kube-apiserver";
/// What `real/get` says when the server cannot be had here.
const UNAVAILABLE: i32 = 77;

/// How to start one.
pub(super) struct Real {
    scripts: PathBuf,
    state: PathBuf,
}

/// How a script ended: well, or with this code and these words.
enum Ended {
    Well,
    Badly(Option<i32>, String),
}

/// Whether it can be had.
pub(super) enum Obtained {
    Ready(Real),
    Unavailable(String),
}

/// The processes end when this is dropped.
pub(super) struct Keeper {
    stop: PathBuf,
    state: PathBuf,
}

impl Real {
    /// Makes sure that the programs are there; the first time this takes minutes.
    pub(super) async fn obtain(scripts: &Path, state: PathBuf) -> Result<Obtained, BenchError> {
        let Ok(scripts) = std::fs::canonicalize(scripts) else {
            return Ok(Obtained::Unavailable(format!(
                "there are no scripts in {}: see --real-scripts",
                scripts.display()
            )));
        };
        std::fs::create_dir_all(&state).map_err(BenchError::file(&state))?;
        say("obtaining the real kube-apiserver (minutes, the first time)");
        let real = Self { scripts, state };
        match real.run("get", &[]).await? {
            Ended::Well => Ok(Obtained::Ready(real)),
            Ended::Badly(Some(UNAVAILABLE), why) => Ok(Obtained::Unavailable(why)),
            Ended::Badly(_, why) => Err(BenchError::server(NAME, why)),
        }
    }

    /// Starts it with an empty etcd. Certificates are kept from one start to the next: making them is not measured.
    pub(super) async fn start(&self) -> Result<Running, BenchError> {
        let data = self.server().join("etcd");
        match std::fs::remove_dir_all(&data) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BenchError::file(&data)(error));
            }
            _ => {}
        }
        self.start_again().await
    }

    /// Starts it with the data that it has.
    pub(super) async fn start_again(&self) -> Result<Running, BenchError> {
        let server = self.server();
        let keeper = Keeper {
            stop: self.scripts.join("stop"),
            state: server.clone(),
        };
        let begun = Instant::now();
        let ended = self.run("start", &[&server]).await?;
        let took = begun.elapsed();
        if let Ended::Badly(_, why) = ended {
            return Err(BenchError::server(NAME, why));
        }
        let pids = server.join("pids");
        let processes = parse_pids(&std::fs::read_to_string(&pids).map_err(BenchError::file(&pids))?);
        let target = Target::read(&server.join("kubeconfig"))?;
        Ok(Running {
            side: Side::Real,
            target,
            processes,
            took,
            keeper: super::Keeper::Real(keeper),
        })
    }

    fn server(&self) -> PathBuf {
        self.state.join("server")
    }

    async fn run(&self, script: &str, arguments: &[&Path]) -> Result<Ended, BenchError> {
        // A file and not a pipe: what the script starts would keep a pipe open.
        let log = self.state.join(format!("{script}.log"));
        let file = std::fs::File::create(&log).map_err(BenchError::file(&log))?;
        let program = self.scripts.join(script);
        let status = Command::new(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .status()
            .await
            .map_err(BenchError::file(&program))?;
        if status.success() {
            return Ok(Ended::Well);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let why = format!("{} ended with {status}\n{}", program.display(), said.trim());
        Ok(Ended::Badly(status.code(), why))
    }
}

impl Keeper {
    pub(super) async fn stop(self) -> Result<(), BenchError> {
        let joined = tokio::task::spawn_blocking(move || drop(self)).await;
        joined.map_err(|e| BenchError::server(NAME, format!("could not be stopped: {e}")))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let mut command = std::process::Command::new(&self.stop);
        let status = command
            .arg(&self.state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            say(&format!(
                "the real server could not be stopped: try {} {}",
                self.stop.display(),
                self.state.display()
            ));
        }
    }
}

/// Lines of a name and a number.
fn parse_pids(text: &str) -> Vec<Process> {
    let process = |line: &str| {
        let (name, pid) = line.split_once(' ')?;
        Some(Process {
            name: name.to_owned(),
            pid: pid.trim().parse().ok()?,
        })
    };
    let mut processes: Vec<Process> = text.lines().filter_map(process).collect();
    // The server that is spoken to comes first.
    processes.sort_by_key(|process| process.name != NAME);
    processes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_read() {
        let processes = parse_pids("etcd 12\nkube-apiserver 34\nnonsense\n");
        let found: Vec<(&str, u32)> = processes.iter().map(|p| (p.name.as_str(), p.pid)).collect();
        assert_eq!(found, [("kube-apiserver", 34), ("etcd", 12)]);
    }
}
