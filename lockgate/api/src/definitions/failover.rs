//! What happens when a cluster or an application fails.

use super::schema::{Schema, int32, label_key, list, object, rule, string, word};

/// How the state of an application is carried over.
fn state_preservation() -> Schema {
    let preserved = object(
        "One value that is carried over.",
        [
            (
                "aliasLabelName",
                label_key("The label that carries the value to the new cluster."),
            ),
            (
                "jsonPath",
                string("Where the value is in the status of the object."),
            ),
        ],
    )
    .required(&["aliasLabelName", "jsonPath"]);
    object(
        "What is carried over to the new cluster.",
        [("rules", list("The values that are carried over.", preserved))],
    )
    .required(&["rules"])
}

/// What happens when a cluster or an application fails.
pub(super) fn failover() -> Schema {
    const GRACEFUL: &str = "['Gracefully', 'Graciously']";
    let conditions = object(
        "When the application counts as failed.",
        [(
            "tolerationSeconds",
            int32("For how long it may be unhealthy.").default(300).minimum(0),
        )],
    );
    let application = object(
        "What happens when the application fails on a cluster; absent: nothing.",
        [
            ("decisionConditions", conditions),
            (
                "purgeMode",
                word(
                    "How it leaves the cluster: at once, when it runs elsewhere, or never.",
                    &["Directly", "Gracefully", "Never", "Immediately", "Graciously"],
                )
                .default("Gracefully"),
            ),
            (
                "gracePeriodSeconds",
                int32("With a graceful purge: how long it may stay at most; absent: 600.").minimum(1),
            ),
            ("statePreservation", state_preservation()),
        ],
    )
    .required(&["decisionConditions"])
    .rule(
        rule(
            format!("!has(self.gracePeriodSeconds) || self.purgeMode in {GRACEFUL}"),
            "gracePeriodSeconds needs the purgeMode Gracefully",
        )
        .at(".gracePeriodSeconds")
        .forbidden(),
    );
    let cluster = object(
        "What happens when a cluster fails.",
        [
            (
                "purgeMode",
                word(
                    "How the application leaves the cluster: at once, or when it runs elsewhere.",
                    &["Directly", "Gracefully"],
                )
                .default("Gracefully"),
            ),
            ("statePreservation", state_preservation()),
        ],
    );
    object(
        "What happens when a cluster or an application fails.",
        [("application", application), ("cluster", cluster)],
    )
}
