//! PropagationPolicy and ClusterPropagationPolicy.

use serde_json::{Value, json};

use super::crd::{Crd, column};
use super::failover::failover;
use super::placement::placement;
use super::schema::{Schema, boolean, int32, int64, list, name, object, rule, string, strings, time, word};
use super::shared::{conditions, conflict_resolution, resource_selectors};
use super::suspension::policy_suspension;

/// Group of the policies.
pub(super) const GROUP: &str = "policy.karmada.io";
/// Version of the policies.
pub(super) const VERSION: &str = "v1alpha1";

/// Kinds that every server has in namespaces, as `group/Kind`. The scope of others only discovery knows.
const NAMESPACED: [&str; 31] = [
    "/ConfigMap",
    "/Endpoints",
    "/Event",
    "/LimitRange",
    "/PersistentVolumeClaim",
    "/Pod",
    "/PodTemplate",
    "/ReplicationController",
    "/ResourceQuota",
    "/Secret",
    "/Service",
    "/ServiceAccount",
    "apps/ControllerRevision",
    "apps/DaemonSet",
    "apps/Deployment",
    "apps/ReplicaSet",
    "apps/StatefulSet",
    "autoscaling/HorizontalPodAutoscaler",
    "batch/CronJob",
    "batch/Job",
    "coordination.k8s.io/Lease",
    "discovery.k8s.io/EndpointSlice",
    "events.k8s.io/Event",
    "networking.k8s.io/Ingress",
    "networking.k8s.io/NetworkPolicy",
    "policy/PodDisruptionBudget",
    "rbac.authorization.k8s.io/Role",
    "rbac.authorization.k8s.io/RoleBinding",
    "resource.k8s.io/ResourceClaim",
    "resource.k8s.io/ResourceClaimTemplate",
    "storage.k8s.io/CSIStorageCapacity",
];

/// The two policies.
pub(super) fn crds() -> [Value; 2] {
    [true, false].map(|namespaced| {
        Crd {
            group: GROUP,
            version: VERSION,
            kind: if namespaced {
                "PropagationPolicy"
            } else {
                "ClusterPropagationPolicy"
            },
            plural: if namespaced {
                "propagationpolicies"
            } else {
                "clusterpropagationpolicies"
            },
            short: Some(if namespaced { "pp" } else { "cpp" }),
            namespaced,
            status: Some(status()),
            spec: spec(namespaced),
            description: if namespaced {
                "Which objects of its namespace go to which clusters."
            } else {
                "Which objects of the whole hub go to which clusters."
            },
            columns: vec![
                column("CONFLICT-RESOLUTION", "string", ".spec.conflictResolution"),
                column("PRIORITY", "string", ".spec.priority"),
                column("CLAIMED", "integer", ".status.claimed"),
                column("UP-TO-DATE", "integer", ".status.upToDate"),
                column("PENDING", "integer", ".status.pending"),
                column("FAILING", "integer", ".status.failing"),
                column("AGE", "date", ".metadata.creationTimestamp"),
            ],
        }
        .build()
    })
}

fn spec(namespaced: bool) -> Schema {
    let schedule_priority = object(
        "In which order templates are placed when many wait.",
        [
            (
                "priorityClassSource",
                word(
                    "Where the priority comes from: a PriorityClass of the hub.",
                    &["KubePriorityClass"],
                ),
            ),
            ("priorityClassName", string("The name of the class.")),
        ],
    )
    .required(&["priorityClassSource", "priorityClassName"]);
    let spec = object(
        "What goes where.",
        [
            (
                "resourceSelectors",
                resource_selectors("Which objects; any of the selectors.").min_items(1),
            ),
            ("association", boolean("Has no meaning any more.")),
            (
                "propagateDeps",
                boolean("Whether the objects that a template refers to follow it."),
            ),
            ("placement", placement("Which clusters, and how replicas are given out.")),
            (
                "priority",
                int32("The policy with the highest priority owns a template.").default(0),
            ),
            (
                "preemption",
                word(
                    "Whether it takes templates from policies of lower priority.",
                    &["Always", "Never"],
                )
                .default("Never"),
            ),
            (
                "dependentOverrides",
                strings("Override policies that must exist before anything is sent."),
            ),
            (
                "schedulerName",
                name("Who places the templates; cannot be changed.")
                    .default("default-scheduler")
                    .rule(
                        rule("self == oldSelf", "schedulerName cannot be changed").forbidden(),
                    ),
            ),
            ("failover", failover()),
            ("conflictResolution", conflict_resolution()),
            (
                "activationPreference",
                word(
                    "Lazy: changes of this policy reach a template when the template itself is changed. Absent: at once.",
                    &["Lazy"],
                ),
            ),
            ("suspension", policy_suspension()),
            (
                "preserveResourcesOnDeletion",
                boolean("Whether members keep an object whose template is deleted."),
            ),
            ("schedulePriority", schedule_priority),
        ],
    )
    .required(&["resourceSelectors"])
    .rule(
        rule(
            "self.preemption != 'Always' || self.resourceSelectors.all(s, has(s.name) && s.name != '')",
            "resourceSelectors[].name must be given when preemption is Always",
        )
        .at(".resourceSelectors")
        .required(),
    )
    .rule(
        rule(
            concat!(
                "!has(self.failover) || !has(self.failover.application) || ",
                "(has(self.propagateDeps) && self.propagateDeps)",
            ),
            "propagateDeps must be true when failover.application is given",
        )
        .at(".propagateDeps")
        .required(),
    );
    if namespaced {
        spec
    } else {
        spec.rule(namespaces_of_preemption())
    }
}

/// A preemption says whose templates it takes. (`namespace` is a word of the language and written as `__namespace__`.)
fn namespaces_of_preemption() -> super::schema::Rule {
    let kinds = json!(NAMESPACED);
    rule(
        format!(
            "self.preemption != 'Always' || self.resourceSelectors.all(s, (has(s.__namespace__) && s.__namespace__ != '') || \
             !(((s.apiVersion.contains('/') ? s.apiVersion.split('/')[0] : '') + '/' + s.kind) in {kinds}))"
        ),
        "resourceSelectors[].namespace must be given for namespaced kinds when preemption is Always",
    )
    .at(".resourceSelectors")
    .required()
}

fn status() -> Schema {
    object(
        "What became of it.",
        [
            ("observedGeneration", int64("The generation that this speaks of.")),
            ("claimed", int64("How many templates it owns.")),
            ("upToDate", int64("How many of them are as it says.")),
            ("pending", int64("How many of them wait.")),
            (
                "failing",
                int64("How many of them could not be applied somewhere."),
            ),
            (
                "pendingTemplates",
                list("The first of those that wait.", string("A template.")),
            ),
            (
                "selectorsSince",
                time("Since when its selectors are what they are."),
            ),
            (
                "selectorsVersion",
                string("The policy's resourceVersion when its selectors became what they are."),
            ),
            (
                "selectorsHash",
                string("The hash of the selectors that are meant."),
            ),
            ("conditions", conditions("What else is to be said.")),
        ],
    )
}
