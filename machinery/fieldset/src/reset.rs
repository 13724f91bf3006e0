//! Fields that a write through some path never changes, whatever it says: nobody comes to own them by it.
//!
//! The status is not changed through the object, nor the spec through the status.

use crate::path::PathElement;
use crate::set::FieldSet;

/// What a way of writing takes no notice of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Nothing.
    #[default]
    Nothing,
    /// These fields and everything below them.
    Fields(FieldSet),
    /// Everything but what is at or below these places.
    AllBut(&'static [&'static [&'static str]]),
}

/// Any element, in [`Reset::AllBut`].
const ANY: &str = "*";

const STATUS: &[&[&str]] = &[&["status"]];
const SPEC: &[&[&str]] = &[&["spec"]];
const SPEC_AND_METADATA: &[&[&str]] = &[&["spec"], &["metadata"]];

impl Reset {
    /// For custom resources, whose status is apart if they have a status subresource.
    pub fn custom(has_status: bool, subresource: &str) -> Self {
        match subresource {
            "" if has_status => Self::fields(STATUS),
            "status" => Self::fields(SPEC),
            _ => Self::Nothing,
        }
    }

    /// For built-in kinds.
    pub fn built_in(group: &str, kind: &str, subresource: &str) -> Self {
        match (group, kind, subresource) {
            ("certificates.k8s.io", "CertificateSigningRequest", subresource) => match subresource {
                "" => Self::fields(&[&["spec"], &["status"]]),
                "status" => Self::fields(&[&["spec"], &["status", "conditions"]]),
                "approval" => Self::fields(&[&["spec"], &["status", "certificate"]]),
                _ => Self::Nothing,
            },
            ("", "Pod", "ephemeralcontainers") => Self::AllBut(&[&["spec", "ephemeralContainers"]]),
            ("", "Pod", "resize") => Self::AllBut(&[
                &["spec", "containers", ANY, "resources"],
                &["spec", "containers", ANY, "resizePolicy"],
                &["spec", "initContainers", ANY, "resources"],
                &["spec", "initContainers", ANY, "resizePolicy"],
            ]),
            ("", "Namespace", "finalize") => Self::fields(STATUS),
            (group, kind, "") if status_reset(group, kind).is_some() => Self::fields(STATUS),
            (group, kind, "status") => status_reset(group, kind).map_or(Self::Nothing, Self::fields),
            _ => Self::Nothing,
        }
    }

    fn fields(paths: &[&[&str]]) -> Self {
        Self::Fields(FieldSet::of_fields(paths))
    }

    /// The set without what is reset.
    pub(crate) fn filter(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Nothing => set,
            Self::Fields(fields) => set.recursive_difference(fields),
            Self::AllBut(places) => keep(&set, places),
        }
    }
}

/// What is at or below one of the places, and on the way there.
fn keep(set: &FieldSet, places: &[&[&str]]) -> FieldSet {
    let mut out = FieldSet::new();
    for node in set.nodes() {
        let rest: Vec<&[&str]> = places
            .iter()
            .filter_map(|place| {
                let (first, rest) = place.split_first()?;
                let fits = *first == ANY || node.element == PathElement::field(first);
                fits.then_some(rest)
            })
            .collect();
        if rest.iter().any(|rest| rest.is_empty()) {
            out.push(node.element.clone(), node.member, node.below.clone());
        } else if !rest.is_empty() {
            out.push(node.element.clone(), node.member, keep(&node.below, &rest));
        }
    }
    out
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

    #[test]
    fn only_what_is_named_is_kept() {
        let paths: &[&[&str]] = &[
            &["spec"],
            &["spec", "containers", "c"],
            &["spec", "containers", "c", "image"],
            &["spec", "containers", "c", "resources", "limits"],
            &["metadata", "labels"],
        ];
        assert_eq!(
            left(&Reset::built_in("", "Pod", "resize"), paths),
            [
                ".spec",
                ".spec.containers.c",
                ".spec.containers.c.resources.limits"
            ]
        );
    }
}
