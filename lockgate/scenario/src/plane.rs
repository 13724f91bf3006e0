//! The control plane that a scenario is run with, as far as the runner needs to know it.

use std::sync::Arc;

use futures::future::BoxFuture;
use lockgate_engine::Gates;
use lockgate_hub::{Clock, Connector, Resource};
use machinery_value::labels::LabelSelector;
use serde_json::Value;

use crate::file::{MemberSpec, Place};

/// What controllers are started with.
pub struct Setup {
    /// The hub.
    pub hub: kube::Client,
    /// The way to the members.
    pub connector: Arc<dyn Connector>,
    /// The feature gates.
    pub gates: Gates,
    /// The time.
    pub clock: Clock,
}

/// A member that shall join.
pub struct Joining<'a> {
    /// The hub.
    pub hub: &'a kube::Client,
    /// The member.
    pub member: &'a kube::Client,
    /// What the scenario says of it.
    pub spec: &'a MemberSpec,
    /// Its URL.
    pub endpoint: &'a str,
    /// The certificates of its authority, PEM.
    pub authority: Option<&'a str>,
}

/// Some objects of a member that are looked at.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Their resource.
    pub resource: Resource,
    /// Where they are; empty for everywhere.
    pub namespace: String,
    /// Their name; empty for all.
    pub name: String,
    /// Their labels; empty for any.
    pub selector: String,
    /// Up to which resource version they were seen.
    pub seen: u64,
}

impl Watching {
    /// Whether an object with these labels, now or before, is one of them.
    pub(crate) fn includes(&self, namespace: &str, name: &str, labels: [&Value; 2]) -> bool {
        let selected = || {
            LabelSelector::parse(&self.selector).is_ok_and(|selector| {
                labels
                    .iter()
                    .any(|labels| selector.matches_labels(labels.as_object()))
            })
        };
        (self.namespace.is_empty() || self.namespace == namespace)
            && (self.name.is_empty() || self.name == name)
            && (self.selector.is_empty() || selected())
    }
}

/// A control plane.
pub trait Plane: Send + Sync {
    /// What is installed on the hub before anything else.
    fn definitions(&self) -> Vec<Value>;
    /// Lets a member join.
    fn join<'a>(&'a self, joining: Joining<'a>) -> BoxFuture<'a, Result<(), String>>;
    /// Starts the controllers. What they know comes from the servers alone.
    fn start(&self, setup: Setup) -> BoxFuture<'_, Result<Box<dyn Controllers>, String>>;
    /// Whether members are expected to become ready after they joined.
    fn makes_ready(&self) -> bool {
        true
    }
}

/// Controllers that run.
pub trait Controllers: Send + Sync {
    /// Whether nothing is queued or being worked on. What waits for a time to come is idle.
    fn idle(&self) -> bool;
    /// What they are busy with, in words.
    fn busy_with(&self) -> String {
        String::new()
    }
    /// The newest resource version of a resource that was seen on a server; none if nobody looks at it.
    fn seen(&self, place: &Place, resource: &Resource) -> Option<u64>;
    /// The same for all objects of a resource of a member, also those that are not managed; none if nobody looks at them all.
    fn seen_all(&self, _place: &Place, _resource: &Resource) -> Option<u64> {
        None
    }
    /// What else is looked at on a member, managed or not, and up to which version it was seen.
    fn watches(&self, _place: &Place) -> Vec<Watching> {
        Vec::new()
    }
    /// Returns when everything was told that there is to tell: events come last, and at their own pace.
    fn told(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    /// Stops them.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// No control plane: definitions, and servers that do what servers do. For scenarios about what is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPlane;

impl Plane for NoPlane {
    fn definitions(&self) -> Vec<Value> {
        lockgate_api::definitions::definitions()
    }

    fn join<'a>(&'a self, _: Joining<'a>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn start(&self, _: Setup) -> BoxFuture<'_, Result<Box<dyn Controllers>, String>> {
        let none: Box<dyn Controllers> = Box::new(NoPlane);
        Box::pin(std::future::ready(Ok(none)))
    }

    fn makes_ready(&self) -> bool {
        false
    }
}

impl Controllers for NoPlane {
    fn idle(&self) -> bool {
        true
    }

    fn seen(&self, _: &Place, _: &Resource) -> Option<u64> {
        None
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
