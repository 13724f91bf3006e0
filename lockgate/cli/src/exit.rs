//! How commands fail: what is wrong, where, what to do; and an exit code for scripts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// A command that could not do what it was asked for.
///
/// Exit codes: 1 for what has no code of its own, 2 for wrong usage, then one for each variant below.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3.
    #[error("{address} ({cluster}) is in use by another program: stop that one, or {remedy}")]
    PortInUse {
        cluster: String,
        address: SocketAddr,
        remedy: String,
    },
    /// Exit code 4.
    #[error("failed to write in {}: {source}; choose another directory with --data-dir, or use --ephemeral", path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
    /// Exit code 4.
    #[error("failed to write the audit log {}: {source}; choose another folder with --audit-log", path.display())]
    UnwritableLog { path: PathBuf, source: std::io::Error },
    /// Exit code 5.
    #[error("{} is in use by another lockgate: stop that one, or choose another directory with --data-dir", path.display())]
    DirectoryInUse { path: PathBuf },
    /// Exit code 6.
    #[error("{0}")]
    Damaged(String),
    /// Exit code 7.
    #[error("another took the lease, or it could not be renewed in time: start again to stand by")]
    LeaseLost,
    /// A server does not let this person do it. Exit code 1.
    #[error("{0}")]
    Forbidden(String),
    /// Exit code 1.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Other(_) | Self::Forbidden(_) => 1,
            Self::Usage(_) => 2,
            Self::PortInUse { .. } => 3,
            Self::Unwritable { .. } | Self::UnwritableLog { .. } => 4,
            Self::DirectoryInUse { .. } => 5,
            Self::Damaged(_) => 6,
            Self::LeaseLost => 7,
        })
    }
}
