//! Placement, PlacementDecision and AddOnPlacementScore.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::{Condition, ObjectMeta, null_is_default};
use crate::placement::{LabelSelector, SelectorRequirement, Toleration};
use crate::rollout::IntOrString;

/// As many clusters as were asked for are decided.
pub const SATISFIED: &str = "PlacementSatisfied";
/// The placement cannot be read.
pub const MISCONFIGURED: &str = "PlacementMisconfigured";

/// Chooses clusters, and puts them into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Which clusters, and how they are grouped.
    pub spec: PlacementSpec,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementStatus>,
}

/// Which clusters, and how they are grouped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementSpec {
    /// From these sets; empty: from every set that is bound in the namespace.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub cluster_sets: Vec<String>,
    /// So many of them; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// Those that one of these matches; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub predicates: Vec<Predicate>,
    /// Which are preferred.
    #[serde(skip_serializing_if = "PrioritizerPolicy::is_empty")]
    pub prioritizer_policy: PrioritizerPolicy,
    /// Taints that are tolerated.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub tolerations: Vec<Toleration>,
    /// How the chosen are grouped.
    #[serde(skip_serializing_if = "DecisionStrategy::is_empty")]
    pub decision_strategy: DecisionStrategy,
    /// Everything else (`spreadPolicy`, `sortBy`, `scoreRateLimit`), on which nothing depends.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Clusters that qualify.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Predicate {
    /// What they must be like.
    pub required_cluster_selector: RequiredSelector,
}

/// What clusters must be like; every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredSelector {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By what they say about themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
    /// By expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<CelSelector>,
}

/// Claims that must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSelector {
    /// Requirements; all of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// Expressions that must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CelSelector {
    /// Expressions over `managedCluster`; all of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub cel_expressions: Vec<String>,
}

/// Which clusters are preferred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrioritizerPolicy {
    /// `Additive` (also when empty): the configurations add to the usual ones. `Exact`: they are all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// What counts, and how much.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub configurations: Vec<PrioritizerConfig>,
}

impl PrioritizerPolicy {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One thing that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrioritizerConfig {
    /// What gives the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_coordinate: Option<ScoreCoordinate>,
    /// How much it counts; absent: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// What gives a score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScoreCoordinate {
    /// `BuiltIn` (also when empty) or `AddOn`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// For `BuiltIn`: its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub built_in: String,
    /// For `AddOn`: where the score is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOn>,
}

/// Where the scores of an add-on are found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddOn {
    /// The AddOnPlacementScore.
    pub resource_name: String,
    /// The score in it.
    pub score_name: String,
}

/// How the chosen clusters are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionStrategy {
    /// The groups.
    #[serde(skip_serializing_if = "GroupStrategy::is_empty")]
    pub group_strategy: GroupStrategy,
}

impl DecisionStrategy {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The groups of a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupStrategy {
    /// Groups by name, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub decision_groups: Vec<DecisionGroupSpec>,
    /// No group is larger: a number, or a percentage of all that are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters_per_decision_group: Option<IntOrString>,
}

impl GroupStrategy {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A group by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionGroupSpec {
    /// Its name.
    pub group_name: String,
    /// Who belongs to it.
    pub group_cluster_selector: GroupSelector,
}

/// Who belongs to a group; both parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupSelector {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By what they say about themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// How many clusters are chosen.
    pub number_of_selected_clusters: i32,
    /// Their groups.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// [`SATISFIED`] and [`MISCONFIGURED`].
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
}

/// A group as it was published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionGroupStatus {
    /// Its place in the order.
    pub decision_group_index: i32,
    /// Its name; empty for most.
    pub decision_group_name: String,
    /// The decisions that hold it.
    #[serde(deserialize_with = "null_is_default")]
    pub decisions: Vec<String>,
    /// How many clusters it has.
    pub cluster_count: i32,
}

/// A part of what a placement chose, of one group and at most a hundred clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementDecision {
    /// Metadata; the labels name placement and group.
    pub metadata: ObjectMeta,
    /// The clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DecisionStatus>,
}

impl PlacementDecision {
    /// The names of its clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let decisions = self.status.iter().flat_map(|status| &status.decisions);
        decisions.map(|decision| decision.cluster_name.as_str())
    }
}

/// The clusters of a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionStatus {
    /// The clusters.
    #[serde(deserialize_with = "null_is_default")]
    pub decisions: Vec<ClusterDecision>,
}

/// One cluster that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterDecision {
    /// Its name.
    pub cluster_name: String,
    /// Always empty.
    pub reason: String,
    /// Not written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i32>,
}

/// What an add-on thinks of a cluster; in the namespace of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnPlacementScore {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// The scores.
    pub status: ScoreStatus,
}

/// The scores of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScoreStatus {
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
    /// The scores.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub scores: Vec<Score>,
    /// Until when they count, RFC 3339; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// A score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Score {
    /// Its name.
    pub name: String,
    /// From -100 to 100.
    pub value: i32,
}
