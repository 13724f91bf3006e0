//! What the server fills in when a client leaves it out.
//!
//! Defaults are applied whenever an object is decoded: on create, on update and after a patch. Applying them twice
//! changes nothing. What is filled in only once, at creation, is in [`crate::strategy`].

use serde_json::Value;

use crate::access::Object;

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod core;
mod crd;
mod devices;
mod flows;
mod networking;
mod pod;
mod rbac;
mod service;
mod storage;
mod volume;

/// Fills in the defaults of one object. Unknown kinds are left alone.
pub fn apply(group: &str, version: &str, kind: &str, object: &mut Value) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    if let Some(fill) = filler(group, version, kind) {
        fill(object);
    }
}

fn filler(group: &str, version: &str, kind: &str) -> Option<fn(&mut Object)> {
    let fill: fn(&mut Object) = match (group, kind) {
        ("", "Pod") => pod::pod,
        ("", "PodTemplate") => pod::pod_template,
        ("", "ReplicationController") => core::replication_controller,
        ("", "Service") => service::service,
        ("", "Endpoints") => core::endpoints,
        ("", "Namespace") => core::namespace,
        ("", "Node") => core::node,
        ("", "Secret") => core::secret,
        ("", "LimitRange") => core::limit_range,
        ("", "ResourceQuota") => core::quota,
        ("", "Event") => core::event,
        ("events.k8s.io", "Event") => core::new_event,
        ("policy", "PodDisruptionBudget") => core::budget,
        ("coordination.k8s.io", "Lease") => core::lease,
        ("", "PersistentVolume") => volume::persistent_volume,
        ("", "PersistentVolumeClaim") => volume::claim,
        ("apps", "Deployment") => apps::deployment,
        ("apps", "StatefulSet") => apps::stateful_set,
        ("apps", "DaemonSet") => apps::daemon_set,
        ("apps", "ReplicaSet") => apps::replica_set,
        ("batch", "Job") => batch::job,
        ("batch", "CronJob") => batch::cron_job,
        ("autoscaling", "HorizontalPodAutoscaler") if version == "v1" => autoscaling::autoscaler_v1,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::autoscaler_v2,
        ("networking.k8s.io", "Ingress") => networking::ingress,
        ("networking.k8s.io", "NetworkPolicy") => networking::network_policy,
        ("networking.k8s.io", "IngressClass") => networking::ingress_class,
        ("discovery.k8s.io", "EndpointSlice") => networking::endpoint_slice,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => rbac::binding,
        ("storage.k8s.io", "StorageClass") => storage::storage_class,
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver,
        ("storage.k8s.io", "VolumeAttachment") => storage::volume_attachment,
        ("scheduling.k8s.io", "PriorityClass") => storage::priority_class,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => admission::validating_webhooks,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => admission::mutating_webhooks,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
            admission::policy
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => admission::policy_binding,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::definition,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flows::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => flows::priority_level,
        ("resource.k8s.io", "ResourceClaim") => devices::claim,
        ("resource.k8s.io", "ResourceClaimTemplate") => devices::claim_template,
        ("resource.k8s.io", "ResourceSlice") => devices::slice,
        ("certificates.k8s.io", "CertificateSigningRequest") => devices::signing_request,
        ("authentication.k8s.io", "TokenRequest") => core::token_request,
        _ => return None,
    };
    Some(fill)
}
