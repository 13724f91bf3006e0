//! Servers in this process, fresh for each scenario, with members whose workloads become ready at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use lockgate_hub::Clock;
use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};

use super::Backend;
use crate::file::Scenario;
use crate::line::Line;
use crate::plane::Plane;
use crate::server::Server;
use crate::tower::Tower;
use crate::world::{Site, Watched, World};

/// Servers in this process.
#[derive(Default)]
pub struct Embedded {
    pki: Option<Arc<Pki>>,
}

impl Embedded {
    /// A backend; the certificates of its servers are made once.
    pub fn new() -> Self {
        Self::default()
    }

    fn pki(&mut self) -> Result<Arc<Pki>, String> {
        if let Some(pki) = &self.pki {
            return Ok(pki.clone());
        }
        let pki = Arc::new(Pki::ephemeral().map_err(|error| error.to_string())?);
        self.pki = Some(pki.clone());
        Ok(pki)
    }

    /// A member of this name whose workloads are simulated.
    pub(super) async fn member(&mut self, name: &str, clock: &Clock) -> Result<Site, String> {
        let options = SimOptions {
            delay: Duration::ZERO,
            pods: false,
            ..SimOptions::default()
        };
        self.site(name, clock, Some(options)).await
    }

    async fn site(
        &mut self,
        name: &str,
        clock: &Clock,
        simulated: Option<SimOptions>,
    ) -> Result<Site, String> {
        let mut options = Options::new(self.pki()?);
        let time = clock.clone();
        options.clock = Arc::new(move || time.now());
        let server = ApiServer::start(options)
            .await
            .map_err(|error| format!("{name} did not start: {error}"))?;
        let admin = UserInfo::new("admin", ["system:masters"]).authenticated();
        let client = kube::Client::new(server.as_user(admin), "default");
        let simulation = simulated.clone().map(|options| Member::start(&server, options));
        Ok(Site {
            server: Server::new(client),
            line: Arc::new(Line::default()),
            // Nobody resolves this: members are reached by name.
            endpoint: format!("https://{name}.invalid"),
            authority: None,
            watched: Watched::Embedded {
                tower: Box::new(Tower::start(&server, simulated)),
                _simulation: simulation,
            },
        })
    }
}

impl Backend for Embedded {
    fn open<'a>(
        &'a mut self,
        scenario: &'a Scenario,
        plane: &'a dyn Plane,
    ) -> BoxFuture<'a, Result<World, String>> {
        Box::pin(async move {
            let clock = Clock::manual(Timestamp::now());
            let hub = self.site("hub", &clock, None).await?;
            for definition in plane.definitions() {
                hub.server.apply(&definition).await.map_err(|problem| {
                    format!("failed to install {}: {problem}", definition["metadata"]["name"])
                })?;
            }
            let mut members = BTreeMap::new();
            for member in &scenario.members {
                members.insert(member.name.clone(), self.member(&member.name, &clock).await?);
            }
            Ok(World::new(hub, members, clock))
        })
    }

    fn close(&mut self, world: World) -> BoxFuture<'_, Result<(), String>> {
        // Servers end with their last handle.
        drop(world);
        Box::pin(std::future::ready(Ok(())))
    }
}
