//! One cluster of the fleet: an API server that listens, and for a member the simulation that makes it behave.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, AuditLog, Listening, Options, StartError};
use machinery_auth::Pki;

use crate::exit::Failure;
use crate::up::directory::Directory;

/// What a cluster is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Where objects are written.
    Hub,
    /// Where they go; its workloads become ready after a delay.
    Member { delay: Duration },
}

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) name: String,
    server: ApiServer,
    listening: Listening,
    /// What makes a member behave; it ends with this.
    behaviour: Option<Member>,
}

impl Cluster {
    /// Starts a cluster on `port`, or on any free one if that is 0. Its requests go to `audit`, if that is there.
    pub(crate) async fn start(
        name: &str,
        role: Role,
        port: u16,
        directory: &Directory,
        pki: &Arc<Pki>,
        audit: Option<AuditLog>,
    ) -> Result<Self, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    let remedy = match role {
                        Role::Hub => "choose another port with --port (0 takes any free one)".to_owned(),
                        Role::Member { .. } => {
                            format!(
                                "remove {}, and new ports are chosen",
                                directory.ports_file().display()
                            )
                        }
                    };
                    Failure::PortInUse {
                        cluster: name.to_owned(),
                        address,
                        remedy,
                    }
                }
                _ => Failure::Other(format!("failed to listen on {address}: {error}")),
            })?;
        let mut options = Options::new(pki.clone());
        options.path = directory.store(name);
        options.audit = audit;
        let server = ApiServer::start(options)
            .await
            .map_err(|error| start_failure(error, directory))?;
        let listening = server
            .listen(listener, pki.server_config())
            .map_err(|e| Failure::Other(format!("failed to listen on {address}: {e}")))?;
        let behaviour = match role {
            Role::Hub => None,
            Role::Member { delay } => Some(Member::start(&server, simulation(name, delay))),
        };
        Ok(Self {
            name: name.to_owned(),
            server,
            listening,
            behaviour,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.listening.address.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.listening.address)
    }

    pub(crate) fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Stops it; what was acknowledged is kept.
    pub(crate) async fn stop(self) {
        drop(self.behaviour);
        drop(self.listening);
        self.server.stop().await;
    }
}

/// Nodes are named after their cluster, so that nobody mistakes one for another.
fn simulation(cluster: &str, delay: Duration) -> SimOptions {
    let mut options = SimOptions {
        delay,
        ..SimOptions::default()
    };
    options.nodes.prefix = format!("{cluster}-node");
    options
}

fn start_failure(error: StartError, directory: &Directory) -> Failure {
    use machinery_apiserver::OpenError;
    let StartError::Store(error) = error else {
        return Failure::Other(error.to_string());
    };
    match error {
        OpenError::Locked { .. } => Failure::DirectoryInUse {
            path: directory.path().to_owned(),
        },
        OpenError::PermissionDenied { .. } | OpenError::NoSpace { .. } | OpenError::Io { .. } => {
            Failure::Unwritable {
                path: directory.path().to_owned(),
                source: std::io::Error::other(error),
            }
        }
        damaged => Failure::Damaged(damaged.to_string()),
    }
}
