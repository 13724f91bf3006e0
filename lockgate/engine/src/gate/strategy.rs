//! Which strategy a template follows, and what it means.

use std::sync::Arc;

use lockgate_api::RolloutPolicy;
use lockgate_api::rollout_policy::{BREAK_BEFORE_MAKE, GroupedStrategy, ROLLBACK};
use serde_json::Value;

use super::grouping::{GroupingError, NamedGroup, Selected, cut};
use super::groups::Groups;
use super::rules::{Rules, StrategyError};
use crate::placement::predicates::claims_as_labels;
use crate::selector::best_priority;

/// The policies with a strategy among those about a template, the best first: of its own namespace before those of the whole
/// hub, then the closest match, then the smaller name.
pub fn ranked(about: &[Arc<RolloutPolicy>], template: &Value) -> Vec<Arc<RolloutPolicy>> {
    let mut found: Vec<Arc<RolloutPolicy>> = about
        .iter()
        .filter(|policy| policy.spec.strategy.is_some())
        .cloned()
        .collect();
    found.sort_by_key(|policy| {
        let closeness = best_priority(&policy.spec.resource_selectors, template).unwrap_or(0);
        (
            policy.is_cluster_scoped(),
            std::cmp::Reverse(closeness),
            policy.metadata.name.clone(),
        )
    });
    found
}

/// Why a strategy cannot be followed. Nothing starts then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// Its rules cannot be read.
    #[error("spec.strategy.{0}")]
    Rules(#[from] StrategyError),
    /// Its groups cannot be made.
    #[error("spec.strategy.{0}")]
    Groups(#[from] GroupingError),
    /// The placement that it names has decided on no cluster, or is about to decide.
    #[error(
        "spec.strategy.placementRef: nothing starts, for there are no decisions of Placement {0}; create it, or name another"
    )]
    Placement(String),
}

/// A strategy that a template follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The rules.
    pub rules: Rules,
    /// Whether old copies go before new ones come.
    pub breaks_first: bool,
    /// Whether a breach leads back.
    pub rolls_back: bool,
    strategy: GroupedStrategy,
    /// Namespace and name of the placement whose groups count.
    placement: Option<(String, String)>,
}

impl Followed {
    /// What a policy's strategy means.
    pub fn read(policy: &RolloutPolicy) -> Result<Self, FollowError> {
        let mut strategy = policy.spec.strategy.clone().unwrap_or_default();
        strategy.rollout = strategy.rollout.one_at_a_time_unless_said();
        Ok(Self {
            rules: Rules::read(&strategy.rollout)?,
            breaks_first: policy.spec.moves == BREAK_BEFORE_MAKE,
            rolls_back: policy.spec.on_failure == ROLLBACK,
            strategy,
            placement: policy
                .placement()
                .map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
        })
    }

    /// Everything at once: for a way back whose strategy is gone.
    pub fn all_at_once() -> Self {
        Self::by(Rules::all_at_once())
    }

    /// These rules, for clusters that somebody else puts into groups.
    pub fn by(rules: Rules) -> Self {
        Self {
            rules,
            breaks_first: false,
            rolls_back: false,
            strategy: GroupedStrategy::default(),
            placement: None,
        }
    }

    /// Namespace and name of the placement whose groups count, if there is one.
    pub fn placement(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.placement.as_ref()?;
        Some((namespace, name))
    }

    /// The groups of these clusters; and what the placement decided, if the strategy names one that did.
    pub fn groups(
        &self,
        clusters: impl IntoIterator<Item = Selected>,
        decided: Option<&Groups>,
    ) -> Result<Groups, FollowError> {
        let selected: Vec<Selected> = clusters.into_iter().collect();
        if let Some((namespace, name)) = self.placement() {
            let decided = decided.ok_or_else(|| FollowError::Placement(format!("{namespace}/{name}")))?;
            return Ok(decided.restricted_to(selected.iter().map(|cluster| cluster.name.as_str())));
        }
        let named: Vec<NamedGroup> = self
            .strategy
            .decision_groups
            .iter()
            .map(|group| NamedGroup {
                name: group.group_name.clone(),
                labels: group.group_cluster_selector.label_selector.clone(),
                claims: group
                    .group_cluster_selector
                    .claim_selector
                    .as_ref()
                    .map(claims_as_labels),
            })
            .collect();
        Ok(cut(
            &selected,
            &named,
            self.strategy.clusters_per_decision_group.as_ref(),
        )?)
    }
}
