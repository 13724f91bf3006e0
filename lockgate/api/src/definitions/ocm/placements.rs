//! Placement, PlacementDecision and AddOnPlacementScore.

use serde_json::{Value, json};

use super::super::crd::{Crd, column, condition_path};
use super::super::schema::{
    LABEL_VALUE_LENGTH, QUALIFIED_NAME, Rule, Schema, int32, int64, list, object, rule, string, strings,
    time, word,
};
use super::super::shared::any_label_selector;
use super::{
    EFFECTS, MAX_TAINTS, TAINT_KEY_LENGTH, TAINT_VALUE_LENGTH, condition_map, kind, named, selectors,
    without_spec,
};

/// Predicates of one placement.
const MAX_PREDICATES: usize = 64;
/// Expressions of one predicate.
const MAX_EXPRESSIONS: usize = 16;
/// The longest expression.
const EXPRESSION_LENGTH: usize = 4096;
/// Prioritizers of one placement.
const MAX_PRIORITIZERS: usize = 64;
/// Groups by name.
const MAX_GROUPS: usize = 256;

/// The definitions.
pub(super) fn crds() -> [Value; 3] {
    [placement(), decision(), score()]
}

fn placement() -> Value {
    let satisfied = condition_path("PlacementSatisfied");
    let crd = Crd {
        namespaced: true,
        status: Some(placement_status()),
        spec: placement_spec().default(json!({})),
        description: "Chooses clusters of the sets that are bound in its namespace, and puts them into groups.",
        columns: vec![
            column("Succeeded", "string", &satisfied),
            column("Reason", "string", &satisfied.replace("].status", "].reason")),
            column("SelectedClusters", "integer", ".status.numberOfSelectedClusters"),
        ],
        ..kind("v1beta1", "Placement", "placements")
    };
    // Its decisions carry its name as a label.
    let crd = crd.build_with(|schema| {
        schema.rule(rule(
            format!("size(self.metadata.name) <= {LABEL_VALUE_LENGTH}"),
            "metadata.name must have at most 63 characters: decisions carry it as a label",
        ))
    });
    named(crd, &[])
}

fn placement_spec() -> Schema {
    object(
        "Which clusters, and how they are grouped.",
        [
            (
                "clusterSets",
                strings("From these sets; empty: from every set that is bound in the namespace."),
            ),
            (
                "numberOfClusters",
                int32("So many clusters; absent: all that qualify.").minimum(0),
            ),
            (
                "predicates",
                list(
                    "Which clusters qualify: those that one of these matches.",
                    predicate(),
                )
                .max_items(MAX_PREDICATES),
            ),
            ("prioritizerPolicy", prioritizers()),
            ("spreadPolicy", spread()),
            ("tolerations", tolerations()),
            (
                "decisionStrategy",
                object(
                    "How the chosen clusters are grouped.",
                    [("groupStrategy", groups())],
                ),
            ),
            (
                "sortBy",
                word(
                    "Accepted; nothing follows from it: clusters are ordered by name inside groups.",
                    &["ClusterName", "Score"],
                )
                .default("ClusterName"),
            ),
            (
                "scoreRateLimit",
                string("Accepted; nothing follows from it.")
                    .pattern("^[0-9]+[hms]$")
                    .default("1m"),
            ),
        ],
    )
}

fn predicate() -> Schema {
    let cel = object(
        "Clusters by expressions.",
        [(
            "celExpressions",
            list(
                "CEL over managedCluster; all must be true.",
                string("An expression.").max_length(EXPRESSION_LENGTH),
            )
            .max_items(MAX_EXPRESSIONS),
        )],
    );
    let required = selectors(
        "What clusters must be like: every part that is given must match.",
        any_label_selector("Clusters by their labels."),
    )
    .with("celSelector", cel);
    object("Clusters that qualify.", [("requiredClusterSelector", required)])
}

fn prioritizers() -> Schema {
    let add_on = object(
        "Where the score of an add-on is found, for AddOn.",
        [
            (
                "resourceName",
                string("The AddOnPlacementScore in the cluster's namespace."),
            ),
            ("scoreName", string("The score in it.")),
        ],
    )
    .required(&["resourceName", "scoreName"]);
    let coordinate = object(
        "What gives the score.",
        [
            (
                "type",
                word("Who gives it.", &["BuiltIn", "AddOn"]).default("BuiltIn"),
            ),
            (
                "builtIn",
                string("For BuiltIn: Steady, Balance, ResourceAllocatableCPU or ResourceAllocatableMemory."),
            ),
            ("addOn", add_on),
        ],
    )
    .required(&["type"]);
    let configuration = object(
        "One thing that counts.",
        [
            ("scoreCoordinate", coordinate),
            (
                "weight",
                int32("How much it counts; 0: not at all, less: the other way round.")
                    .minimum(-10)
                    .set("maximum", 10)
                    .default(1),
            ),
        ],
    );
    object(
        "Which clusters are preferred.",
        [
            (
                "mode",
                string("Additive: the configurations change the usual Steady 1 and Balance 1. Exact: they are all.")
                    .default("Additive"),
            ),
            (
                "configurations",
                list("What counts, and how much.", configuration).max_items(MAX_PRIORITIZERS),
            ),
        ],
    )
}

fn spread() -> Schema {
    let constraint = object(
        "A constraint.",
        [
            (
                "topologyKey",
                string("A label or a claim.")
                    .pattern(QUALIFIED_NAME)
                    .max_length(316),
            ),
            ("topologyKeyType", word("Which of the two.", &["Label", "Claim"])),
            ("maxSkew", int32("The largest difference.").minimum(1).default(1)),
            (
                "whenUnsatisfiable",
                word("What happens then.", &["DoNotSchedule", "ScheduleAnyway"]).default("ScheduleAnyway"),
            ),
        ],
    )
    .required(&["topologyKey", "topologyKeyType"]);
    object(
        "Accepted; nothing follows from it.",
        [("spreadConstraints", list("Constraints.", constraint).max_items(8))],
    )
}

fn tolerations() -> Schema {
    let needs_key: Rule = rule(
        "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
        "operator must be Exists when key is empty",
    )
    .at(".operator");
    let no_value: Rule = rule(
        "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        "value must be empty when operator is Exists",
    )
    .at(".value");
    let toleration = object(
        "Taints that are tolerated.",
        [
            (
                "key",
                string("The key of the taint; empty with the operator Exists: every key.")
                    .pattern(&format!("^$|{QUALIFIED_NAME}"))
                    .max_length(TAINT_KEY_LENGTH),
            ),
            (
                "operator",
                word("How the taint is compared.", &["Equal", "Exists"]).default("Equal"),
            ),
            (
                "value",
                string("The value of the taint, for the operator Equal.").max_length(TAINT_VALUE_LENGTH),
            ),
            (
                "effect",
                word("The effect of the taint; absent: every effect.", &EFFECTS),
            ),
            (
                "tolerationSeconds",
                int64("For how long, from the time that the taint was added; absent: for ever."),
            ),
        ],
    )
    .rule(needs_key)
    .rule(no_value);
    list("Taints that are tolerated.", toleration).max_items(MAX_TAINTS)
}

fn groups() -> Schema {
    let group = object(
        "A group by name.",
        [
            (
                "groupName",
                string("Its name, of 2 to 63 characters.").pattern(super::GROUP_NAME),
            ),
            (
                "groupClusterSelector",
                selectors(
                    "Who belongs to it: both parts must match.",
                    any_label_selector("Clusters by their labels."),
                ),
            ),
        ],
    )
    .required(&["groupClusterSelector", "groupName"]);
    let size = any_size("No group is larger: a number, or a percentage of all that are chosen.");
    object(
        "The groups, in their order.",
        [
            (
                "decisionGroups",
                list(
                    "Groups by name. A cluster belongs to the first that it matches.",
                    group,
                )
                .max_items(MAX_GROUPS),
            ),
            ("clustersPerDecisionGroup", size),
        ],
    )
}

/// A number from 1 on, or a percentage from 1 on.
fn any_size(description: &str) -> Schema {
    super::super::schema::quantity(description)
        .pattern("^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$")
        .default("100%")
        .rule(rule(
            "type(self) != int || int(self) >= 1",
            "clustersPerDecisionGroup must be 1 or more, or a percentage from \"1%\" to \"100%\"",
        ))
}

fn placement_status() -> Schema {
    let group = object(
        "A group as it was published.",
        [
            ("decisionGroupIndex", int32("Its place in the order, from 0.")),
            ("decisionGroupName", string("Its name; empty for most.")),
            ("decisions", strings("The PlacementDecisions that hold it.")),
            ("clusterCount", int32("How many clusters it has.")),
        ],
    );
    object(
        "What was decided.",
        [
            ("numberOfSelectedClusters", int32("How many clusters are chosen.")),
            ("decisionGroups", list("Their groups.", group)),
            (
                "conditions",
                condition_map("PlacementSatisfied and PlacementMisconfigured."),
            ),
        ],
    )
}

fn decision() -> Value {
    let cluster = object(
        "A cluster that was chosen.",
        [
            ("clusterName", string("Its name.")),
            ("reason", string("Always empty.")),
            ("score", int32("Not written here.")),
        ],
    )
    .required(&["clusterName", "reason"]);
    let crd = Crd {
        namespaced: true,
        status: Some(
            object(
                "The clusters.",
                [(
                    "decisions",
                    list("The clusters, at most a hundred.", cluster).max_items(100),
                )],
            )
            .required(&["decisions"]),
        ),
        description: "A part of what a placement chose: clusters of one group. Labels name placement and group.",
        ..kind("v1beta1", "PlacementDecision", "placementdecisions")
    };
    without_spec(named(crd.build(), &[]))
}

fn score() -> Value {
    let score = object(
        "A score.",
        [
            ("name", string("Its name.")),
            (
                "value",
                int32("What it is, from -100 to 100.")
                    .minimum(-100)
                    .set("maximum", 100),
            ),
        ],
    )
    .required(&["name", "value"]);
    let crd = Crd {
        namespaced: true,
        status: Some(object(
            "The scores.",
            [
                ("conditions", condition_map("How they came about.")),
                (
                    "scores",
                    list("The scores.", score)
                        .set("x-kubernetes-list-type", "map")
                        .set("x-kubernetes-list-map-keys", ["name"]),
                ),
                ("validUntil", time("Until when they count; absent: for ever.")),
            ],
        )),
        description: "What an add-on thinks of a cluster, in the namespace of the cluster.",
        ..kind("v1alpha1", "AddOnPlacementScore", "addonplacementscores")
    };
    without_spec(named(crd.build(), &[]))
}
