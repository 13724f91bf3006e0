//! The servers that are measured: how they are started, found and stopped.
//!
//! A server that was started here is stopped here, whatever happens: when its [`Running`] is dropped.

mod embedded;
mod real;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::arguments::{ApiArguments, RealChoice};
use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::kubeconfig::Target;
use crate::process::Process;
use crate::progress::say;
use crate::servers::embedded::Embedded;
use crate::servers::real::{Obtained, Real};
use crate::verify::parse;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Embedded,
    Real,
}

/// How to start servers.
pub(crate) struct Servers {
    embedded: Embedded,
    real: Option<Real>,
}

/// A server that runs and is ready.
pub(crate) struct Running {
    pub(crate) side: Side,
    pub(crate) target: Target,
    pub(crate) processes: Vec<Process>,
    /// From the start of its process until it said that it is ready.
    pub(crate) took: Duration,
    keeper: Keeper,
}

/// What must be kept for a server to run on.
enum Keeper {
    Embedded(embedded::Keeper),
    Real(real::Keeper),
}

impl Servers {
    /// Finds the programs; the real server is left out, loudly, if it may be and must be.
    pub(crate) async fn find(arguments: &ApiArguments, scratch: &Path) -> Result<Self, BenchError> {
        let program = match &arguments.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(BenchError::file("this program"))?,
        };
        let embedded = Embedded {
            program,
            scratch: scratch.to_owned(),
        };
        let (state, needed): (PathBuf, bool) = match &arguments.real {
            RealChoice::None => return Ok(Self { embedded, real: None }),
            RealChoice::Auto => (scratch.join("real"), false),
            RealChoice::Directory(directory) => (directory.join("lockgate-bench"), true),
        };
        match Real::obtain(&arguments.real_scripts, state).await? {
            Obtained::Ready(real) => Ok(Self {
                embedded,
                real: Some(real),
            }),
            Obtained::Unavailable(why) if needed => Err(BenchError::server("kube-apiserver", why)),
            Obtained::Unavailable(why) => {
                say(&format!("NOT COMPARED with a real kube-apiserver: {why}"));
                Ok(Self { embedded, real: None })
            }
        }
    }

    /// The servers that there are, the embedded one first.
    pub(crate) fn sides(&self) -> Vec<Side> {
        if self.real.is_some() {
            vec![Side::Embedded, Side::Real]
        } else {
            vec![Side::Embedded]
        }
    }

    /// Starts one without any data.
    pub(crate) async fn start(&self, side: Side) -> Result<Running, BenchError> {
        match (side, &self.real) {
            (Side::Embedded, _) => self.embedded.start().await,
            (Side::Real, Some(real)) => real.start().await,
            (Side::Real, None) => Err(BenchError::server("kube-apiserver", "was not obtained")),
        }
    }

    /// Starts the embedded one without any data, as a hub: with the control plane in it.
    pub(crate) async fn start_hub(&self) -> Result<Running, BenchError> {
        self.embedded.start_whole().await
    }

    /// Ends one and starts it again with the data that it has: the embedded one is killed, the real one told to end.
    pub(crate) async fn start_again(&self, running: Running) -> Result<Running, BenchError> {
        match (running.keeper, &self.real) {
            (Keeper::Embedded(keeper), _) => self.embedded.start_in(keeper.kill().await?).await,
            (Keeper::Real(keeper), Some(real)) => {
                keeper.stop().await?;
                real.start_again().await
            }
            (Keeper::Real(_), None) => Err(BenchError::server("kube-apiserver", "was not obtained")),
        }
    }
}

impl Running {
    /// Connections to it.
    pub(crate) async fn client(&self, connections: usize) -> Result<Arc<Client>, BenchError> {
        Ok(Arc::new(Client::connect(&self.target, connections).await?))
    }

    /// Its name and version, in its own words.
    pub(crate) async fn version(&self) -> Result<String, BenchError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let answer = self.client(1).await?.call(0, &Call::get("/version")).await?;
        let names: Vec<&str> = self
            .processes
            .iter()
            .map(|process| process.name.as_str())
            .collect();
        Ok(format!(
            "{} {}",
            names.join(" + "),
            parse::<Version>(&answer)?.git_version
        ))
    }

    pub(crate) async fn stop(self) -> Result<(), BenchError> {
        match self.keeper {
            Keeper::Embedded(keeper) => keeper.kill().await.map(drop),
            Keeper::Real(keeper) => keeper.stop().await,
        }
    }
}
