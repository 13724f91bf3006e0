//! A placement in the form that is decided by.

use lockgate_api::ocm::placement::Placement;
use lockgate_api::placement::Toleration;
use lockgate_api::rollout::IntOrString;

use super::predicates::{self, Compiled, claims_as_labels};
use super::prioritize::{self, Prioritizer, Scores};
use super::{Candidate, taints};
use crate::gate::grouping::NamedGroup;

/// Why a placement cannot be read. It keeps what it decided last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}:{message}")]
pub struct Misconfigured {
    /// The part of the placement.
    part: &'static str,
    /// What is wrong, and where.
    message: String,
}

impl Misconfigured {
    /// What is wrong with a part of a placement.
    pub fn new(part: &'static str, message: impl Into<String>) -> Self {
        Self {
            part,
            message: message.into(),
        }
    }
}

/// A placement in the form that is decided by.
#[derive(Debug)]
pub struct Rules {
    /// The sets that it names; empty: all that are bound.
    pub sets: Vec<String>,
    /// How many clusters it wants; absent: all.
    pub number: Option<usize>,
    /// What it tolerates.
    pub tolerations: Vec<Toleration>,
    /// What it prefers.
    pub prioritizers: Vec<(Prioritizer, i64)>,
    /// The groups that it asks for by name.
    pub named: Vec<NamedGroup>,
    /// How large groups may be.
    pub size: Option<IntOrString>,
    predicates: Vec<Compiled>,
}

impl Rules {
    /// Whether it prefers clusters by what they have room for.
    pub fn prefers_room(&self) -> bool {
        let mut weighted = self.prioritizers.iter().filter(|(_, weight)| *weight != 0);
        weighted.any(|(prioritizer, _)| matches!(prioritizer, Prioritizer::Allocatable(_)))
    }

    /// Reads a placement.
    pub fn read(placement: &Placement) -> Result<Self, Misconfigured> {
        let spec = &placement.spec;
        let groups = &spec.decision_strategy.group_strategy;
        let named = groups.decision_groups.iter().map(|group| {
            let selector = &group.group_cluster_selector;
            NamedGroup {
                name: group.group_name.clone(),
                labels: selector.label_selector.clone(),
                claims: selector.claim_selector.as_ref().map(claims_as_labels),
            }
        });
        taints::check(&spec.tolerations)?;
        Ok(Self {
            sets: spec.cluster_sets.clone(),
            number: spec
                .number_of_clusters
                .map(|number| usize::try_from(number).unwrap_or(0)),
            tolerations: spec.tolerations.clone(),
            prioritizers: prioritize::read(&spec.prioritizer_policy)?,
            named: named.collect(),
            size: groups.clusters_per_decision_group.clone(),
            predicates: predicates::compile(&spec.predicates)?,
        })
    }

    /// Whether its predicates may match a cluster: expressions, which take long, are not asked.
    pub fn may_match(&self, cluster: &Candidate) -> bool {
        predicates::any_may_match(&self.predicates, cluster)
    }

    /// Whether the predicates match a cluster. That depends on the cluster and on scores of add-ons, and on nothing else.
    pub fn matches(&self, cluster: &Candidate, scores: &dyn Scores) -> Result<bool, Misconfigured> {
        predicates::any_matches(&self.predicates, cluster, scores)
    }

    /// Why the predicates do not match a cluster.
    pub fn mismatch(&self, cluster: &Candidate, scores: &dyn Scores) -> String {
        predicates::explain(&self.predicates, cluster, scores)
    }
}
