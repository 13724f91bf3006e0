//! The rules of a rollout: a strategy whose texts have been read.

use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::RolloutStrategy;
use lockgate_api::rollout::{
    self, DurationError, IntOrString, Threshold, ThresholdError, parse_deadline, parse_duration,
    parse_threshold,
};

use super::groups::GroupKey;
use super::standing::Status;

/// How clusters take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They do not.
    All,
    /// So many at a time, by name.
    Progressive,
    /// One group after the other.
    ProgressivePerGroup,
}

/// The rules of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How clusters take turns.
    pub order: Order,
    /// How many may fail.
    pub max_failures: Threshold,
    /// How many are worked on at a time.
    pub max_concurrency: Threshold,
    /// How long a cluster must be well before it counts.
    pub soak: Duration,
    /// How long a cluster may take.
    pub deadline: Option<Duration>,
    /// The groups that go first, and on the way back last.
    pub mandatory: Vec<GroupKey>,
    /// Whether the last go first: the way back.
    pub reversed: bool,
}

/// A strategy that cannot be followed. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// Its type is none.
    #[error("type: {0:?} is no strategy: there are All, Progressive and ProgressivePerGroup")]
    Type(String),
    /// A number of clusters cannot be read.
    #[error("{field}: {error}")]
    Threshold {
        /// Which.
        field: &'static str,
        /// Why.
        error: ThresholdError,
    },
    /// A duration cannot be read.
    #[error("{field}: {error}")]
    Duration {
        /// Which.
        field: &'static str,
        /// Why.
        error: DurationError,
    },
}

impl Rules {
    /// What a strategy means. `All` looks at nothing but its deadline: it neither soaks nor stops.
    ///
    /// An absent `maxConcurrency` is no limit here; kinds that mean another give it.
    pub fn read(strategy: &RolloutStrategy) -> Result<Self, StrategyError> {
        let order = match strategy.kind.as_str() {
            "" | rollout::ALL => Order::All,
            rollout::PROGRESSIVE => Order::Progressive,
            rollout::PROGRESSIVE_PER_GROUP => Order::ProgressivePerGroup,
            other => return Err(StrategyError::Type(other.to_owned())),
        };
        let config = strategy.config().cloned().unwrap_or_default();
        let deadline =
            parse_deadline(&config.progress_deadline).map_err(|error| StrategyError::Duration {
                field: "progressDeadline",
                error,
            })?;
        let mut rules = Self {
            order,
            deadline,
            ..Self::all_at_once()
        };
        if order == Order::All {
            return Ok(rules);
        }
        rules.max_failures = threshold("maxFailures", config.max_failures.as_ref())?;
        if order == Order::Progressive {
            rules.max_concurrency = threshold("maxConcurrency", config.max_concurrency.as_ref())?;
        }
        if !config.min_success_time.is_empty() {
            rules.soak =
                parse_duration(&config.min_success_time).map_err(|error| StrategyError::Duration {
                    field: "minSuccessTime",
                    error,
                })?;
        }
        rules.mandatory = config
            .mandatory_decision_groups
            .iter()
            .map(GroupKey::from)
            .collect();
        Ok(rules)
    }

    /// Nobody waits for anybody.
    pub fn all_at_once() -> Self {
        Self {
            order: Order::All,
            max_failures: Threshold::Count(0),
            max_concurrency: Threshold::Count(0),
            soak: Duration::ZERO,
            deadline: None,
            mandatory: Vec::new(),
            reversed: false,
        }
    }

    /// The same rules for the way back: the last go first, those that went before all others go after all others, and
    /// nobody soaks.
    #[must_use]
    pub fn back(mut self) -> Self {
        self.reversed = true;
        self.soak = Duration::ZERO;
        self
    }

    /// Where a cluster belongs by itself, before anybody takes turns.
    pub fn classify(&self, status: Status, since: Option<Timestamp>, now: Timestamp) -> Class {
        let due = |duration: Duration| {
            let duration = jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
            since
                .unwrap_or(now)
                .checked_add(duration)
                .unwrap_or(Timestamp::MAX)
        };
        let class = |list, status, due| Class { list, status, due };
        match status {
            Status::ToApply | Status::Overtaken => class(List::Rollout, status, None),
            Status::Skip | Status::TimeOut | Status::Suspended => class(List::Neither, status, None),
            Status::Succeeded => match due(self.soak) {
                until if now < until => class(List::Rollout, status, Some(until)),
                _ => class(List::Neither, status, None),
            },
            Status::Progressing | Status::Failed | Status::Unknown => match self.deadline.map(due) {
                Some(until) if now >= until => class(List::TimedOut, Status::TimeOut, Some(until)),
                until => class(List::Rollout, status, until),
            },
        }
    }
}

fn threshold(field: &'static str, value: Option<&IntOrString>) -> Result<Threshold, StrategyError> {
    match value {
        None => Ok(Threshold::Count(0)),
        Some(value) => parse_threshold(value).map_err(|error| StrategyError::Threshold { field, error }),
    }
}

/// What a threshold comes to in a population: at most all of them; what is less than one is what the fallback says.
pub fn threshold_size(threshold: Threshold, population: usize, fallback: usize) -> usize {
    match usize::try_from(threshold.of(population).max(0)) {
        Ok(0) => fallback,
        Ok(size) => size.min(population),
        Err(_) => population,
    }
}

/// Where a cluster belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// It is to start, under way, not well, or soaking.
    Rollout,
    /// Its time ran out in this very decision.
    TimedOut,
    /// There is nothing to do.
    Neither,
}

/// Where a cluster belongs, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Where.
    pub list: List,
    /// Its status, which is [`Status::TimeOut`] once its time has run out.
    pub status: Status,
    /// When its soak or its time ends, or ended.
    pub due: Option<Timestamp>,
}

/// How long until the first of these moments that is not past.
pub fn nearest(due: impl IntoIterator<Item = Timestamp>, now: Timestamp) -> Option<Duration> {
    let after = |due: Timestamp| due.duration_since(now);
    let positive = due.into_iter().map(after).filter(|after| after.is_positive());
    positive.min().map(|after| after.unsigned_abs())
}
