//! How far the control plane is: what it has seen, and what is left to do.

use super::Hub;
use crate::resource::Resource;
use crate::template::priority::Classes;

impl Hub {
    /// Whether everything that was seen was acted on, as far as it can be.
    pub fn idle(&self) -> bool {
        self.busy().is_none()
    }

    /// The first of what has still something to do, by name.
    pub fn busy(&self) -> Option<&'static str> {
        let state = &self.state;
        let followed = || {
            let classes = state.priority_classes.get().map(Classes::cache);
            let mut all = self.followed.iter().map(|one| &one.cache).chain(classes);
            all.all(|cache| cache.synced() && cache.trouble().is_none())
        };
        // Who gives others something to do is asked before them.
        let parts: [(&'static str, &dyn Fn() -> bool); 14] = [
            ("clusters", &|| self.clusters.idle()),
            ("fleet", &|| state.fleet_changes.is_idle()),
            ("overrides and rollout policies", &|| state.vanished.is_idle()),
            ("chores", &|| state.chores.is_idle()),
            ("kinds", &|| state.kinds.is_settled()),
            ("placements and policies of OCM", &|| state.ocm.is_idle()),
            ("namespaces", &|| state.namespaces.is_idle()),
            ("priority classes", &|| state.unranked.lock().is_empty()),
            ("templates", &|| {
                state.templates.is_idle() && !state.templates.has_due()
            }),
            ("members", &|| state.members.is_idle()),
            ("tellings", &|| state.tellings.is_idle()),
            ("reports", &|| state.reports.is_idle()),
            ("policies", &|| state.tally.queue.is_idle()),
            // What the hub serves of ours may be gone for a moment: somebody deleted a definition.
            ("watches", &followed),
        ];
        let busy = parts.iter().find(|(_, is_idle)| !is_idle());
        busy.map(|(name, _)| *name)
    }

    /// Returns when all events that were handed in are sent or given up.
    pub async fn told(&self) {
        self.state.events.drained().await;
    }

    /// Up to which resource version the objects of a resource of the hub were seen; `None` if it is not followed.
    pub fn seen(&self, resource: &Resource) -> Option<u64> {
        let caches = self.followed.iter().map(|following| &following.cache);
        let own = caches
            .chain([self.clusters.cache()])
            .chain(self.state.priority_classes.get().map(Classes::cache))
            .find(|cache| cache.resource() == resource);
        if let Some(cache) = own {
            return Some(cache.seen_version());
        }
        let kinds = self.state.kinds.all();
        let (_, kind) = kinds.iter().find(|((api_version, kind), _)| {
            *api_version == resource.api_version() && *kind == resource.kind
        })?;
        Some(kind.cache.seen_version())
    }

    /// Up to which resource version the objects of a kind of a member were seen; `None` if it is not followed.
    pub fn seen_on(&self, cluster: &str, api_version: &str, kind: &str) -> Option<u64> {
        self.state.members.lane(cluster)?.objects.seen(api_version, kind)
    }

    /// Up to which resource version all Nodes or Pods of a member were seen; `None` if nobody asks what it has room for.
    pub fn seen_capacity(&self, cluster: &str, kind: &str) -> Option<u64> {
        self.clusters.seen_capacity(cluster, kind)
    }

    /// What the policies of a member watch there: resource, namespace, name and label selector, each empty for all; and up to
    /// which resource version it was seen.
    pub fn seen_by_policies(&self, cluster: &str) -> Vec<(Resource, String, String, String, u64)> {
        let lane = self.state.members.lane(cluster);
        lane.map(|lane| lane.policies.seen()).unwrap_or_default()
    }

    /// What of the hub is watched for clusters beside them, as [`Hub::seen_by_policies`] tells it of members.
    pub fn seen_for_clusters(&self) -> Vec<(Resource, String, String, String, u64)> {
        let beside = self.clusters.seen_beside().into_iter();
        beside
            .map(|(resource, namespace, selector, seen)| {
                (resource, namespace.to_owned(), String::new(), selector, seen)
            })
            .collect()
    }

    /// What is not done yet, in words; for people who wait.
    pub fn busy_with(&self) -> String {
        let state = &self.state;
        format!(
            "{}; templates {}, reports {}, tellings {}, policies {}, namespaces {}, chores {}, placements {}, works {}, clusters {}, kinds {}",
            self.busy().unwrap_or("nothing is left to do"),
            state.templates.depth(),
            state.reports.depth(),
            state.tellings.depth(),
            state.tally.queue.depth(),
            state.namespaces.depth(),
            state.chores.depth(),
            state.ocm.depth(),
            state.members.depth(),
            if self.clusters.idle() { "idle" } else { "busy" },
            if state.kinds.is_settled() {
                "settled"
            } else {
                "unsettled"
            },
        )
    }
}
