//! The servers of one scenario.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use lockgate_api::Cluster;
use lockgate_hub::{Clock, ConnectError, Connector, Guard};
use serde_json::Value;

use crate::file::Place;
use crate::line::{Fuse, Line, over};
use crate::server::{Problem, Server, Snapshot};
use crate::tower::Tower;

/// The servers of one scenario, and its time.
pub struct World {
    pub(crate) hub: Site,
    pub(crate) members: BTreeMap<String, Site>,
    pub(crate) clock: Clock,
    /// After how many changes somebody was last asked to look after the servers.
    pub(crate) looked_after: AtomicU64,
}

/// One server.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) line: Arc<Line>,
    pub(crate) endpoint: String,
    pub(crate) authority: Option<String>,
    pub(crate) watched: Watched,
}

/// Who knows what is going on in a server.
pub(crate) enum Watched {
    /// It is in this process. The simulation of its workloads ends with it.
    Embedded {
        tower: Box<Tower>,
        _simulation: Option<lockgate_sim::Member>,
    },
    /// It is elsewhere, and this is done for it that its own controllers would do.
    Real(Arc<crate::backend::Janitor>),
}

impl Site {
    /// What somebody other than the controllers must still do.
    pub(crate) fn owed(&self) -> Option<String> {
        match &self.watched {
            Watched::Embedded { tower, .. } => tower.owed(),
            Watched::Real(janitor) => janitor.owed(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        match &self.watched {
            Watched::Embedded { tower, .. } => tower.revision(),
            Watched::Real(janitor) => janitor.passes(),
        }
    }

    pub(crate) async fn snapshot(&self) -> Result<Snapshot, Problem> {
        match &self.watched {
            Watched::Embedded { tower, .. } => Ok(tower.snapshot()),
            Watched::Real(_) => self.server.snapshot().await,
        }
    }
}

impl World {
    pub(crate) fn new(hub: Site, members: BTreeMap<String, Site>, clock: Clock) -> Self {
        Self {
            hub,
            members,
            clock,
            looked_after: AtomicU64::new(0),
        }
    }

    /// Somebody looks after servers that are elsewhere before they are called quiet, whether or not something changes.
    pub(crate) fn look_after(&self) {
        self.looked_after.store(u64::MAX, Ordering::Release);
    }

    pub(crate) fn site(&self, place: &Place) -> Option<&Site> {
        match place {
            Place::Hub => Some(&self.hub),
            Place::Member(name) => self.members.get(name),
        }
    }

    pub(crate) fn sites(&self) -> impl Iterator<Item = (Place, &Site)> {
        let members = self.members.iter();
        std::iter::once((Place::Hub, &self.hub))
            .chain(members.map(|(name, site)| (Place::Member(name.clone()), site)))
    }

    /// The hub as controllers reach it.
    pub(crate) fn hub_client(&self, fuse: &Arc<Fuse>) -> kube::Client {
        over(
            self.hub.server.client().clone(),
            self.hub.line.clone(),
            fuse.clone(),
        )
    }

    /// The members as controllers reach them.
    pub(crate) fn connector(&self, fuse: &Arc<Fuse>) -> Arc<dyn Connector> {
        let by_name = self.members.iter().map(|(name, site)| {
            let client = over(site.server.client().clone(), site.line.clone(), fuse.clone());
            (name.clone(), client)
        });
        Arc::new(Wires(by_name.collect()))
    }
}

/// Members by name.
struct Wires(BTreeMap<String, kube::Client>);

impl Connector for Wires {
    fn connect<'a>(
        &'a self,
        cluster: &'a Cluster,
        _: Option<&'a Value>,
        _: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        let name = &cluster.metadata.name;
        let client = self.0.get(name).cloned();
        let answer =
            client.ok_or_else(|| ConnectError::Config(format!("the scenario has no member {name:?}")));
        Box::pin(std::future::ready(answer))
    }
}
