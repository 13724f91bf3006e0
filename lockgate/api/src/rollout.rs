//! RolloutStrategy: in which order, how many at a time and with how many failures a change reaches the clusters.
//!
//! The types take what the wire allows, so that an object is read whatever its strategy says; [`read`] is for people who
//! write strategies, and refuses everything that does not mean what it seems to. [`parse_threshold`], [`parse_duration`] and
//! [`parse_deadline`] say what the texts mean; how they are applied is the engine's business.

mod check;
mod duration;
#[cfg(test)]
mod tests;
mod threshold;

use serde::{Deserialize, Serialize};

pub use check::{Refusal, read};
pub use duration::{DurationError, duration_text, parse_deadline, parse_duration};
pub use threshold::{Threshold, ThresholdError, parse_threshold};

/// Every cluster at once.
pub const ALL: &str = "All";
/// So many clusters at a time.
pub const PROGRESSIVE: &str = "Progressive";
/// One decision group at a time.
pub const PROGRESSIVE_PER_GROUP: &str = "ProgressivePerGroup";

/// How a change reaches the clusters. Only the part that `type` names is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// [`ALL`], which is also what an empty text means, [`PROGRESSIVE`] or [`PROGRESSIVE_PER_GROUP`].
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// For `All`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutConfig>,
    /// For `Progressive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutConfig>,
    /// For `ProgressivePerGroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutConfig>,
}

impl RolloutStrategy {
    /// The part that `type` names; `None` where it is absent, and for an unknown type.
    pub fn config(&self) -> Option<&RolloutConfig> {
        match self.kind.as_str() {
            "" | ALL => self.all.as_ref(),
            PROGRESSIVE => self.progressive.as_ref(),
            PROGRESSIVE_PER_GROUP => self.progressive_per_group.as_ref(),
            _ => None,
        }
    }

    /// The strategy as the kinds mean it that carry one: `Progressive` without `maxConcurrency` takes one cluster at a time.
    #[must_use]
    pub fn one_at_a_time_unless_said(mut self) -> Self {
        if self.kind == PROGRESSIVE {
            let config = self.progressive.get_or_insert_default();
            config.max_concurrency.get_or_insert(IntOrString::Int(1));
        }
        self
    }
}

/// The settings of a strategy. Mandatory groups have no meaning for `All`, and `maxConcurrency` only for `Progressive`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutConfig {
    /// How long a cluster must have been well before the next may go: a duration such as `5m`. Empty: no time at all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_success_time: String,
    /// How long a cluster may take to become well, such as `10m`. `None` and empty: for ever.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_deadline: String,
    /// How many clusters may fail before nothing more is released: a number, or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<IntOrString>,
    /// How many clusters are worked on at a time: a number, or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<IntOrString>,
    /// Groups that go before all others, each as a whole, and in which no cluster may fail.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
}

/// A group by its name or, where that is empty, by its index, which is 0 if it is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MandatoryDecisionGroup {
    /// Every group of this name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_name: String,
    /// The group of this index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_index: Option<i32>,
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl std::fmt::Display for IntOrString {
    /// As it is written in JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}
