//! Why a cluster is where it is, in words.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::rollout::duration_text;

use super::groups::DecisionGroup;

/// Why a cluster is where it is. Its text is for people; [`Reason::told`] lets them choose how times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<'a> {
    /// It starts, for everybody does.
    GoesWithAll,
    /// It starts with its group.
    GoesWithGroup {
        /// Which.
        group: &'a DecisionGroup,
        /// Whether that goes before the others.
        mandatory: bool,
    },
    /// It starts, for there is room.
    TakesPlace {
        /// How many places are taken, by all that start now, too.
        taken: usize,
        /// Of how many.
        of: usize,
    },
    /// It has started.
    UnderWay {
        /// When its time runs out.
        until: Option<Timestamp>,
    },
    /// It is not well, and may become so.
    Failed {
        /// When its time runs out.
        until: Option<Timestamp>,
    },
    /// It is well, and must stay so for a while.
    Soaks {
        /// Until then.
        until: Timestamp,
    },
    /// It did not become well in time.
    TimedOut {
        /// How long it had.
        after: Duration,
        /// Whether it had failed before, and had that long to recover.
        failed: bool,
    },
    /// It was found before that it did not become well in time.
    TimedOutEarlier,
    /// There is nothing to do.
    Done,
    /// It is left out.
    Skipped,
    /// It may not be written.
    Suspended,
    /// It is not among the selected clusters any more.
    NotSelected,
    /// It waits, for too many failed.
    Breach(Breach<'a>),
    /// It waits for a place.
    NoPlace {
        /// How many are taken.
        taken: usize,
        /// Of how many.
        of: usize,
    },
    /// It waits for a group that goes before.
    WaitsForGroup {
        /// Which.
        group: &'a DecisionGroup,
        /// Whether that goes before all others.
        mandatory: bool,
        /// Who keeps it there.
        holdup: Holdup<'a>,
    },
}

/// More clusters failed than may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach<'a> {
    /// How many failed.
    pub failures: usize,
    /// How many may.
    pub allowed: usize,
    /// The first of them by name.
    pub first: &'a str,
    /// In which group; `None`: among all clusters.
    pub group: Option<&'a DecisionGroup>,
    /// Whether that is a group in which none may.
    pub mandatory: bool,
}

/// Who keeps a group from being settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdup<'a> {
    /// The first of them by name.
    pub cluster: &'a str,
    /// How it is.
    pub state: HoldupState,
    /// How many more there are.
    pub others: usize,
}

/// How a cluster is that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldupState {
    /// It starts now.
    Starts,
    /// It has started.
    UnderWay,
    /// It is well, and must stay so until then.
    Soaks(Timestamp),
    /// It may not be written.
    Suspended,
}

impl Reason<'_> {
    /// The reason, with times as somebody writes them.
    pub fn told(&self, time: impl Fn(Timestamp) -> String) -> String {
        match self {
            Self::GoesWithAll => "goes now, as every cluster does".to_owned(),
            Self::GoesWithGroup { group, mandatory } => {
                format!("goes now, with {}{group}", mandatory_word(*mandatory))
            }
            Self::TakesPlace { taken, of } => format!("goes now: {} taken with it", places(*taken, *of)),
            Self::UnderWay { until: None } => "under way".to_owned(),
            Self::UnderWay { until: Some(until) } => format!("under way, has until {}", time(*until)),
            Self::Failed { until: None } => "failed, and has no deadline".to_owned(),
            Self::Failed { until: Some(until) } => format!("failed, has until {} to recover", time(*until)),
            Self::Soaks { until } => format!("succeeded, soaks until {}", time(*until)),
            Self::TimedOut { after, failed } => {
                let what = if *failed { "recover" } else { "succeed" };
                format!("timed out: did not {what} within {}", duration_text(*after))
            }
            Self::TimedOutEarlier => "timed out earlier".to_owned(),
            Self::Done => "done".to_owned(),
            Self::Skipped => "skipped".to_owned(),
            Self::Suspended => "suspended".to_owned(),
            Self::NotSelected => "is not selected any more".to_owned(),
            Self::Breach(breach) => format!("held: {breach}"),
            Self::NoPlace { taken, of } => format!("waits: {} taken", places(*taken, *of)),
            Self::WaitsForGroup {
                group,
                mandatory,
                holdup,
            } => format!(
                "waits for {}{group}: {}",
                mandatory_word(*mandatory),
                holdup.told(time)
            ),
        }
    }
}

impl Holdup<'_> {
    fn told(&self, time: impl Fn(Timestamp) -> String) -> String {
        let state = match self.state {
            HoldupState::Starts => "starts now".to_owned(),
            HoldupState::UnderWay => "is under way".to_owned(),
            HoldupState::Suspended => "is suspended".to_owned(),
            HoldupState::Soaks(until) => format!("soaks until {}", time(until)),
        };
        match self.others {
            0 => format!("{} {state}", self.cluster),
            1 => format!("{} {state}, and one more is not done", self.cluster),
            others => format!("{} {state}, and {others} more are not done", self.cluster),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|time| time.to_string()))
    }
}

impl fmt::Display for Breach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failures {
            1 => write!(f, "{} failed", self.first)?,
            failures => write!(f, "{failures} clusters failed")?,
        }
        if let Some(group) = self.group {
            write!(f, " in {}{group}", mandatory_word(self.mandatory))?;
        }
        if self.failures > 1 {
            write!(f, ", {} first by name", self.first)?;
        }
        match self.allowed {
            0 => write!(f, ", and none may"),
            allowed => write!(f, ", and at most {allowed} may"),
        }
    }
}

fn places(taken: usize, of: usize) -> String {
    let verb = if taken == 1 { "is" } else { "are" };
    format!("{taken} of {of} places {verb}")
}

fn mandatory_word(mandatory: bool) -> &'static str {
    if mandatory { "mandatory " } else { "" }
}
