//! The control plane of this project, as a scenario is run with it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockgate_hub::clusters::join::{JoinRequest, join_member};
use lockgate_hub::{Hub, HubOptions, Link, Metrics, Resource};
use serde_json::Value;

use crate::file::Place;
use crate::plane::{Controllers, Joining, Plane, Setup, Watching};

/// The control plane of this project.
#[derive(Clone, Copy, Debug, Default)]
pub struct HubPlane;

impl Plane for HubPlane {
    fn definitions(&self) -> Vec<Value> {
        lockgate_api::definitions::definitions()
    }

    fn join<'a>(&'a self, joining: Joining<'a>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let spec = joining.spec;
            let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
            let request = JoinRequest {
                name: spec.name.clone(),
                endpoint: joining.endpoint.to_owned(),
                ca_bundle: joining.authority.map(str::to_owned),
                labels: spec
                    .labels
                    .iter()
                    .map(|(key, value)| (key.clone(), text(value)))
                    .collect(),
                provider: spec.provider.clone(),
                region: spec.region.clone(),
                zones: spec.zones.clone(),
                // Nothing in these servers fills in tokens.
                token_patience: Duration::ZERO,
                ..JoinRequest::default()
            };
            let (hub, member) = (Link::new(joining.hub.clone()), Link::new(joining.member.clone()));
            join_member(&hub, &member, &request, &mut |_| {})
                .await
                .map(|_| ())
                .map_err(|error| error.to_string())
        })
    }

    fn start(&self, setup: Setup) -> BoxFuture<'_, Result<Box<dyn Controllers>, String>> {
        Box::pin(start(setup, Arc::default()))
    }
}

async fn start(setup: Setup, metrics: Arc<Metrics>) -> Result<Box<dyn Controllers>, String> {
    let mut options = HubOptions::new(setup.hub);
    options.connector = setup.connector;
    options.gates = setup.gates;
    options.clock = setup.clock;
    options.metrics = metrics;
    let hub = Hub::start(options).await.map_err(|error| error.to_string())?;
    let running: Box<dyn Controllers> = Box::new(Running(hub));
    Ok(running)
}

/// The control plane of this project, whose figures are kept.
#[derive(Clone, Debug, Default)]
pub struct CountedPlane {
    /// Where.
    pub metrics: Arc<Metrics>,
}

impl Plane for CountedPlane {
    fn definitions(&self) -> Vec<Value> {
        HubPlane.definitions()
    }

    fn join<'a>(&'a self, joining: Joining<'a>) -> BoxFuture<'a, Result<(), String>> {
        HubPlane.join(joining)
    }

    fn start(&self, setup: Setup) -> BoxFuture<'_, Result<Box<dyn Controllers>, String>> {
        Box::pin(start(setup, self.metrics.clone()))
    }
}

struct Running(Hub);

impl Controllers for Running {
    fn idle(&self) -> bool {
        self.0.idle()
    }

    fn busy_with(&self) -> String {
        self.0.busy_with()
    }

    fn seen(&self, place: &Place, resource: &Resource) -> Option<u64> {
        match place {
            // Verbs are no part of a resource's identity.
            Place::Hub => self.0.seen(&Resource {
                verbs: Vec::new(),
                ..resource.clone()
            }),
            Place::Member(name) => self.0.seen_on(name, &resource.api_version(), &resource.kind),
        }
    }

    fn seen_all(&self, place: &Place, resource: &Resource) -> Option<u64> {
        match place {
            Place::Hub => None,
            Place::Member(name) if resource.api_version() == "v1" => {
                self.0.seen_capacity(name, &resource.kind)
            }
            Place::Member(_) => None,
        }
    }

    fn watches(&self, place: &Place) -> Vec<Watching> {
        let watches = match place {
            Place::Hub => self.0.seen_for_clusters(),
            Place::Member(cluster) => self.0.seen_by_policies(cluster),
        };
        watches
            .into_iter()
            .map(|(resource, namespace, name, selector, seen)| Watching {
                resource,
                namespace,
                name,
                selector,
                seen,
            })
            .collect()
    }

    fn told(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.told())
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.0.stop())
    }
}
