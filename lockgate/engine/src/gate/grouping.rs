//! Cutting a selection into decision groups, and those into decisions.
//!
//! Every selected cluster is in exactly one group; indices have no gaps; no group is larger than the size, and no decision
//! larger than [`DECISION_SIZE`].

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lockgate_api::placement::LabelSelector;
use lockgate_api::rollout::{IntOrString, ThresholdError, parse_threshold};
use machinery_value::labels::SelectorError;

use super::groups::{DecisionGroup, Groups};
use crate::selector::compile_labels;

/// At most so many clusters are in one decision.
pub const DECISION_SIZE: usize = 100;

/// A cluster that was selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it says about itself; selected like labels.
    pub claims: BTreeMap<String, String>,
}

/// What is cut into groups: anything with a name, labels and claims.
pub trait Member {
    /// Its name.
    fn name(&self) -> &str;
    /// The value of one of its labels.
    fn label(&self, key: &str) -> Option<&str>;
    /// The value of one of its claims.
    fn claim(&self, name: &str) -> Option<&str>;
}

impl Member for Selected {
    fn name(&self) -> &str {
        &self.name
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    fn claim(&self, name: &str) -> Option<&str> {
        self.claims.get(name).map(String::as_str)
    }
}

impl<M: Member> Member for &M {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn label(&self, key: &str) -> Option<&str> {
        (*self).label(key)
    }

    fn claim(&self, name: &str) -> Option<&str> {
        (*self).claim(name)
    }
}

/// A group that somebody asked for by name. Both selectors must match; one that is absent or empty always does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGroup {
    /// Its name.
    pub name: String,
    /// By labels.
    pub labels: Option<LabelSelector>,
    /// By claims.
    pub claims: Option<LabelSelector>,
}

/// Why a selection cannot be cut. Whoever cuts keeps the groups that were there before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupingError {
    /// The size of a group cannot be read.
    #[error("clustersPerDecisionGroup: {0}")]
    Size(#[from] ThresholdError),
    /// A selector cannot be read.
    #[error("the selector of the decision group {name:?}: {error}")]
    Selector {
        /// Whose.
        name: String,
        /// What is wrong with it.
        error: SelectorError,
    },
}

/// The decision groups of a selection: the named ones in the order in which they are listed, then everybody else, each cut
/// by name into groups of the size. A cluster that matches several named groups is in the first of them; a named group that
/// nobody matches is no group. A percentage is one of the whole selection. Nobody selected is one empty group.
pub fn cut<M: Member>(
    selected: &[M],
    named: &[NamedGroup],
    size: Option<&IntOrString>,
) -> Result<Groups, GroupingError> {
    let size = match size {
        None => selected.len(),
        Some(size) => parse_threshold(size)?
            .of(selected.len())
            .try_into()
            .ok()
            .filter(|size| (1..=selected.len()).contains(size))
            .unwrap_or(selected.len()),
    };
    let mut rest: Vec<&M> = selected.iter().collect();
    rest.sort_by(|a, b| a.name().cmp(b.name()));
    rest.dedup_by(|a, b| a.name() == b.name());
    let mut groups = Vec::new();
    for group in named {
        let compile = |selector: &Option<LabelSelector>| {
            selector
                .as_ref()
                .map(compile_labels)
                .transpose()
                .map_err(|error| GroupingError::Selector {
                    name: group.name.clone(),
                    error,
                })
        };
        let (labels, claims) = (compile(&group.labels)?, compile(&group.claims)?);
        let (members, others) = rest.into_iter().partition(|cluster| {
            labels
                .as_ref()
                .is_none_or(|labels| labels.matches(|key| cluster.label(key)))
                && claims
                    .as_ref()
                    .is_none_or(|claims| claims.matches(|name| cluster.claim(name)))
        });
        rest = others;
        push(&mut groups, &group.name, members, size);
    }
    push(&mut groups, "", rest, size);
    if groups.is_empty() {
        groups.push(DecisionGroup::default());
    }
    Ok(Groups::ordered(groups))
}

fn push<M: Member>(groups: &mut Vec<DecisionGroup>, name: &str, members: Vec<&M>, size: usize) {
    for chunk in members.chunks(size.max(1)) {
        groups.push(DecisionGroup {
            index: groups.len() as u32,
            name: name.to_owned(),
            clusters: chunk.iter().map(|cluster| cluster.name().to_owned()).collect(),
        });
    }
}

/// One published part of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionPart<'a> {
    /// Counts from 1 over all groups.
    pub number: usize,
    /// Whose part it is.
    pub group: &'a DecisionGroup,
    /// Its clusters.
    pub clusters: &'a [String],
}

/// The parts in which groups are published: an empty group as one that is empty.
pub fn decision_parts(groups: &Groups) -> Vec<DecisionPart<'_>> {
    let mut parts: Vec<DecisionPart<'_>> = Vec::new();
    for group in groups.iter() {
        let mut push = |clusters| {
            parts.push(DecisionPart {
                number: parts.len() + 1,
                group,
                clusters,
            });
        };
        if group.clusters.is_empty() {
            push(&group.clusters[..]);
        }
        group.clusters.chunks(DECISION_SIZE).for_each(push);
    }
    parts
}
