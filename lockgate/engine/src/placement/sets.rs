//! Sets of clusters, and which of them a placement may choose from.

use std::collections::BTreeSet;

use lockgate_api::meta::Condition;
use lockgate_api::ocm::cluster::{BOUND, SET_EMPTY};
use lockgate_api::ocm::{CLUSTER_SET, ManagedClusterSet};
use machinery_value::labels::LabelSelector;

use super::Candidate;
use crate::gate::grouping::Member as _;
use crate::selector::compile_labels;

/// Who belongs to a set.
#[derive(Clone, Debug)]
pub enum Membership {
    /// Those whose label names the set.
    Exclusive(String),
    /// Those with such labels; nobody if the selector is absent or cannot be read.
    Labels(Option<LabelSelector>),
}

impl Membership {
    /// Who belongs to this set.
    pub fn of(set: &ManagedClusterSet) -> Self {
        let selector = &set.spec.cluster_selector;
        if selector.selector_type != "LabelSelector" {
            return Self::Exclusive(set.metadata.name.clone());
        }
        let labels = selector.label_selector.as_ref();
        Self::Labels(labels.and_then(|labels| compile_labels(labels).ok()))
    }

    /// Whether a cluster belongs to it.
    pub fn includes(&self, cluster: &Candidate) -> bool {
        match self {
            Self::Exclusive(name) => cluster.label(CLUSTER_SET) == Some(name),
            Self::Labels(labels) => labels
                .as_ref()
                .is_some_and(|labels| labels.matches(|key| cluster.label(key))),
        }
    }
}

/// Which sets a placement chooses from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No set is bound in its namespace; or some are, and none of them is there.
    NoBindings {
        /// The sets that are bound, and are not there.
        missing: Vec<String>,
    },
    /// None of the sets that it names is bound.
    NoIntersection {
        /// Those that it names and that are not there at all.
        missing: Vec<String>,
        /// Those that it names.
        wanted: Vec<String>,
    },
    /// These.
    Sets(BTreeSet<String>),
}

/// Which sets a placement chooses from: those that are bound in its namespace and are there, and of these the ones that it
/// names, if it names some.
pub fn choose<'a>(
    bound: impl IntoIterator<Item = &'a str>,
    wanted: &[String],
    is_there: impl Fn(&str) -> bool,
) -> Choice {
    let (there, missing): (BTreeSet<&str>, BTreeSet<&str>) = bound.into_iter().partition(|set| is_there(set));
    let owned = |sets: BTreeSet<&str>| -> Vec<String> { sets.into_iter().map(str::to_owned).collect() };
    if there.is_empty() {
        return Choice::NoBindings {
            missing: owned(missing),
        };
    }
    if wanted.is_empty() {
        return Choice::Sets(there.into_iter().map(str::to_owned).collect());
    }
    let sets: BTreeSet<String> = wanted
        .iter()
        .filter(|set| there.contains(set.as_str()))
        .cloned()
        .collect();
    if sets.is_empty() {
        let missing = wanted.iter().map(String::as_str).filter(|set| !is_there(set));
        return Choice::NoIntersection {
            missing: owned(missing.collect()),
            wanted: wanted.to_vec(),
        };
    }
    Choice::Sets(sets)
}

/// What a set says of itself.
pub fn set_condition(members: usize, time: String) -> Condition {
    let (status, reason, message) = match members {
        0 => (
            "True",
            "NoClusterMatched",
            "No ManagedCluster selected".to_owned(),
        ),
        count => (
            "False",
            "ClustersSelected",
            format!("{count} ManagedClusters selected"),
        ),
    };
    Condition {
        kind: SET_EMPTY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: time,
        ..Condition::default()
    }
}

/// What a binding says of itself.
pub fn binding_condition(set: &str, is_there: bool, time: String) -> Condition {
    let (status, reason, message) = if is_there {
        ("True", "ClusterSetBound", String::new())
    } else {
        (
            "False",
            "ClusterSetNotFound",
            format!(
                "there is no ManagedClusterSet {set:?}: create it, or bind another (kubectl get managedclustersets)"
            ),
        )
    };
    Condition {
        kind: BOUND.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: time,
        ..Condition::default()
    }
}
