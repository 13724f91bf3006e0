//! The embedded server, as `lockgate up --bare` runs it: a process of its own, with its data on disk, and no control plane,
//! which a kube-apiserver does not have either.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{Running, Side};
use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::kubeconfig::Target;
use crate::process::Process;

const NAME: &str = "lockgate";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// How to start one.
pub(super) struct Embedded {
    pub(super) program: PathBuf,
    pub(super) scratch: PathBuf,
}

/// The process ends when this is dropped, and its data is removed.
pub(super) struct Keeper {
    child: Child,
    directory: TempDir,
}

impl Embedded {
    pub(super) async fn start(&self) -> Result<Running, BenchError> {
        self.start_in(self.directory()?).await
    }

    /// Starts one with the control plane in it.
    pub(super) async fn start_whole(&self) -> Result<Running, BenchError> {
        self.start_with(self.directory()?, &[]).await
    }

    fn directory(&self) -> Result<TempDir, BenchError> {
        TempDir::with_prefix_in("embedded-", &self.scratch).map_err(BenchError::file(&self.scratch))
    }

    /// Starts one with the data that is in a directory, if there is any.
    pub(super) async fn start_in(&self, directory: TempDir) -> Result<Running, BenchError> {
        self.start_with(directory, &["--bare"]).await
    }

    async fn start_with(&self, directory: TempDir, options: &[&str]) -> Result<Running, BenchError> {
        let data = directory.path().join("data");
        let log_path = directory.path().join("log");
        let log = std::fs::File::create(&log_path).map_err(BenchError::file(&log_path))?;
        let config = data.join("kubeconfig");
        // One of a former start would be taken for the new one.
        match std::fs::remove_file(&config) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BenchError::file(&config)(error));
            }
            _ => {}
        }
        let begun = Instant::now();
        let mut child = Command::new(&self.program)
            .args(["up", "--members", "0", "--port", "0", "--data-dir"])
            .arg(&data)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(BenchError::file(&self.program))?;
        let failed = |reason: String| {
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            BenchError::server(NAME, format!("{reason}\n{}", log.trim()).trim())
        };
        // The file is moved into place whole, and only once the server listens.
        let target = loop {
            if config.exists() {
                break Target::read(&config)?;
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(failed(format!("did not start ({status})")));
            }
            if begun.elapsed() > START_TIMEOUT {
                return Err(failed(format!("was not ready after {START_TIMEOUT:?}")));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        };
        Client::connect(&target, 1)
            .await?
            .call(0, &Call::get("/readyz"))
            .await?;
        let took = begun.elapsed();
        let pid = child.id().ok_or_else(|| failed("has ended".into()))?;
        let processes = vec![Process {
            name: NAME.into(),
            pid,
        }];
        let keeper = super::Keeper::Embedded(Keeper { child, directory });
        Ok(Running {
            side: Side::Embedded,
            target,
            processes,
            took,
            keeper,
        })
    }
}

impl Keeper {
    /// Ends the process at once; what it wrote is in the directory.
    pub(super) async fn kill(mut self) -> Result<TempDir, BenchError> {
        let killed = self.child.kill().await;
        killed.map_err(|e| BenchError::server(NAME, format!("could not be stopped: {e}")))?;
        Ok(self.directory)
    }
}
