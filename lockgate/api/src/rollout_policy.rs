//! RolloutPolicy and ClusterRolloutPolicy: how changes of some objects reach their clusters, apart from the policy that
//! places them: what is held back, and in which order the rest goes. Deleting one lets go.

use serde::{Deserialize, Serialize};

use crate::meta::{Condition, ObjectMeta};
use crate::ocm::placement::ClaimSelector;
use crate::placement::LabelSelector;
use crate::policy::{ResourceSelector, Suspension};
use crate::rollout::{IntOrString, RolloutStrategy};

/// New copies come before old ones go; what an absent `moves` means.
pub const MAKE_BEFORE_BREAK: &str = "MakeBeforeBreak";
/// Old copies go before new ones come.
pub const BREAK_BEFORE_MAKE: &str = "BreakBeforeMake";
/// A rollout that fails stops; what an absent `onFailure` means.
pub const PAUSE: &str = "Pause";
/// A rollout that fails goes back.
pub const ROLLBACK: &str = "Rollback";

/// A policy of either kind: one with a namespace is a RolloutPolicy, one without a ClusterRolloutPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutPolicy {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: RolloutSpec,
    /// What became of it: a view, from which nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RolloutStatus>,
}

impl RolloutPolicy {
    /// Whether it is a ClusterRolloutPolicy.
    pub fn is_cluster_scoped(&self) -> bool {
        self.metadata.namespace.is_empty()
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        if self.is_cluster_scoped() {
            "ClusterRolloutPolicy"
        } else {
            "RolloutPolicy"
        }
    }

    /// Namespace and name of the Placement whose decision groups it follows, if it names one.
    pub fn placement(&self) -> Option<(&str, &str)> {
        let reference = self.spec.strategy.as_ref()?.placement_ref.as_ref()?;
        let namespace = if self.is_cluster_scoped() {
            &reference.namespace
        } else {
            &self.metadata.namespace
        };
        Some((namespace, &reference.name))
    }

    /// Kind, namespace and name, for people.
    pub fn title(&self) -> String {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        if namespace.is_empty() {
            format!("{} {name}", self.kind())
        } else {
            format!("{} {namespace}/{name}", self.kind())
        }
    }
}

/// What a rollout policy wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutSpec {
    /// Which objects.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// What is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// In which order changes reach clusters; absent: all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<GroupedStrategy>,
    /// [`MAKE_BEFORE_BREAK`], which an empty text means, or [`BREAK_BEFORE_MAKE`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub moves: String,
    /// [`PAUSE`], which an empty text means, or [`ROLLBACK`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub on_failure: String,
}

/// A strategy with the groups into which it cuts its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupedStrategy {
    /// The strategy.
    #[serde(flatten)]
    pub rollout: RolloutStrategy,
    /// Groups by name, in the order in which they go; everybody else comes after them.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub decision_groups: Vec<NamedDecisionGroup>,
    /// The most clusters of a group: a number, or a percentage of all. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters_per_decision_group: Option<IntOrString>,
    /// The Placement whose decision groups are the groups, in the place of groups of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_ref: Option<PlacementReference>,
}

/// A Placement of Open Cluster Management.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementReference {
    /// Its namespace; a RolloutPolicy names those of its own namespace alone, and leaves it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A group by name, and who is in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedDecisionGroup {
    /// Its name.
    pub group_name: String,
    /// Which clusters.
    pub group_cluster_selector: GroupClusterSelector,
}

/// Which clusters are in a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupClusterSelector {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By what they say about themselves, as their ManagedClusters tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
}

/// What became of a rollout policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The generation that this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it holds back, in one spelling for people: `all clusters`, or names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suspended: String,
    /// How its templates stand, in one spelling for people: `2 Progressing, 40 Succeeded`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// How many templates follow its strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<i64>,
    /// The templates that are not done, as far as they fit; their bindings say more.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub runs: Vec<RunSummary>,
    /// Conditions.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
}

/// How one template stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunSummary {
    /// Kind, namespace and name of the template.
    pub resource: String,
    /// The revision.
    pub revision: i64,
    /// Where it is, as [`RolloutRun::phase`].
    pub phase: String,
    /// How many clusters are done, of how many.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub clusters: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a change of one template reaches its clusters, as its binding's status tells it: a view, from which nothing follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutRun {
    /// The policy whose strategy counts: kind, namespace and name.
    pub policy: String,
    /// The revision on its way, or there.
    pub revision: i64,
    /// The last revision that succeeded everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_revision: Option<i64>,
    /// `Progressing`, `Paused`, `Failed`, `Succeeded`, `Aborted`, `RollingBack`, `RolledBack` or `RollbackFailed`.
    pub phase: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The operator's last command, with its reason, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The groups in the order in which they go; none once it succeeded.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub groups: Vec<RunGroup>,
}

/// A group of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunGroup {
    /// Its place in the order.
    pub index: i64,
    /// Its name; most have none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What its clusters come to: `ToApply`, `Progressing`, `Succeeded`, `Failed`, `Suspended` or `Leaving`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Its clusters.
    #[serde(deserialize_with = "crate::meta::null_is_default")]
    pub clusters: Vec<RunCluster>,
}

impl RunGroup {
    /// A group with what its clusters come to: one that failed shows, then one that moves, waits or is held back.
    pub fn of(index: i64, name: &str, clusters: Vec<RunCluster>) -> Self {
        let any = |states: &[&str]| {
            let mut open = clusters.iter().filter(|cluster| !cluster.is_done());
            open.any(|cluster| states.contains(&cluster.state.as_str()))
        };
        let state = if any(&["Failed", "TimeOut"]) {
            "Failed"
        } else if any(&["Leaving"]) {
            "Leaving"
        } else if any(&["Progressing", "Succeeded", "Unknown"]) {
            "Progressing"
        } else if any(&["ToApply"]) {
            "ToApply"
        } else if any(&["Suspended"]) {
            "Suspended"
        } else {
            "Succeeded"
        };
        Self {
            index,
            name: name.to_owned(),
            state: state.to_owned(),
            clusters,
        }
    }
}

/// A cluster of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunCluster {
    /// Its name.
    pub name: String,
    /// `ToApply`, `Progressing`, `Succeeded`, `Failed`, `TimeOut`, `Suspended`, `Leaving` or `Skip`.
    pub state: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When its soak or its time ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The revision that it was last told by a rollout; 0: none.
    #[serde(skip_serializing_if = "crate::meta::is_zero")]
    pub revision: i64,
}

impl RunCluster {
    /// Whether nothing is left to do there: it succeeded and has soaked, or nothing changes.
    pub fn is_done(&self) -> bool {
        self.until.is_none() && matches!(self.state.as_str(), "Succeeded" | "Skip")
    }
}
