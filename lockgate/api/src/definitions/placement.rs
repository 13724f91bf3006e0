//! Where templates go: the placement of policies, of which bindings carry a copy.

use super::schema::{Schema, int64, label_key, list, object, rule, string, word};
use super::shared::{cluster_affinity, tolerations};

/// Groups of clusters in one placement.
const MAX_AFFINITIES: usize = 64;
/// Groups that take what another has no room for.
const MAX_OVERFLOW: usize = 16;
/// Rules of weight: one for each cluster of a large fleet.
const MAX_WEIGHTS: usize = 5000;
/// Constraints on spreading.
const MAX_SPREAD: usize = 64;

/// The placement of a policy, with its rules.
pub(super) fn placement(description: &str) -> Schema {
    object(
        description,
        [
            (
                "clusterAffinity",
                cluster_affinity("Which clusters: every part that is given must match. Absent: all clusters."),
            ),
            ("clusterAffinities", affinities()),
            (
                "clusterTolerations",
                tolerations(
                    "Taints of clusters that are tolerated.",
                    word(
                        "Equal, which is also the default, or Exists.",
                        &["", "Equal", "Exists"],
                    ),
                ),
            ),
            ("spreadConstraints", spread_constraints()),
            ("replicaScheduling", replica_scheduling()),
            ("workloadAffinity", workload_affinity()),
        ],
    )
    .rule(
        rule(
            "!(has(self.clusterAffinity) && has(self.clusterAffinities))",
            "clusterAffinities and clusterAffinity exclude each other",
        )
        .at(".clusterAffinities")
        .forbidden(),
    )
    .rule(
        rule(
            concat!(
                "!has(self.clusterAffinities) || ",
                "!self.clusterAffinities.exists(a, has(a.overflowAffinities) && size(a.overflowAffinities) > 0) || ",
                "(has(self.replicaScheduling) && self.replicaScheduling.replicaSchedulingType == 'Divided' && ",
                "((has(self.replicaScheduling.replicaDivisionPreference) && ",
                "self.replicaScheduling.replicaDivisionPreference == 'Aggregated') || ",
                "(has(self.replicaScheduling.weightPreference) && ",
                "has(self.replicaScheduling.weightPreference.dynamicWeight))))",
            ),
            "overflowAffinities need replicaScheduling of the type Divided with Aggregated or a dynamicWeight",
        )
        .at(".clusterAffinities")
        .forbidden(),
    )
}

fn affinity_name() -> Schema {
    label_key("The name of the group; unique.")
        .min_length(1)
        .max_length(32)
}

fn affinities() -> Schema {
    let overflow = cluster_affinity("A group that takes what the groups before it have no room for.")
        .with("affinityName", affinity_name())
        .required(&["affinityName"]);
    let term = cluster_affinity("A named group of clusters.")
        .with("affinityName", affinity_name())
        .with(
            "overflowAffinities",
            list(
                "Where replicas go that the group has no room for, in order.",
                overflow,
            )
            .max_items(MAX_OVERFLOW),
        )
        .required(&["affinityName"])
        .rule(
            rule(
                concat!(
                    "!has(self.overflowAffinities) || size(self.overflowAffinities) == 0 || has(self.labelSelector) || ",
                    "has(self.fieldSelector) || (has(self.clusterNames) && size(self.clusterNames) > 0) || ",
                    "(has(self.exclude) && size(self.exclude) > 0)",
                ),
                "overflowAffinities need a group that names some clusters itself",
            )
            .at(".overflowAffinities")
            .forbidden(),
        )
        .rule(
            rule(
                concat!(
                    "!has(self.overflowAffinities) || self.overflowAffinities.all(a, a.affinityName != self.affinityName && ",
                    "self.overflowAffinities.exists_one(b, b.affinityName == a.affinityName))",
                ),
                "overflowAffinities[].affinityName must differ from each other and from the group's own affinityName",
            )
            .at(".overflowAffinities")
            .duplicate(),
        );
    list(
        "Groups of clusters in order of preference: the first that fits is used.",
        term,
    )
    .max_items(MAX_AFFINITIES)
    .rule(
        rule(
            "self.all(a, self.exists_one(b, b.affinityName == a.affinityName))",
            "affinityName must be unique in clusterAffinities",
        )
        .duplicate(),
    )
}

fn spread_constraints() -> Schema {
    // A constraint without a field and a label is one by cluster.
    const FIELD: &str = concat!(
        "(has(c.spreadByLabel) && c.spreadByLabel != '' ? '' : ",
        "has(c.spreadByField) ? c.spreadByField : 'cluster')"
    );
    let constraint = object(
        "How many groups of clusters are wanted, by one property. Without a property: by cluster.",
        [
            (
                "spreadByField",
                word(
                    "The field of clusters that groups them.",
                    &["cluster", "region", "zone", "provider"],
                ),
            ),
            (
                "spreadByLabel",
                string("The label of clusters that groups them; excludes spreadByField."),
            ),
            ("maxGroups", int64("At most this many groups; 0: any.").minimum(0)),
            (
                "minGroups",
                int64("At least this many groups.").minimum(0).default(1),
            ),
        ],
    )
    .rule(
        rule(
            "!(has(self.spreadByField) && has(self.spreadByLabel) && self.spreadByLabel != '')",
            "spreadByLabel and spreadByField exclude each other",
        )
        .at(".spreadByLabel")
        .forbidden(),
    )
    .rule(
        rule(
            "!has(self.maxGroups) || self.maxGroups == 0 || self.maxGroups >= self.minGroups",
            "maxGroups must not be lower than minGroups",
        )
        .at(".maxGroups"),
    );
    let unique: String = ["cluster", "region", "zone", "provider"]
        .map(|field| format!("self.filter(c, {FIELD} == '{field}').size() <= 1"))
        .join(" && ");
    list("How replicas and objects are spread over clusters.", constraint)
        .max_items(MAX_SPREAD)
        .rule(
            rule(
                unique,
                "spreadByField must be unique in spreadConstraints (a constraint without one counts as cluster)",
            )
            .duplicate(),
        )
        .rule(
            rule(
                format!("!self.exists(c, {FIELD} != '') || self.exists(c, {FIELD} == 'cluster')"),
                "spreadConstraints with a spreadByField need one with spreadByField: cluster",
            )
            .required(),
        )
}

fn replica_scheduling() -> Schema {
    let weight = object(
        "The weight of some clusters.",
        [
            ("targetCluster", cluster_affinity("Which clusters.")),
            ("weight", int64("Their weight.").minimum(1)),
        ],
    )
    .required(&["targetCluster", "weight"]);
    let weights = object(
        "The weights of clusters, when replicas are divided by weight; absent: all the same.",
        [
            (
                "staticWeightList",
                list("Fixed weights.", weight).max_items(MAX_WEIGHTS),
            ),
            (
                "dynamicWeight",
                word(
                    "Weights that follow from the state of clusters; fixed ones are then not looked at.",
                    &["AvailableReplicas"],
                ),
            ),
        ],
    );
    object(
        "How replicas are given out. Absent: every cluster gets all of them.",
        [
            (
                "replicaSchedulingType",
                word(
                    "Whether every cluster gets all replicas or they are divided among clusters.",
                    &["Duplicated", "Divided"],
                )
                .default("Divided"),
            ),
            (
                "replicaDivisionPreference",
                word(
                    "When divided: onto as few clusters as possible, or by weight, which an absent field means too.",
                    &["Aggregated", "Weighted"],
                ),
            ),
            ("weightPreference", weights),
        ],
    )
}

fn workload_affinity() -> Schema {
    let term = |description: &str| {
        object(
            description,
            [(
                "groupByLabelKey",
                label_key("The label of templates whose value makes a group.").min_length(1),
            )],
        )
        .required(&["groupByLabelKey"])
    };
    object(
        "Which workloads go together, and which apart.",
        [
            ("affinity", term("Workloads of one group go together.")),
            ("antiAffinity", term("Workloads of one group go apart.")),
        ],
    )
    .rule(
        rule(
            concat!(
                "!(has(self.affinity) && has(self.antiAffinity)) || ",
                "self.affinity.groupByLabelKey != self.antiAffinity.groupByLabelKey",
            ),
            "antiAffinity.groupByLabelKey must differ from affinity.groupByLabelKey",
        )
        .at(".antiAffinity.groupByLabelKey"),
    )
}
