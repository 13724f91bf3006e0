//! Parts that several kinds share.

use super::schema::{
    Rule, Schema, any, boolean, int32, int64, label_key, label_value, list, map, name, object, quantity,
    rule, string, string_map, strings, time, word,
};

/// The longest apiVersion: a group of up to 253 characters, a slash, a version of up to 63.
const API_VERSION_LENGTH: usize = 317;
/// The longest kind.
const KIND_LENGTH: usize = 63;
/// Requirements in one selector.
const MAX_REQUIREMENTS: usize = 64;

/// Requirements on labels that do not contradict their operator.
fn requirement_rules() -> [Rule; 2] {
    [
        rule(
            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
            "values must not be empty for the operators In and NotIn",
        )
        .at(".values")
        .required(),
        rule(
            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
            "values must be empty for the operators Exists and DoesNotExist",
        )
        .at(".values")
        .forbidden(),
    ]
}

/// A label selector, as everywhere in Kubernetes.
pub(super) fn label_selector(description: &str) -> Schema {
    let [needs, refuses] = requirement_rules();
    let requirement = object(
        "One requirement.",
        [
            ("key", label_key("The label.")),
            (
                "operator",
                word(
                    "How the label is compared.",
                    &["In", "NotIn", "Exists", "DoesNotExist"],
                ),
            ),
            (
                "values",
                strings("The values, for the operators In and NotIn only."),
            ),
        ],
    )
    .required(&["key", "operator"])
    .rule(needs)
    .rule(refuses);
    object(
        description,
        [
            (
                "matchLabels",
                string_map("Labels with exactly these values; all of them."),
            ),
            (
                "matchExpressions",
                list("Requirements; all of them.", requirement).max_items(MAX_REQUIREMENTS),
            ),
        ],
    )
    .set("x-kubernetes-map-type", "atomic")
}

/// A set of clusters.
pub(super) fn cluster_affinity(description: &str) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            (
                "key",
                word("The field of the cluster.", &["provider", "region", "zone"]),
            ),
            ("operator", word("How it is compared.", &["In", "NotIn"])),
            ("values", strings("The values.").min_items(1)),
        ],
    )
    .required(&["key", "operator", "values"]);
    let field_selector = object(
        "Clusters by provider, region or zone.",
        [(
            "matchExpressions",
            list("Requirements; all of them.", requirement).max_items(MAX_REQUIREMENTS),
        )],
    );
    object(
        description,
        [
            ("labelSelector", label_selector("Clusters by their labels.")),
            ("fieldSelector", field_selector),
            ("clusterNames", strings("Clusters by name; empty: any.")),
            (
                "exclude",
                strings("Clusters that are left out, whatever else matches."),
            ),
        ],
    )
}

/// Which templates a policy is about.
pub(super) fn resource_selectors(description: &str) -> Schema {
    let selector = object(
        "Some objects of one kind. A name makes the labels irrelevant.",
        [
            (
                "apiVersion",
                string("Group and version of the objects.").max_length(API_VERSION_LENGTH),
            ),
            ("kind", string("Kind of the objects.").max_length(KIND_LENGTH)),
            (
                "namespace",
                name(
                    "Namespace of the objects. Empty: that of the policy, or any for a policy without a namespace.",
                ),
            ),
            ("name", name("Name of the object; empty: any.")),
            (
                "labelSelector",
                label_selector("Objects by their labels; not looked at when a name is given."),
            ),
        ],
    )
    .required(&["apiVersion", "kind"]);
    // The bound keeps the rules about selectors affordable.
    list(description, selector).max_items(1000)
}

/// Taints that are tolerated, as on pods. Which operators there are is up to the caller.
pub(super) fn tolerations(description: &str, operator: Schema) -> Schema {
    let toleration = object(
        "Taints that are tolerated.",
        [
            (
                "key",
                string("The key of the taint; empty with the operator Exists: every key."),
            ),
            ("operator", operator),
            ("value", string("The value of the taint, for the operator Equal.")),
            ("effect", string("The effect of the taint; empty: every effect.")),
            (
                "tolerationSeconds",
                int64("For how long a NoExecute taint is tolerated; absent: for ever."),
            ),
        ],
    );
    list(description, toleration)
}

/// The conditions of a status.
pub(super) fn conditions(description: &str) -> Schema {
    let condition = object(
        "One aspect of the state.",
        [
            ("type", string("What it is about.")),
            ("status", word("Whether it is so.", &["True", "False", "Unknown"])),
            (
                "observedGeneration",
                int64("The generation of the object that this speaks of.").minimum(0),
            ),
            ("lastTransitionTime", time("When the status last changed.")),
            ("reason", string("One word for programs.")),
            ("message", string("A sentence for people.")),
        ],
    )
    .required(&["lastTransitionTime", "message", "reason", "status", "type"]);
    list(description, condition)
}

/// Amounts by resource.
pub(super) fn quantities(description: &str) -> Schema {
    map(description, quantity("An amount."))
}

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

/// How a policy or binding treats objects that a member already has.
pub(super) fn conflict_resolution() -> Schema {
    word(
        "What happens to an object that a member already has: it is left alone, or taken over.",
        &["Abort", "Overwrite"],
    )
    .default("Abort")
}

/// A requirement on nodes, as in pods.
pub(super) fn node_requirements(description: &str) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            ("key", string("The label or field.")),
            ("operator", string("How it is compared.")),
            ("values", strings("The values.")),
        ],
    )
    .required(&["key", "operator"]);
    list(description, requirement)
}

/// One operation of a patch: where, what, and any value.
pub(super) fn operation(description: &str, place: &str, pointer: Schema) -> Schema {
    object(
        description,
        [
            ("operator", operator()),
            ("value", any("The value; for add and replace only.")),
        ],
    )
    .with(place, pointer)
    .required(&["operator", place])
}

/// What is done with a value.
pub(super) fn operator() -> Schema {
    word("What is done.", &["add", "remove", "replace"])
}

/// A map of labels.
pub(super) fn labels(description: &str) -> Schema {
    map(description, label_value("A label's value."))
}
