//! WorkloadRebalancer and ClusterTaintPolicy.

use serde_json::Value;

use super::crd::{Crd, column};
use super::policies::{GROUP, VERSION};
use super::schema::{
    Schema, int32, int64, label_key, label_value, list, name, object, string, strings, time, word,
};
use super::shared::cluster_affinity;

/// Group of rebalancers.
pub(super) const APPS: &str = "apps.karmada.io";
/// The workloads of one rebalancer.
const MAX_WORKLOADS: usize = 4096;
/// Conditions and taints of one policy.
const MAX_ITEMS: usize = 64;

/// The definitions.
pub(super) fn crds() -> [Value; 2] {
    [
        Crd {
            group: APPS,
            version: "v1alpha1",
            kind: "WorkloadRebalancer",
            plural: "workloadrebalancers",
            short: None,
            namespaced: false,
            status: Some(rebalancer_status()),
            spec: rebalancer_spec(),
            description: "Workloads that are to be placed anew, once.",
            columns: vec![
                column("FINISHED", "date", ".status.finishTime"),
                column("AGE", "date", ".metadata.creationTimestamp"),
            ],
        }
        .build(),
        Crd {
            group: GROUP,
            version: VERSION,
            kind: "ClusterTaintPolicy",
            plural: "clustertaintpolicies",
            short: None,
            namespaced: false,
            status: None,
            spec: taint_policy_spec(),
            description: "Taints that follow from the conditions of clusters. It acts with the feature gate Failover.",
            columns: Vec::new(),
        }
        .build(),
    ]
}

fn workload(description: &str) -> Schema {
    object(
        description,
        [
            (
                "apiVersion",
                string("Its apiVersion.").min_length(1).max_length(317),
            ),
            ("kind", string("Its kind.").min_length(1).max_length(63)),
            (
                "namespace",
                name("Its namespace; empty for objects of the cluster."),
            ),
            ("name", name("Its name.").min_length(1)),
        ],
    )
    .required(&["apiVersion", "kind", "name"])
}

fn rebalancer_spec() -> Schema {
    object(
        "Which workloads.",
        [
            (
                "workloads",
                list("The workloads.", workload("A workload."))
                    .min_items(1)
                    .max_items(MAX_WORKLOADS),
            ),
            (
                "ttlSecondsAfterFinished",
                int32("How long it is kept once it is done; absent: for ever.").minimum(0),
            ),
        ],
    )
    .required(&["workloads"])
}

fn rebalancer_status() -> Schema {
    let observed = object(
        "What became of one workload.",
        [
            ("workload", workload("Which one.")),
            (
                "result",
                word(
                    "Whether it was asked to be placed anew; absent while that is under way.",
                    &["Successful", "Failed"],
                ),
            ),
            ("reason", string("Why it failed.")),
        ],
    )
    .required(&["workload"]);
    object(
        "What became of it.",
        [
            ("observedWorkloads", list("The workloads, sorted.", observed)),
            ("observedGeneration", int64("The generation that this speaks of.")),
            ("finishTime", time("When it was done.")),
        ],
    )
}

fn taint_policy_spec() -> Schema {
    let condition = object(
        "A condition of a cluster.",
        [
            ("conditionType", string("Its type.").min_length(1).max_length(316)),
            (
                "operator",
                word(
                    "Whether it must have one of the values, or none of them.",
                    &["In", "NotIn"],
                ),
            ),
            (
                "statusValues",
                strings("The values: True, False or Unknown.")
                    .min_items(1)
                    .max_items(3),
            ),
        ],
    )
    .required(&["conditionType", "operator", "statusValues"]);
    let taint = object(
        "A taint.",
        [
            ("key", label_key("Its key.").min_length(1)),
            ("value", label_value("Its value.")),
            (
                "effect",
                word(
                    "What it does to those that do not tolerate it.",
                    &["NoSchedule", "NoExecute"],
                ),
            ),
        ],
    )
    .required(&["effect", "key"]);
    object(
        "Which taints, when and where.",
        [
            ("targetClusters", cluster_affinity("Which clusters; absent: all.")),
            (
                "addOnConditions",
                list("The taints are added when all of these match.", condition.clone()).max_items(MAX_ITEMS),
            ),
            (
                "removeOnConditions",
                list("The taints are removed when all of these match.", condition).max_items(MAX_ITEMS),
            ),
            (
                "taints",
                list("The taints.", taint).min_items(1).max_items(MAX_ITEMS),
            ),
        ],
    )
    .required(&["taints"])
}
