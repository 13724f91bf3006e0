//! RolloutPolicy and ClusterRolloutPolicy.

use serde_json::Value;

use super::crd::{Crd, column};
use super::policies::{GROUP, VERSION};
use super::schema::{Schema, int64, object, string};
use super::shared::{conditions, resource_selectors};
use super::suspension::policy_suspension;

/// The longest reason of a suspension.
const REASON_LENGTH: usize = 1024;

/// The two rollout policies.
pub(super) fn crds() -> [Value; 2] {
    [true, false].map(|namespaced| {
        Crd {
            group: GROUP,
            version: VERSION,
            kind: if namespaced {
                "RolloutPolicy"
            } else {
                "ClusterRolloutPolicy"
            },
            plural: if namespaced {
                "rolloutpolicies"
            } else {
                "clusterrolloutpolicies"
            },
            short: Some(if namespaced { "rop" } else { "crop" }),
            namespaced,
            status: Some(status()),
            spec: spec(),
            description: if namespaced {
                "How changes of objects of its namespace reach their clusters."
            } else {
                "How changes of objects of the whole hub reach their clusters."
            },
            columns: vec![
                column("SUSPENDED", "string", ".status.suspended"),
                column("REASON", "string", ".spec.suspension.reason"),
                column("AGE", "date", ".metadata.creationTimestamp"),
            ],
        }
        .build()
    })
}

fn spec() -> Schema {
    let reason = string("Why, for people: it is shown wherever the suspension is.").max_length(REASON_LENGTH);
    object(
        "What is held back, of which objects. What several policies hold back adds up.",
        [
            (
                "resourceSelectors",
                resource_selectors("Which objects; any of the selectors.").min_items(1),
            ),
            ("suspension", policy_suspension().with("reason", reason)),
        ],
    )
    .required(&["resourceSelectors"])
}

fn status() -> Schema {
    object(
        "What became of it. Nothing follows from it.",
        [
            ("observedGeneration", int64("The generation that this speaks of.")),
            (
                "suspended",
                string("Where it holds back: all clusters, or their names."),
            ),
            (
                "conditions",
                conditions("ClustersKnown: whether the hub has the clusters that it names."),
            ),
        ],
    )
}
