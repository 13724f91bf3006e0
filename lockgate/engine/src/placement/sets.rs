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
    /// Those with such labels; nobody if the selector is absent.
    Labels(Option<LabelSelector>),
    /// Nobody can tell, and why: the selector cannot be read.
    Unreadable(String),
}

impl Membership {
    /// Who belongs to this set.
    pub fn of(set: &ManagedClusterSet) -> Self {
        let selector = &set.spec.cluster_selector;
        if selector.selector_type != "LabelSelector" {
            return Self::Exclusive(set.metadata.name.clone());
        }
        match selector.label_selector.as_ref().map(compile_labels).transpose() {
            Ok(labels) => Self::Labels(labels),
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }

    /// Why nobody can tell who belongs to it, if so.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Exclusive(_) | Self::Labels(_) => None,
        }
    }

    /// Whether a cluster belongs to it.
    pub fn includes(&self, cluster: &Candidate) -> bool {
        match self {
            Self::Exclusive(name) => cluster.label(CLUSTER_SET) == Some(name),
            Self::Labels(labels) => labels
                .as_ref()
                .is_some_and(|labels| labels.matches(|key| cluster.label(key))),
            Self::Unreadable(_) => false,
        }
    }
}

/// Sets of which nobody can tell who belongs to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Those that are not there.
    pub missing: Vec<String>,
    /// Those whose selector cannot be read.
    pub unreadable: Vec<String>,
}

impl Unknown {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unreadable.is_empty()
    }

    fn of<'a, 'm>(
        sets: impl IntoIterator<Item = &'a str>,
        find: impl Fn(&str) -> Option<&'m Membership>,
    ) -> Self {
        let mut unknown = Self::default();
        for set in sets.into_iter().collect::<BTreeSet<&str>>() {
            match find(set) {
                None => unknown.missing.push(set.to_owned()),
                Some(Membership::Unreadable(_)) => unknown.unreadable.push(set.to_owned()),
                Some(_) => {}
            }
        }
        unknown
    }
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut between = "";
        for (what, sets) in [
            ("there is no ManagedClusterSet", &self.missing),
            (
                "the selector cannot be read of ManagedClusterSet",
                &self.unreadable,
            ),
        ] {
            if !sets.is_empty() {
                write!(f, "{between}{what} {}", sets.join(", "))?;
                between = ", and ";
            }
        }
        Ok(())
    }
}

/// Which sets a placement chooses from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No set is bound in its namespace; or some are, and of none of them anybody can tell who belongs to it.
    NoBindings {
        /// The sets that it would choose from.
        unknown: Unknown,
    },
    /// None of the sets that it names is bound.
    NoIntersection {
        /// Those that it names and of which nobody can tell who belongs to them.
        unknown: Unknown,
        /// Those that it names.
        wanted: Vec<String>,
    },
    /// These.
    Sets {
        /// Those that it chooses from.
        sets: BTreeSet<String>,
        /// Those that it would choose from, too. Whoever is decided may be one of theirs, and stays.
        unknown: Unknown,
    },
}

impl Choice {
    /// Whether clusters that are decided may belong to sets of which nobody can tell.
    pub fn keeps_decided(&self) -> bool {
        matches!(self, Self::Sets { unknown, .. } if !unknown.is_empty())
    }
}

/// Which sets a placement chooses from: those that are bound in its namespace and are there, and of these the ones that it
/// names, if it names some. `decided` are the clusters that it has now.
///
/// What is not bound was withdrawn, also if it is not there. Only where it may be a misspelling of a set that is bound, and that
/// clusters were selected from, nobody can tell.
pub fn choose<'a, 'm, 'c>(
    bound: impl IntoIterator<Item = &'a str>,
    wanted: &[String],
    find: impl Fn(&str) -> Option<&'m Membership>,
    decided: impl IntoIterator<Item = &'c Candidate>,
) -> Choice {
    let bound: BTreeSet<&str> = bound.into_iter().collect();
    let is_there = |set: &&str| find(set).is_some_and(|membership| membership.trouble().is_none());
    let there: BTreeSet<&str> = bound.iter().copied().filter(is_there).collect();
    let unknown = if wanted.is_empty() {
        Unknown::of(bound.iter().copied(), &find)
    } else {
        let is_strange = |set: &&String| !bound.contains(set.as_str()) && find(set).is_none();
        let misspelt = wanted.iter().any(|set| is_strange(&set)) && may_mean(&bound, wanted, &find, decided);
        let counts = |set: &&String| bound.contains(set.as_str()) || misspelt && is_strange(set);
        Unknown::of(wanted.iter().filter(counts).map(String::as_str), &find)
    };
    if there.is_empty() {
        return Choice::NoBindings { unknown };
    }
    if wanted.is_empty() {
        return Choice::Sets {
            sets: there.into_iter().map(str::to_owned).collect(),
            unknown,
        };
    }
    let sets: BTreeSet<String> = wanted
        .iter()
        .filter(|set| there.contains(set.as_str()))
        .cloned()
        .collect();
    if sets.is_empty() {
        return Choice::NoIntersection {
            unknown,
            wanted: wanted.to_vec(),
        };
    }
    Choice::Sets { sets, unknown }
}

/// Whether a name of no set may stand for one that is bound and not named: a cluster that is decided, and in none of the sets
/// that are named, is in it or may be.
fn may_mean<'m, 'c>(
    bound: &BTreeSet<&str>,
    wanted: &[String],
    find: &impl Fn(&str) -> Option<&'m Membership>,
    decided: impl IntoIterator<Item = &'c Candidate>,
) -> bool {
    let (named, others): (Vec<&str>, Vec<&str>) = bound
        .iter()
        .partition(|set| wanted.iter().any(|name| name == *set));
    let is_in = |sets: &[&str], cluster: &Candidate| {
        let mut sets = sets.iter().filter_map(|set| find(set));
        sets.any(|membership| membership.includes(cluster))
    };
    let is_unknown = |set: &&str| find(set).is_none_or(|membership| membership.trouble().is_some());
    let any_unknown = others.iter().any(is_unknown);
    let may = |cluster: &Candidate| !is_in(&named, cluster) && (any_unknown || is_in(&others, cluster));
    decided.into_iter().any(may)
}

/// What a set says of itself: how many clusters it has, or why nobody can tell.
pub fn set_condition(members: Result<usize, &str>, time: String) -> Condition {
    let (status, reason, message) = match members {
        Ok(0) => (
            "True",
            "NoClusterMatched",
            "No ManagedCluster selected".to_owned(),
        ),
        Ok(count) => (
            "False",
            "ClustersSelected",
            format!("{count} ManagedClusters selected"),
        ),
        Err(error) => (
            "Unknown",
            "SelectorUnreadable",
            format!(
                "spec.clusterSelector.labelSelector cannot be read: {error}; placements keep the clusters that they have"
            ),
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
