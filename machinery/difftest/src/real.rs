//! A real kube-apiserver for tests, by the scripts in `real/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Target, TargetError};

/// What `real/` scripts exit with when the server cannot be obtained here.
const UNAVAILABLE: i32 = 77;

/// A running server with a store of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct RealServer {
    dir: tempfile::TempDir,
}

/// Why there is no real server.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// It cannot be obtained on this machine: whoever skips for this must say so loudly.
    #[error("a real kube-apiserver cannot be had here (see real/README.md)")]
    Unavailable,
    /// Something else went wrong.
    #[error("the real kube-apiserver did not start: {0}")]
    Broken(String),
}

impl RealServer {
    /// Obtains the server if that was not done before, which takes minutes, and starts one.
    pub fn start() -> Result<RealServer, RealError> {
        Self::start_with(&[])
    }

    /// The same with an audit log of all requests, but for those about health and version.
    pub fn start_audited() -> Result<RealServer, RealError> {
        Self::start_with(&[("LOCKGATE_REAL_AUDIT", "all")])
    }

    fn start_with(settings: &[(&str, &str)]) -> Result<RealServer, RealError> {
        let broken = |error: std::io::Error| RealError::Broken(error.to_string());
        call("get", None, &[])?;
        let dir = tempfile::tempdir().map_err(broken)?;
        call("start", Some(dir.path()), settings)?;
        Ok(RealServer { dir })
    }

    /// Where the audit log is, if there is one.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.path().join("log/audit.log")
    }

    /// The server with its administrator's token.
    pub fn target(&self, name: &str) -> Result<Target, TargetError> {
        Target::from_directory(name, self.dir.path())
    }

    /// Where `kubeconfig` and the logs are.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        // Nothing is left to do if it does not stop.
        call("stop", Some(self.dir.path()), &[]).ok();
    }
}

fn call(script: &str, dir: Option<&Path>, settings: &[(&str, &str)]) -> Result<(), RealError> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "real", script]
        .iter()
        .collect();
    let output = Command::new(&path)
        .args(dir)
        .envs(settings.iter().copied())
        .output()
        .map_err(|error| RealError::Broken(format!("{}: {error}", path.display())))?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(UNAVAILABLE) => Err(RealError::Unavailable),
        _ => Err(RealError::Broken(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
