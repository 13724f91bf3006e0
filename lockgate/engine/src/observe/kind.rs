//! The kinds that have rules of their own, of whatever version.

use serde_json::Value;

use crate::object::text;

/// A kind with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Deployment,
    StatefulSet,
    ReplicaSet,
    DaemonSet,
    Job,
    CronJob,
    Pod,
    Service,
    Ingress,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    HorizontalPodAutoscaler,
    /// Any other.
    Other,
}

impl Kind {
    /// The kind of an object.
    pub(super) fn of(object: &Value) -> Self {
        let group = text(object, "apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group);
        Self::named(group, text(object, "kind"))
    }

    /// The kind of this name.
    pub(super) fn named(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("apps", "Deployment") => Self::Deployment,
            ("apps", "StatefulSet") => Self::StatefulSet,
            ("apps", "ReplicaSet") => Self::ReplicaSet,
            ("apps", "DaemonSet") => Self::DaemonSet,
            ("batch", "Job") => Self::Job,
            ("batch", "CronJob") => Self::CronJob,
            ("", "Pod") => Self::Pod,
            ("", "Service") => Self::Service,
            ("networking.k8s.io", "Ingress") => Self::Ingress,
            ("", "PersistentVolume") => Self::PersistentVolume,
            ("", "PersistentVolumeClaim") => Self::PersistentVolumeClaim,
            ("policy", "PodDisruptionBudget") => Self::PodDisruptionBudget,
            ("autoscaling", "HorizontalPodAutoscaler") => Self::HorizontalPodAutoscaler,
            _ => Self::Other,
        }
    }
}
