//! The control plane in the same process: the definitions installed on the hub, the controllers, and the members joined as any
//! cluster is joined.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockgate_engine::Gates;
use lockgate_hub::clusters::join::{JoinRequest, join_member};
use lockgate_hub::clusters::rights;
use lockgate_hub::{ConnectError, Connector, Guard, Hub, HubOptions, Link, SecretConnector};
use machinery_apiserver::ApiServer;
use machinery_auth::{Pki, UserInfo};
use serde_json::Value;

use crate::exit::Failure;
use crate::up::cluster::Cluster;

/// Reaches the members of this process without a socket; any other cluster by its Secret.
struct Neighbours {
    /// By URL.
    servers: BTreeMap<String, ApiServer>,
    others: SecretConnector,
}

impl Connector for Neighbours {
    fn connect<'a>(
        &'a self,
        cluster: &'a lockgate_api::Cluster,
        secret: Option<&'a Value>,
        guard: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        match self.servers.get(&cluster.spec.api_endpoint) {
            Some(server) => {
                let account = account(&cluster.metadata.name);
                let client = kube::Client::new(server.as_user(account), "default");
                Box::pin(async move { Ok(client) })
            }
            None => self.others.connect(cluster, secret, guard),
        }
    }
}

/// The account that the member's token stands for: the rights are the same with a socket and without.
fn account(cluster: &str) -> UserInfo {
    UserInfo::service_account(rights::MEMBER_NAMESPACE, &rights::account_name(cluster), "")
}

/// Somebody who may do everything, in process only.
fn administrator() -> UserInfo {
    UserInfo::new("lockgate", ["system:masters", "system:authenticated"])
}

/// Installs the definitions, starts the controllers, joins the members.
pub(crate) async fn start(
    hub: &Cluster,
    members: &[Cluster],
    pki: &Arc<Pki>,
    gates: Gates,
) -> Result<Hub, Failure> {
    let client = kube::Client::new(hub.server().as_user(administrator()), "default");
    let link = Link::new(client.clone());
    lockgate_hub::install::install(&link)
        .await
        .map_err(|error| Failure::Other(error.to_string()))?;
    let mut options = HubOptions::inside(client);
    options.gates = gates;
    options.connector = Arc::new(Neighbours {
        servers: members
            .iter()
            .map(|member| (member.url(), member.server().clone()))
            .collect(),
        others: SecretConnector,
    });
    let running = Hub::start(options)
        .await
        .map_err(|error| Failure::Other(error.to_string()))?;
    let joins = members.iter().map(|member| join(&link, member, pki));
    futures::future::try_join_all(joins).await?;
    Ok(running)
}

async fn join(hub: &Link, member: &Cluster, pki: &Arc<Pki>) -> Result<(), Failure> {
    let link = Link::new(kube::Client::new(
        member.server().as_user(administrator()),
        "default",
    ));
    let request = JoinRequest {
        name: member.name.clone(),
        endpoint: member.url(),
        ca_bundle: Some(pki.ca_pem().to_owned()),
        token_patience: Duration::from_secs(5),
        refresh: true,
        renew_token: false,
        ..JoinRequest::default()
    };
    join_member(hub, &link, &request, &mut |_| {})
        .await
        .map_err(|error| Failure::Other(format!("{} cannot join: {error}", member.name)))?;
    Ok(())
}
