//! Fields that a write through some path never changes, whatever it says: nobody comes to own them by it.
//!
//! The status is not changed through the object, nor the spec through the status.

use crate::set::FieldSet;

/// What a way of writing takes no notice of: these fields and everything below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reset(pub FieldSet);

const STATUS: &[&[&str]] = &[&["status"]];
const SPEC: &[&[&str]] = &[&["spec"]];
const SPEC_AND_METADATA: &[&[&str]] = &[&["spec"], &["metadata"]];

impl Reset {
    /// For custom resources, whose status is apart if they have a status subresource.
    pub fn custom(has_status: bool, subresource: &str) -> Self {
        match subresource {
            "" if has_status => Self::fields(STATUS),
            "status" => Self::fields(SPEC),
            _ => Self::default(),
        }
    }

    /// For built-in kinds.
    pub fn built_in(group: &str, kind: &str, subresource: &str) -> Self {
        match (group, kind, subresource) {
            ("certificates.k8s.io", "CertificateSigningRequest", subresource) => match subresource {
                "" => Self::fields(&[&["spec"], &["status"]]),
                "status" => Self::fields(&[&["spec"], &["status", "conditions"]]),
                "approval" => Self::fields(&[&["spec"], &["status", "certificate"]]),
                _ => Self::default(),
            },
            ("", "Namespace", "finalize") => Self::fields(STATUS),
            (group, kind, "") if status_reset(group, kind).is_some() => Self::fields(STATUS),
            (group, kind, "status") => status_reset(group, kind).map_or(Self::default(), Self::fields),
            _ => Self::default(),
        }
    }

    fn fields(paths: &[&[&str]]) -> Self {
        Self(FieldSet::of_fields(paths))
    }

    /// The set without what is reset.
    pub(crate) fn filter(&self, set: FieldSet) -> FieldSet {
        if self.0.is_empty() {
            set
        } else {
            set.recursive_difference(&self.0)
        }
    }
}

/// What a write to the status resets, for the kinds whose status is apart.
fn status_reset(group: &str, kind: &str) -> Option<&'static [&'static [&'static str]]> {
    Some(match (group, kind) {
        ("", "Pod") => &[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
        ("apps", "Deployment") => &[&["spec"], &["metadata", "labels"]],
        (
            "",
            "Namespace"
            | "Node"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "ReplicationController"
            | "ResourceQuota"
            | "Service",
        )
        | ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("batch", "CronJob" | "Job")
        | ("networking.k8s.io", "Ingress")
        | ("policy", "PodDisruptionBudget") => SPEC,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("apiregistration.k8s.io", "APIService")
        | ("flowcontrol.apiserver.k8s.io", "FlowSchema" | "PriorityLevelConfiguration")
        | ("resource.k8s.io", "ResourceClaim")
        | ("storage.k8s.io", "VolumeAttachment") => SPEC_AND_METADATA,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(reset: &Reset, paths: &[&[&str]]) -> Vec<String> {
        let set = reset.filter(FieldSet::of_fields(paths));
        set.paths().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_reset_is_left_out() {
        let paths: &[&[&str]] = &[
            &["spec"],
            &["spec", "a"],
            &["status", "b"],
            &["metadata", "labels", "l"],
        ];
        let cases = [
            (Reset::built_in("", "ConfigMap", ""), 4),
            (Reset::built_in("apps", "Deployment", ""), 3),
            (Reset::built_in("apps", "Deployment", "status"), 1),
            (Reset::built_in("apps", "ReplicaSet", "status"), 2),
            (Reset::built_in("apps", "ReplicaSet", "scale"), 4),
            (
                Reset::built_in("certificates.k8s.io", "CertificateSigningRequest", ""),
                1,
            ),
            (Reset::custom(true, ""), 3),
            (Reset::custom(false, ""), 4),
            (Reset::custom(true, "status"), 2),
        ];
        for (reset, count) in cases {
            assert_eq!(left(&reset, paths).len(), count, "{reset:?}");
        }
    }
}
