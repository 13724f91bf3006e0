//! `lockgate controller`: the control plane against any kube-apiserver, in or out of a pod, one leader at a time.
//!
//! It keeps nothing: everything that it decides follows from the hub's objects, so that it may be stopped, killed, or run
//! twice at any time.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{ArgAction, Args};
use lockgate_api::keys;
use lockgate_engine::claim::Skips;
use lockgate_hub::election::ElectionOptions;
use lockgate_hub::metrics::{self, Metrics};
use lockgate_hub::{Hub, HubError, HubOptions, Resource};
use serde_json::Value;

use crate::connect::{Connection, HubArguments};
use crate::crds;
use crate::exit::Failure;
use crate::gates::{self, FeatureGates};

/// What is under way at the end has this long to arrive; what does not is done by the next start.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The groups and versions of a hub of ours.
const OURS: &[&str] = &[
    "/apis/policy.karmada.io/v1alpha1",
    "/apis/work.karmada.io/v1alpha2",
    "/apis/work.karmada.io/v1alpha1",
    "/apis/cluster.karmada.io/v1alpha1",
];

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 stopped by SIGTERM or Ctrl-C, 1 failure, 2 usage, 7 another took the lease."
)]
pub(crate) struct ControllerArguments {
    #[command(flatten)]
    hub: HubArguments,
    /// Feature gates, as Name=true,Other=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// What is never propagated, beside the control plane's own kinds: GROUP, GROUP/VERSION or GROUP/VERSION/KIND,KIND, separated by ;
    #[arg(long, value_name = "APIS", default_value = "", hide_default_value = true)]
    skipped_propagating_apis: String,
    /// Namespaces from which nothing is propagated, as patterns of whole names, separated by commas [default: kube-.*]
    #[arg(long, value_name = "PATTERNS")]
    skipped_propagating_namespaces: Option<String>,
    /// Where /metrics, /healthz and /readyz are served; 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    metrics_address: MetricsAddress,
    /// Whether to wait for the lease, so that of several processes one acts
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,
    /// The name in the lease; no two processes may share it [default: the host's, and something random]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// How long a leader that is silent keeps the lease, in seconds; it is renewed three times in that time
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(3..=3600))]
    lease_duration: u16,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MetricsAddress(Option<SocketAddr>);

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        // `:8080` is every address of the machine, as elsewhere.
        let whole = if text.starts_with(':') {
            format!("[::]{text}")
        } else {
            text.to_owned()
        };
        match whole.parse() {
            Ok(address) => Ok(Self(Some(address))),
            Err(_) => Err("it is an address and a port, as in 127.0.0.1:8080, or 0".into()),
        }
    }
}

/// Runs until it is told to stop, or until another leads.
pub(crate) fn run(arguments: &ControllerArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(controller(arguments))
}

async fn controller(arguments: &ControllerArguments) -> Result<ExitCode, Failure> {
    let stop = crate::up::stop_signal()?;
    tokio::pin!(stop);
    let skips = Skips::parse(
        &arguments.skipped_propagating_apis,
        arguments.skipped_propagating_namespaces.as_deref(),
    )
    .map_err(Failure::Usage)?;
    let connection = arguments.hub.connect().await?;
    check_installed(&connection).await?;
    let mut options = options(arguments, &connection);
    options.skips = skips;
    let identity = options
        .election
        .as_ref()
        .map(|election| election.identity.clone());
    let leading = Leading::new(identity.is_some());
    let _serving = serve(arguments.metrics_address, &options.metrics, &leading).await?;

    tracing::info!(hub = connection.url, elect = arguments.leader_elect, "starting");
    let starting = Hub::start(options);
    tokio::pin!(starting);
    let hub = tokio::select! {
        hub = &mut starting => hub.map_err(|error| failure(&error, &connection))?,
        () = &mut stop => {
            // A lease that was won a moment ago is given back; one that is another's is none of our business.
            if holds_lease(&connection, identity.as_deref()).await
                && let Ok(Ok(hub)) = tokio::time::timeout(STOP_WITHIN, starting).await
            {
                hub.stop().await;
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let lost = hub.lost();
    leading.put(hub);
    tracing::info!("leading");
    let result = tokio::select! {
        () = &mut stop => Ok(ExitCode::SUCCESS),
        () = lost => Err(Failure::LeaseLost),
    };
    tracing::info!("stopping");
    if let Some(hub) = leading.take()
        && tokio::time::timeout(STOP_WITHIN, hub.stop()).await.is_err()
    {
        tracing::warn!("not everything ended in time; the next start goes on from what was written");
    }
    result
}

fn options(arguments: &ControllerArguments, connection: &Connection) -> HubOptions {
    let mut options = HubOptions::new(connection.client.clone());
    options.config = Some(connection.config.clone());
    options.gates = arguments.feature_gates.over(gates::CONTROLLER);
    options.election = arguments.leader_elect.then(|| {
        let duration = Duration::from_secs(arguments.lease_duration.into());
        let mut election = ElectionOptions {
            duration,
            renew: duration / 3,
            retry: duration * 2 / 15,
            ..ElectionOptions::default()
        };
        if let Some(identity) = &arguments.identity {
            election.identity.clone_from(identity);
        }
        election
    });
    options
}

/// Asked before the election: without the definitions there is not even a namespace for the lease.
async fn check_installed(connection: &Connection) -> Result<(), Failure> {
    for path in OURS {
        if connection.get::<Value>(path).await?.is_some() {
            // If others are missing, somebody deleted them, and whoever leads makes them again.
            return Ok(());
        }
    }
    Err(Failure::Other(crds::missing(&connection.url)))
}

fn failure(error: &HubError, connection: &Connection) -> Failure {
    match error {
        HubError::NotInstalled(_) => Failure::Other(crds::missing(&connection.url)),
        error => Failure::Other(error.to_string()),
    }
}

async fn holds_lease(connection: &Connection, identity: Option<&str>) -> bool {
    let path = Resource::leases().object(keys::SYSTEM_NAMESPACE, &ElectionOptions::default().name);
    let lease: Option<Value> = connection.get(&path).await.unwrap_or_default();
    identity.is_some() && lease.is_some_and(|lease| lease["spec"]["holderIdentity"].as_str() == identity)
}

/// The control plane while it leads.
#[derive(Clone)]
struct Leading {
    hub: Arc<Mutex<Option<Hub>>>,
    /// Whether there is an election: then waiting for the lease is all that is asked of this process, and it is ready for
    /// that. A rolling update of two processes would never end if the second were ready only once the first is gone.
    elects: bool,
}

impl Leading {
    fn new(elects: bool) -> Self {
        Self {
            hub: Arc::default(),
            elects,
        }
    }

    fn put(&self, hub: Hub) {
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner) = Some(hub);
    }

    fn take(&self) -> Option<Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn ready(&self) -> bool {
        let hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        hub.as_ref().map_or(self.elects, Hub::ready)
    }
}

async fn serve(
    address: MetricsAddress,
    metrics: &Arc<Metrics>,
    leading: &Leading,
) -> Result<Option<metrics::Serving>, Failure> {
    let Some(address) = address.0 else {
        return Ok(None);
    };
    let leading = leading.clone();
    let serving = metrics::serve(address, metrics.clone(), move || leading.ready())
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Failure::PortInUse {
                cluster: "metrics".into(),
                address,
                remedy: "choose another with --metrics-address (0 for none)".into(),
            },
            _ => Failure::Other(format!("failed to listen on {address}: {error}")),
        })?;
    tracing::info!(address = %serving.address, "serving metrics and health");
    Ok(Some(serving))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parsed = |text: &str| text.parse::<MetricsAddress>().map(|address| address.0);
        assert_eq!(parsed("0"), Ok(None));
        assert_eq!(
            parsed("127.0.0.1:8080"),
            Ok(Some("127.0.0.1:8080".parse().unwrap()))
        );
        assert_eq!(parsed(":9090"), Ok(Some("[::]:9090".parse().unwrap())));
        for wrong in ["", "8080", "localhost:8080", "127.0.0.1"] {
            assert!(parsed(wrong).unwrap_err().contains("127.0.0.1:8080"), "{wrong}");
        }
    }
}
