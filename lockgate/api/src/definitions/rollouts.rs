//! RolloutPolicy and ClusterRolloutPolicy.

use serde_json::Value;

use super::crd::{Crd, column};
use super::policies::{GROUP, VERSION};
use super::schema::{Schema, int64, list, object, rule, string, word};
use super::shared::{conditions, resource_selectors};
use super::strategy::{run_summary, strategy};
use super::suspension::policy_suspension;
use crate::rollout_policy::{BREAK_BEFORE_MAKE, MAKE_BEFORE_BREAK, PAUSE, ROLLBACK};

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
            spec: spec(namespaced),
            description: if namespaced {
                "How changes of objects of its namespace reach their clusters."
            } else {
                "How changes of objects of the whole hub reach their clusters."
            },
            columns: vec![
                column("STRATEGY", "string", ".spec.strategy.type"),
                column("ROLLOUTS", "string", ".status.summary"),
                column("SUSPENDED", "string", ".status.suspended"),
                column("REASON", "string", ".spec.suspension.reason"),
                column("AGE", "date", ".metadata.creationTimestamp"),
            ],
        }
        .build()
    })
}

fn spec(namespaced: bool) -> Schema {
    let reason = string("Why, for people: it is shown wherever the suspension is.").max_length(REASON_LENGTH);
    object(
        "How changes of which objects reach their clusters. What several policies hold back adds up; of strategies the best match counts.",
        [
            (
                "resourceSelectors",
                resource_selectors("Which objects; any of the selectors.").min_items(1),
            ),
            ("suspension", policy_suspension().with("reason", reason)),
            ("strategy", strategy(namespaced)),
            (
                "moves",
                word(
                    "Whether new copies come before old ones go, which is the default, or the other way round.",
                    &[MAKE_BEFORE_BREAK, BREAK_BEFORE_MAKE],
                ),
            ),
            (
                "onFailure",
                word(
                    "What happens when too many clusters fail: nothing more starts, which is the default, or all go back.",
                    &[PAUSE, ROLLBACK],
                ),
            ),
        ],
    )
    .required(&["resourceSelectors"])
    .rule(
        rule(
            "!has(self.onFailure) || has(self.strategy)",
            "onFailure has no meaning without a strategy",
        )
        .at(".onFailure"),
    )
    .rule(
        rule(
            "!has(self.moves) || has(self.strategy)",
            "moves has no meaning without a strategy",
        )
        .at(".moves"),
    )
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
                "summary",
                string("How its templates stand: 2 Progressing, 40 Succeeded."),
            ),
            ("templates", int64("How many templates follow its strategy.")),
            (
                "runs",
                list(
                    "The templates that are not done, as far as they fit.",
                    run_summary(),
                ),
            ),
            (
                "conditions",
                conditions(
                    "ClustersKnown: whether the hub has the clusters that it names. Shadowed: whether other policies decide for some of its templates. StrategyValid: whether its strategy can be followed.",
                ),
            ),
        ],
    )
}
