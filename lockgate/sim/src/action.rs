//! What a decision asks for, and the names of the things it is about.

use jiff::Timestamp;
use serde_json::Value;

/// Something to do. Decisions return these; only the runner does them.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this object.
    Create(Value),
    /// Replace this object, its status apart, if it has not changed since it was read.
    Update(Value),
    /// Replace the status of this object, if it has not changed since it was read.
    UpdateStatus(Value),
    /// Put a Pod on a node.
    Bind {
        /// The Pod.
        pod: Key,
        /// The node's name.
        node: String,
    },
    /// Delete the object that has this uid.
    Delete {
        /// The object.
        key: Key,
        /// Its uid: another object with the same name stays.
        uid: String,
    },
    /// Decide again at this time, even if nothing changes.
    WakeAt(Timestamp),
}

/// The kinds that are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A machine.
    Node,
    /// Containers that run together on a node.
    Pod,
    /// Pods that are all alike.
    ReplicaSet,
    /// Replica sets that follow each other.
    Deployment,
    /// Pods with names of their own.
    StatefulSet,
    /// A pod on each node.
    DaemonSet,
    /// Pods that run to their end.
    Job,
    /// A name for pods.
    Service,
    /// The addresses behind a service.
    Endpoints,
    /// The addresses behind a service, in pieces.
    EndpointSlice,
    /// A way in from outside.
    Ingress,
    /// A wish for storage.
    Claim,
    /// Storage.
    Volume,
    /// How many of some Pods may go.
    Budget,
}

/// Every kind with its apiVersion, its name and its plural.
const KINDS: &[(Kind, &str, &str, &str)] = &[
    (Kind::Node, "v1", "Node", "nodes"),
    (Kind::Pod, "v1", "Pod", "pods"),
    (Kind::ReplicaSet, "apps/v1", "ReplicaSet", "replicasets"),
    (Kind::Deployment, "apps/v1", "Deployment", "deployments"),
    (Kind::StatefulSet, "apps/v1", "StatefulSet", "statefulsets"),
    (Kind::DaemonSet, "apps/v1", "DaemonSet", "daemonsets"),
    (Kind::Job, "batch/v1", "Job", "jobs"),
    (Kind::Service, "v1", "Service", "services"),
    (Kind::Endpoints, "v1", "Endpoints", "endpoints"),
    (
        Kind::EndpointSlice,
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
    ),
    (Kind::Ingress, "networking.k8s.io/v1", "Ingress", "ingresses"),
    (
        Kind::Claim,
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
    ),
    (Kind::Volume, "v1", "PersistentVolume", "persistentvolumes"),
    (
        Kind::Budget,
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
    ),
];

impl Kind {
    fn row(self) -> &'static (Kind, &'static str, &'static str, &'static str) {
        KINDS.iter().find(|row| row.0 == self).unwrap_or(&KINDS[0])
    }

    /// The kind with this apiVersion and name.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|row| row.1 == api_version && row.2 == kind)
            .map(|row| row.0)
    }

    /// The kind with this group and plural.
    pub fn of_plural(group: &str, plural: &str) -> Option<Self> {
        let group_of =
            |row: &(Kind, &'static str, _, _)| row.1.split_once('/').map_or("", |(group, _)| group);
        KINDS
            .iter()
            .find(|row| row.3 == plural && group_of(row) == group)
            .map(|row| row.0)
    }

    /// The apiVersion.
    pub fn api_version(self) -> &'static str {
        self.row().1
    }

    /// The plural, as in paths.
    pub fn plural(self) -> &'static str {
        self.row().3
    }
}

/// The name of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for what lives in none.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl Key {
    /// The name of an object.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_by_its_plural() {
        for (kind, api_version, name, plural) in KINDS {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            assert_eq!(Kind::of(api_version, name), Some(*kind));
            assert_eq!(Kind::of_plural(group, plural), Some(*kind));
            assert_eq!((kind.api_version(), kind.plural()), (*api_version, *plural));
        }
        assert_eq!(Kind::of_plural("", "deployments"), None);
    }
}
