//! How a measurement fails.

use std::path::PathBuf;

use crate::servers::Side;

/// A measurement that could not be made, or whose result was wrong.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The arguments contradict each other or the machine.
    #[error("{0}")]
    Usage(String),
    /// A file or directory could not be used.
    #[error("failed to use {}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A server could not be started or has gone.
    #[error("{server}: {reason}")]
    Server {
        /// Which one.
        server: String,
        /// Why.
        reason: String,
    },
    /// A request got no answer, or not the one that was expected.
    #[error("{request}: {reason}")]
    Request {
        /// Method and path.
        request: String,
        /// What came instead.
        reason: String,
    },
    /// What the server holds is not what it was given: its figures would be worthless.
    #[error("verification failed: {0}")]
    Wrong(String),
    /// One of these, on one of the servers.
    #[error("{server}: {source}")]
    On {
        /// Which one.
        server: String,
        /// What.
        source: Box<BenchError>,
    },
    /// Somebody pressed Ctrl-C or ended the process.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    pub(crate) fn server(server: &str, reason: impl std::fmt::Display) -> Self {
        Self::Server {
            server: server.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Says on which server it was.
    pub(crate) fn on(side: Side) -> impl FnOnce(Self) -> Self {
        move |source| Self::On {
            server: format!("{side:?}").to_lowercase(),
            source: Box::new(source),
        }
    }

    pub(crate) fn wrong(what: impl Into<String>) -> Self {
        Self::Wrong(what.into())
    }
}
