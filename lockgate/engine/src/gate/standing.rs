//! How a cluster stands towards a change: what the rollout is told about it.

use jiff::Timestamp;

/// How far a cluster is with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// It has not got it yet.
    ToApply,
    /// It has not got it yet and is under way with an older one: it keeps its place, and starts as soon as it may.
    Overtaken,
    /// It may not be written. It takes no place and has all the time, but groups after its own wait for it.
    Suspended,
    /// It is left out.
    Skip,
    /// It has it, and is well.
    Succeeded,
    /// It has it, and nobody knows how it is; treated like one that is under way.
    Unknown,
    /// It has it, and is under way.
    Progressing,
    /// It has it, and is not well.
    Failed,
    /// It did not become well in time.
    TimeOut,
}

impl Status {
    /// By its name; any other text is [`Status::Unknown`].
    pub fn from_name(name: &str) -> Self {
        match name {
            "ToApply" => Self::ToApply,
            "Progressing" => Self::Progressing,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            "TimeOut" => Self::TimeOut,
            "Skip" => Self::Skip,
            "Suspended" => Self::Suspended,
            _ => Self::Unknown,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToApply | Self::Overtaken => "ToApply",
            Self::Suspended => "Suspended",
            Self::Skip => "Skip",
            Self::Succeeded => "Succeeded",
            Self::Unknown => "Unknown",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::TimeOut => "TimeOut",
        }
    }

    /// Whether it has everything before it, and nothing keeps it from starting but its turn.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::ToApply | Self::Overtaken)
    }

    /// Whether it counts against the failures that are allowed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimeOut)
    }
}

/// What is known of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing<'a> {
    /// Its name.
    pub cluster: &'a str,
    /// How far it is.
    pub status: Status,
    /// Since when; where that is not known it counts as now, so that nothing soaks through or times out unseen.
    ///
    /// A time in the future lengthens soak and deadline; [`Standing::towards`] gives none.
    pub since: Option<Timestamp>,
}

/// What a cluster was last told, and how it has been since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<'a> {
    /// Which content it was told.
    pub digest: &'a str,
    /// When.
    pub at: Timestamp,
    /// How it is.
    pub outcome: Outcome,
}

/// How a cluster is with what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is under way, or has not said anything yet.
    UnderWay,
    /// It has been well since then.
    Well(Timestamp),
    /// It has not been well since then.
    Unwell(Timestamp),
}

impl<'a> Standing<'a> {
    /// How a cluster stands towards the content that is wanted there.
    ///
    /// One that was told something else, or nothing, has everything before it, however well it is: its health speaks of the
    /// old content. For the same reason nothing that it said before it was told counts as a soak. One whose content does not
    /// change has nothing before it. Stamps of a clock that is ahead count as now.
    pub fn towards(cluster: &'a str, wanted: &str, released: Option<&Released<'_>>, now: Timestamp) -> Self {
        let (status, since) = match released.filter(|released| released.digest == wanted) {
            None => (Status::ToApply, None),
            Some(released) => match released.outcome {
                Outcome::UnderWay => (Status::Progressing, Some(released.at)),
                Outcome::Well(since) => (Status::Succeeded, Some(since.max(released.at))),
                Outcome::Unwell(since) => (Status::Failed, Some(since.max(released.at))),
            },
        };
        Self {
            cluster,
            status,
            since: since.map(|since| since.min(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_stands_towards_what_is_wanted_now() {
        let time = |second| Timestamp::from_second(second).unwrap();
        let released = |digest, outcome| {
            Some(Released {
                digest,
                at: time(100),
                outcome,
            })
        };
        let table = [
            (None, Status::ToApply, None),
            // How it is with something else says nothing.
            (released("old", Outcome::Well(time(150))), Status::ToApply, None),
            (released("old", Outcome::Unwell(time(150))), Status::ToApply, None),
            (
                released("new", Outcome::UnderWay),
                Status::Progressing,
                Some(time(100)),
            ),
            (
                released("new", Outcome::Well(time(150))),
                Status::Succeeded,
                Some(time(150)),
            ),
            (
                released("new", Outcome::Unwell(time(150))),
                Status::Failed,
                Some(time(150)),
            ),
            // A clock that is ahead makes no soak longer.
            (
                released("new", Outcome::Well(time(250))),
                Status::Succeeded,
                Some(time(200)),
            ),
            // It was well before it was told, and soaks from then on.
            (
                released("new", Outcome::Well(time(50))),
                Status::Succeeded,
                Some(time(100)),
            ),
            (
                released("new", Outcome::Unwell(time(50))),
                Status::Failed,
                Some(time(100)),
            ),
        ];
        for (released, status, since) in table {
            let standing = Standing::towards("a", "new", released.as_ref(), time(200));
            let expected = Standing {
                cluster: "a",
                status,
                since,
            };
            assert_eq!(standing, expected, "{released:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for name in [
            "ToApply",
            "Progressing",
            "Succeeded",
            "Failed",
            "TimeOut",
            "Skip",
            "Suspended",
            "Unknown",
        ] {
            assert_eq!(Status::from_name(name).name(), name);
        }
        assert_eq!(Status::from_name("succeeded"), Status::Unknown);
        assert_eq!(Status::from_name(""), Status::Unknown);
    }
}
