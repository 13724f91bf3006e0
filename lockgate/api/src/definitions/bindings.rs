//! ResourceBinding and ClusterResourceBinding.

use serde_json::Value;

use super::crd::{Crd, annotation_path, column, condition_path};
use super::failover::failover;
use super::placement::placement;
use super::schema::{
    Schema, boolean, int32, int64, list, object, raw_object, string, string_map, strings, time, word,
};
use super::shared::{conditions, conflict_resolution, node_requirements, quantities, tolerations};
use super::suspension::suspension;
use crate::keys;

/// Group of bindings and Works.
pub(super) const GROUP: &str = "work.karmada.io";

/// The two bindings.
pub(super) fn crds() -> [Value; 2] {
    [true, false].map(|namespaced| {
        Crd {
            group: GROUP,
            version: "v1alpha2",
            kind: if namespaced {
                "ResourceBinding"
            } else {
                "ClusterResourceBinding"
            },
            plural: if namespaced {
                "resourcebindings"
            } else {
                "clusterresourcebindings"
            },
            short: Some(if namespaced { "rb" } else { "crb" }),
            namespaced,
            status: Some(status()),
            spec: spec().without_rules(),
            description: "What was activated for one template, and which clusters it goes to.",
            columns: vec![
                column("SCHEDULED", "string", &condition_path("Scheduled")),
                column("FULLYAPPLIED", "string", &condition_path("FullyApplied")),
                column("ROLLOUT", "string", ".status.rollout.phase"),
                column(
                    "POLICY-GENERATION",
                    "string",
                    &annotation_path(keys::ACTIVATED_GENERATION),
                ),
                column("AGE", "date", ".metadata.creationTimestamp"),
            ],
        }
        .build()
    })
}

fn spec() -> Schema {
    let resource = object(
        "The template.",
        [
            ("apiVersion", string("Its group and version.")),
            ("kind", string("Its kind.")),
            (
                "namespace",
                string("Its namespace; empty for objects without one."),
            ),
            ("name", string("Its name.")),
            ("uid", string("Its uid.")),
            (
                "resourceVersion",
                string("Its resource version when it was activated."),
            ),
        ],
    )
    .required(&["apiVersion", "kind", "name"]);
    let required_by = object(
        "A binding that needs this template.",
        [
            (
                "namespace",
                string("Its namespace; empty for bindings without one."),
            ),
            ("name", string("Its name.")),
            ("clusters", clusters("Where it goes.")),
        ],
    )
    .required(&["name"]);
    let groups = object(
        "The groups of workloads that the template belongs to, as key=value.",
        [
            ("affinityGroup", string("The group that it goes together with.")),
            ("antiAffinityGroup", string("The group that it goes apart from.")),
        ],
    );
    object(
        "What was activated, and where it goes.",
        [
            ("resource", resource),
            (
                "propagateDeps",
                boolean("Whether what the template refers to follows it."),
            ),
            (
                "replicaRequirements",
                requirements("What one replica needs.")
                    .with("namespace", string("The namespace whose quota counts."))
                    .with("priorityClassName", string("The priority class of the pods.")),
            ),
            ("replicas", int32("The replicas of the template.")),
            (
                "components",
                list(
                    "Parts of the template that have replicas of their own.",
                    component(),
                ),
            ),
            ("clusters", clusters("The clusters that it goes to.")),
            (
                "placement",
                placement("The placement that was activated.").with_any_texts(),
            ),
            ("schedulerName", string("Who places it.")),
            ("failover", failover()),
            ("conflictResolution", conflict_resolution()),
            (
                "preserveResourcesOnDeletion",
                boolean("Whether members keep the object when the template is deleted."),
            ),
            (
                "gracefulEvictionTasks",
                list("Clusters that it is leaving.", eviction()),
            ),
            (
                "requiredBy",
                list("Bindings that need this template as a dependency.", required_by),
            ),
            (
                "rescheduleTriggeredAt",
                time("When it was last asked to be placed anew."),
            ),
            (
                "suspension",
                suspension("What is held back.").with("scheduling", boolean("Whether it is not placed.")),
            ),
            (
                "schedulePriority",
                object(
                    "In which order templates are placed when many wait.",
                    [("priority", int32("The higher comes first."))],
                ),
            ),
            ("workloadAffinityGroups", groups),
        ],
    )
    .required(&["resource"])
}

fn clusters(description: &str) -> Schema {
    let cluster = object(
        "A cluster.",
        [
            ("name", string("Its name.")),
            ("replicas", int32("Its replicas; absent for what has none.")),
        ],
    )
    .required(&["name"]);
    list(description, cluster)
}

fn requirements(description: &str) -> Schema {
    let term = object(
        "Requirements; all of them.",
        [
            ("matchExpressions", node_requirements("By label.")),
            ("matchFields", node_requirements("By field.")),
        ],
    );
    let node_affinity = object(
        "Nodes that the pods may run on.",
        [("nodeSelectorTerms", list("Any of these.", term))],
    )
    .required(&["nodeSelectorTerms"]);
    let node_claim = object(
        "What the pods ask of nodes.",
        [
            ("hardNodeAffinity", node_affinity),
            ("nodeSelector", string_map("Labels that nodes must have.")),
            (
                "tolerations",
                tolerations(
                    "Taints of nodes that are tolerated.",
                    string("How the taint is compared."),
                ),
            ),
        ],
    );
    object(
        description,
        [
            ("nodeClaim", node_claim),
            (
                "resourceRequest",
                quantities("Resources that one replica asks for."),
            ),
        ],
    )
}

fn component() -> Schema {
    object(
        "A part of the template.",
        [
            ("name", string("Its name; unique.").max_length(32)),
            ("replicas", int32("Its replicas.")),
            (
                "replicaRequirements",
                requirements("What one replica needs.")
                    .with("priorityClassName", string("The priority class of the pods.")),
            ),
        ],
    )
    .required(&["name", "replicas"])
}

fn eviction() -> Schema {
    object(
        "A cluster that it is leaving.",
        [
            ("fromCluster", string("Which one.")),
            (
                "purgeMode",
                word(
                    "How it leaves the cluster.",
                    &["Directly", "Gracefully", "Never", "Immediately", "Graciously"],
                ),
            ),
            ("replicas", int32("How many replicas leave.")),
            (
                "reason",
                string("Why, in one word.")
                    .min_length(1)
                    .max_length(32)
                    .pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
            ),
            ("message", string("Why, in a sentence.").max_length(1024)),
            ("producer", string("Who decided it.")),
            ("gracePeriodSeconds", int32("How long it may stay at most.")),
            (
                "suppressDeletion",
                boolean("Whether it stays until somebody decides."),
            ),
            (
                "preservedLabelState",
                string_map("Labels that carry its state to the new cluster."),
            ),
            ("creationTimestamp", time("When it was decided.")),
            ("clustersBeforeFailover", strings("Where it was before.")),
        ],
    )
    .required(&["fromCluster", "producer", "reason"])
}

fn status() -> Schema {
    let item = object(
        "What one cluster reports.",
        [
            ("clusterName", string("Which cluster.")),
            ("status", raw_object("The status of the object there.")),
            ("applied", boolean("Whether the manifest was applied.")),
            ("appliedMessage", string("Why it was not.")),
            (
                "health",
                word("How the object is there.", &["Healthy", "Unhealthy", "Unknown"]),
            ),
        ],
    )
    .required(&["clusterName"]);
    object(
        "What became of it.",
        [
            (
                "schedulerObservedGeneration",
                int64("The generation that was placed."),
            ),
            (
                "schedulerObservingAffinityName",
                string("The group of clusters in use."),
            ),
            ("lastScheduledTime", time("When it was last placed.")),
            ("conditions", conditions("Scheduled and FullyApplied.")),
            (
                "aggregatedStatus",
                list("What each cluster reports, by name.", item),
            ),
            ("rollout", super::strategy::run()),
        ],
    )
}
