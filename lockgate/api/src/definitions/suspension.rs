//! What is held back. Policies accept two spellings of each field; bindings carry the first.

use super::schema::{Schema, boolean, object, rule, strings};

/// Clusters by name.
fn cluster_list(description: &str) -> Schema {
    object(description, [("clusterNames", strings("Names of clusters."))])
}

/// What is held back, in the spelling that policies and bindings share.
pub(super) fn suspension(description: &str) -> Schema {
    object(
        description,
        [
            (
                "dispatching",
                boolean("Whether nothing is sent to any cluster; excludes a list of clusters."),
            ),
            (
                "dispatchingOnClusters",
                cluster_list("Clusters to which nothing is sent."),
            ),
        ],
    )
}

/// What is held back, in both spellings.
pub(super) fn policy_suspension() -> Schema {
    suspension("What is held back. Members keep what they have.")
        .with("suspendDispatching", boolean("Another spelling of dispatching."))
        .with(
            "suspendDispatchingOnClusters",
            cluster_list("Another spelling of dispatchingOnClusters."),
        )
        .rule(
            rule(
                "!(has(self.dispatching) && has(self.suspendDispatching))",
                "suspendDispatching and dispatching are two spellings of one field: give one of them",
            )
            .at(".suspendDispatching")
            .forbidden(),
        )
        .rule(
            rule(
                "!(has(self.dispatchingOnClusters) && has(self.suspendDispatchingOnClusters))",
                "suspendDispatchingOnClusters and dispatchingOnClusters are two spellings of one field: give one of them",
            )
            .at(".suspendDispatchingOnClusters")
            .forbidden(),
        )
        .rule(rule(
            concat!(
                "!((has(self.dispatching) && self.dispatching) || (has(self.suspendDispatching) && self.suspendDispatching)) || ",
                "!((has(self.dispatchingOnClusters) && has(self.dispatchingOnClusters.clusterNames) && ",
                "size(self.dispatchingOnClusters.clusterNames) > 0) || ",
                "(has(self.suspendDispatchingOnClusters) && has(self.suspendDispatchingOnClusters.clusterNames) && ",
                "size(self.suspendDispatchingOnClusters.clusterNames) > 0))",
            ),
            "dispatching: true holds everything back and excludes dispatchingOnClusters.clusterNames",
        ))
}
