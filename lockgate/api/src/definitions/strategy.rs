//! The order in which changes reach clusters, and how far they are.

use super::ocm::{GROUP_NAME, selectors};
use super::schema::{Schema, int32, int64, list, object, rule, string, time, word};
use super::shared::label_selector;
use crate::rollout::{ALL, PROGRESSIVE, PROGRESSIVE_PER_GROUP};

/// A duration, as far as a pattern can say.
const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms))+$";
/// The same, and what OCM's strategies say for none.
const DURATION_OR_ZERO: &str = r"^(0|([0-9]+(\.[0-9]+)?(h|m|s|ms))+)$";
/// A duration, or none.
const DEADLINE: &str = r"^(None|([0-9]+(\.[0-9]+)?(h|m|s|ms))+)$";
const PERCENTAGE: &str = r"^(100|[0-9]{1,2})%$";
/// One that is not nothing.
const SOME_PERCENTAGE: &str = r"^(100|[1-9][0-9]?|0[1-9])%$";
/// As many as a strategy lists anywhere.
const MAX_GROUPS: usize = 256;
/// The longest name of a group.
const NAME_LENGTH: usize = 63;
/// The longest name of an object.
const OBJECT_NAME_LENGTH: usize = 253;
/// The longest duration that anybody writes.
const DURATION_LENGTH: usize = 32;

/// A number of clusters, or a percentage of them.
fn share(description: &str, least: i64) -> Schema {
    let pattern = if least > 0 { SOME_PERCENTAGE } else { PERCENTAGE };
    super::schema::quantity(description)
        .pattern(pattern)
        .minimum(least)
}

fn duration(description: &str, pattern: &str) -> Schema {
    string(description).pattern(pattern).max_length(DURATION_LENGTH)
}

/// The part that every strategy has.
fn common(description: &str, soak: &str) -> Schema {
    object(
        description,
        [
            (
                "minSuccessTime",
                duration(
                    "How long a cluster must have been well before the next may go, such as 5m.",
                    soak,
                ),
            ),
            (
                "progressDeadline",
                duration(
                    "How long a cluster may take to become well, such as 10m; None: for ever.",
                    DEADLINE,
                ),
            ),
            (
                "maxFailures",
                share(
                    "How many clusters may fail before nothing more starts: a number, or a percentage such as 25%.",
                    0,
                ),
            ),
        ],
    )
}

fn mandatory() -> Schema {
    let group = object(
        "A group by its name or, where that is empty, by its index, which is 0 if it is absent.",
        [
            (
                "groupName",
                string("Every group of this name.").max_length(NAME_LENGTH),
            ),
            (
                "groupIndex",
                int32("The group of this index; the first is 0.").minimum(0),
            ),
        ],
    );
    list(
        "Groups that go before all others, each as a whole, and in which no cluster may fail.",
        group,
    )
    .max_items(MAX_GROUPS)
}

/// A Placement whose groups are a strategy's.
fn placement_ref(namespaced: bool) -> Schema {
    let schema = object(
        "The Placement (cluster.open-cluster-management.io) whose decision groups, in their order, are the groups. Clusters that it has not decided on come last.",
        [
            (
                "name",
                string("Its name.").min_length(1).max_length(OBJECT_NAME_LENGTH),
            ),
            (
                "namespace",
                string("Its namespace, for a ClusterRolloutPolicy.").max_length(NAME_LENGTH),
            ),
        ],
    );
    if namespaced {
        schema.required(&["name"]).rule(
            rule(
                "!has(self.__namespace__)",
                "is the policy's own: a RolloutPolicy follows Placements of its namespace alone; a ClusterRolloutPolicy may name others",
            )
            .at(".namespace"),
        )
    } else {
        schema.required(&["name", "namespace"])
    }
}

/// A strategy with its groups.
pub(super) fn strategy(namespaced: bool) -> Schema {
    let selector = selectors(
        "Which clusters are in the group: both parts must match.",
        label_selector("Clusters by their labels."),
    );
    let group = object(
        "A group of clusters that go together.",
        [
            (
                "groupName",
                string("Its name, of 2 to 63 characters.").pattern(GROUP_NAME),
            ),
            ("groupClusterSelector", selector),
        ],
    )
    .required(&["groupName", "groupClusterSelector"]);
    order(
        "In which order changes reach clusters. Absent: all at once.",
        DURATION,
    )
    .with(
        "decisionGroups",
        list(
            "Groups by name, in the order in which they go. Everybody else comes after them.",
            group,
        )
        .max_items(MAX_GROUPS),
    )
    .with(
        "clustersPerDecisionGroup",
        share(
            "The most clusters of a group: a number, or a percentage of all. Absent: all.",
            1,
        ),
    )
    .with("placementRef", placement_ref(namespaced))
    .required(&["type"])
    .rule(
        rule(
            "!has(self.placementRef) || (!has(self.decisionGroups) && !has(self.clustersPerDecisionGroup))",
            "the groups are the Placement's: leave out decisionGroups and clustersPerDecisionGroup, or placementRef",
        )
        .at(".placementRef"),
    )
}

/// A strategy whose groups somebody else makes.
pub(super) fn rollout_strategy(description: &str) -> Schema {
    order(description, DURATION_OR_ZERO)
}

fn order(description: &str, soak: &str) -> Schema {
    object(
        description,
        [
            (
                "type",
                word(
                    "How clusters take turns: not at all, so many at a time, or one group after the other.",
                    &[ALL, PROGRESSIVE, PROGRESSIVE_PER_GROUP],
                ),
            ),
            ("all", common("For the type All.", soak)),
            (
                "progressive",
                common("For the type Progressive.", soak)
                    .with("mandatoryDecisionGroups", mandatory())
                    .with(
                        "maxConcurrency",
                        share(
                            "How many clusters are worked on at a time: a number, or a percentage. Absent: one.",
                            1,
                        ),
                    ),
            ),
            (
                "progressivePerGroup",
                common("For the type ProgressivePerGroup.", soak)
                    .with("mandatoryDecisionGroups", mandatory()),
            ),
        ],
    )
}

/// A template that is not done, as its policy tells it.
pub(super) fn run_summary() -> Schema {
    object(
        "How one template stands.",
        [
            ("resource", string("Its kind, namespace and name.")),
            ("revision", int64("The revision on its way.")),
            ("phase", string("Where it is.")),
            ("clusters", string("How many clusters are done, of how many.")),
            ("message", string("Why, for people.")),
        ],
    )
}

/// How a change reaches its clusters, as a binding tells it.
pub(super) fn run() -> Schema {
    let cluster = object(
        "How one cluster stands.",
        [
            ("name", string("Its name.")),
            (
                "state",
                string("ToApply, Progressing, Succeeded, Failed, TimeOut, Suspended, Leaving or Skip."),
            ),
            ("reason", string("Why, for people.")),
            ("since", time("Since when.")),
            ("until", time("When its soak or its time ends.")),
            (
                "revision",
                int64("The revision that it was last told by a rollout."),
            ),
        ],
    );
    let group = object(
        "A group of clusters that go together.",
        [
            ("index", int64("Its place in the order.")),
            ("name", string("Its name; most have none.")),
            (
                "state",
                string(
                    "What its clusters come to: ToApply, Progressing, Succeeded, Failed, Suspended or Leaving.",
                ),
            ),
            ("clusters", list("Its clusters.", cluster)),
        ],
    );
    object(
        "How its last change reaches the clusters, where a strategy says in which order. Nothing follows from it.",
        [
            (
                "policy",
                string("The policy whose strategy counts: kind, namespace and name."),
            ),
            ("revision", int64("The revision on its way, or there.")),
            (
                "goodRevision",
                int64("The last revision that succeeded everywhere."),
            ),
            (
                "phase",
                string(
                    "Progressing, Paused, Failed, Succeeded, Aborted, RollingBack, RolledBack or RollbackFailed.",
                ),
            ),
            ("message", string("Why, for people.")),
            ("command", string("The operator's last command, with its reason.")),
            (
                "groups",
                list(
                    "The groups in the order in which they go; none once it succeeded.",
                    group,
                ),
            ),
        ],
    )
}
