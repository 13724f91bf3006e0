//! Times of entries: whole seconds, written in UTC.

use std::fmt;

use jiff::Timestamp;

/// A point in time, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Timestamp);

impl Time {
    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        let time: Timestamp = text.parse().ok()?;
        Self::from_seconds(time.as_second())
    }

    /// The time so many seconds after 1970, if the calendar has it.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Timestamp::from_second(seconds).ok().map(Self)
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.as_second()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_in_utc() {
        let cases = [
            ("2024-05-06T07:08:09Z", Some("2024-05-06T07:08:09Z")),
            ("2024-05-06T09:08:09.987+02:00", Some("2024-05-06T07:08:09Z")),
            ("1969-12-31T23:59:59Z", Some("1969-12-31T23:59:59Z")),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Time::parse(text).map(|time| time.to_string()).as_deref(),
                expected
            );
        }
    }
}
