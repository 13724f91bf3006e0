//! What is watched on a member: the objects that policies select, and no others. Policies that select the same share a watch.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_engine::comply::{Objects, Subject, rules::Fault};
use machinery_value::labels::LabelSelector;
use parking_lot::Mutex;
use serde_json::Value;

use super::super::dispatching::SendError;
use super::super::lane::{Errand, Lane, OBSERVE};
use super::{Visit, known};
use crate::cache::Cache;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::watch::{Following, follow, follow_named};

/// How long a change waits for more of the same.
const OBSERVE_AFTER: Duration = Duration::from_millis(30);

/// What a watch is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Watched {
    resource: Resource,
    /// Empty for all, and for objects of the cluster.
    namespace: String,
    /// Empty for all.
    name: String,
    /// Empty for all.
    selector: String,
}

impl Watched {
    /// What must be watched for a subject. Of objects in many namespaces there is one watch all the same.
    pub(super) fn of(subject: &Subject, resource: &Resource) -> Self {
        let namespace = match subject.namespaces.as_slice() {
            [one] => one.clone(),
            _ => String::new(),
        };
        Self {
            resource: resource.clone(),
            namespace,
            name: subject.name.clone(),
            selector: subject
                .selector
                .as_ref()
                .map(LabelSelector::to_string)
                .unwrap_or_default(),
        }
    }

    /// All namespaces.
    pub(super) fn namespaces() -> Self {
        Self {
            resource: Resource::namespaces(),
            namespace: String::new(),
            name: String::new(),
            selector: String::new(),
        }
    }
}

/// A watch, and who looks at it.
pub(super) struct Watch {
    following: Arc<Following>,
    /// The names of policies.
    users: Arc<Mutex<BTreeSet<String>>>,
}

impl Watch {
    pub(super) fn is_synced(&self) -> bool {
        let cache = &self.following.cache;
        cache.synced() || cache.trouble().is_some()
    }

    pub(super) fn hurry(&self) {
        self.following.hurry();
    }

    pub(super) fn seen(&self, id: &Watched) -> (Resource, String, String, String, u64) {
        (
            id.resource.clone(),
            id.namespace.clone(),
            id.name.clone(),
            id.selector.clone(),
            self.following.cache.seen_version(),
        )
    }
}

impl Visit<'_> {
    /// The objects that a watch is about, once they are known. A kind that the member does not let us see is the fault of the
    /// templates that speak of it, and of no others.
    pub(super) async fn watch(
        &self,
        watched: Watched,
        all: &mut BTreeSet<Watched>,
    ) -> Result<Result<Arc<Cache>, Fault>, SendError> {
        let following = {
            let mut watches = self.lane.policies.watches.lock();
            let watch = watches
                .entry(watched.clone())
                .or_insert_with(|| self.start(&watched));
            watch.users.lock().insert(self.name.to_owned());
            watch.following.clone()
        };
        all.insert(watched);
        let cache = &following.cache;
        match known(&following).await {
            Ok(()) => Ok(Ok(cache.clone())),
            Err(SendError::Member(LinkError::Refused {
                code: 403, message, ..
            })) => Ok(Err(Fault {
                reason: "K8s error".to_owned(),
                message: format!(
                    "cluster {} does not show its {}: {message}",
                    self.cluster(),
                    cache.resource().plural
                ),
                may_pass: false,
            })),
            Err(error) => Err(error),
        }
    }

    fn start(&self, watched: &Watched) -> Watch {
        let users: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (lane, told): (Weak<Lane>, _) = (Arc::downgrade(self.lane), users.clone());
        let on_change = move |change: &crate::cache::Change| {
            let (Some(lane), false) = (lane.upgrade(), change.own) else {
                return;
            };
            for name in told.lock().iter() {
                lane.queue
                    .add_soon(Errand::Policy(name.clone()), OBSERVE, OBSERVE_AFTER);
            }
        };
        let Watched {
            resource,
            namespace,
            name,
            selector,
        } = watched;
        let following = if name.is_empty() {
            let selector = (!selector.is_empty()).then_some(selector.as_str());
            follow(self.link, resource, namespace, selector, on_change)
        } else {
            follow_named(self.link, resource, namespace, name, on_change)
        };
        Watch {
            following: Arc::new(following),
            users,
        }
    }

    /// Ends the watches that this policy does not need any more and nobody else does.
    pub(super) fn unwatch(&self, needed: &BTreeSet<Watched>) {
        self.lane.policies.watches.lock().retain(|id, watch| {
            let mut users = watch.users.lock();
            if !needed.contains(id) {
                users.remove(self.name);
            }
            !users.is_empty()
        });
    }
}

/// The objects of a watch, as they are judged.
pub(super) struct Known<'a>(pub(super) &'a Cache);

impl Objects for Known<'_> {
    fn find(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let cached = self.0.find(namespace, name)?;
        cached.parse().ok().map(Arc::new)
    }

    fn list(&self, namespace: &str) -> Vec<Arc<Value>> {
        let all = self.0.list_in(namespace);
        all.iter()
            .filter_map(|cached| cached.parse().ok().map(Arc::new))
            .collect()
    }
}
