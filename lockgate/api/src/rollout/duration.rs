//! Durations as Kubernetes writes them: numbers with units, one after the other, such as `1h30m`.

use std::fmt::Write as _;
use std::time::Duration;

/// The longest duration, in nanoseconds: what other clients can hold.
const LONGEST: u128 = i64::MAX as u128;

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A text that is no duration, or none that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// It cannot be read.
    Malformed(String),
    /// It is less than nothing.
    Negative(String),
    /// It is longer than about 292 years.
    TooLong(String),
}

impl std::fmt::Display for DurationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(text) => write!(
                f,
                "{text:?} is not a duration: write numbers with the units h, m and s, such as \"90s\" or \"1h30m\""
            ),
            Self::Negative(text) => write!(f, "{text:?} is negative: write a duration such as \"90s\""),
            Self::TooLong(text) => write!(f, "{text:?} is longer than 292 years"),
        }
    }
}

impl std::error::Error for DurationError {}

/// A duration such as `90s`, `1h30m`, `1.5h` or `0`.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(text.to_owned());
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return Err(malformed());
    }
    let mut total: u128 = 0;
    // The one number that needs no unit.
    if rest == "0" {
        rest = "";
    }
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(malformed());
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, nanoseconds) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(malformed)?;
        let too_long = || DurationError::TooLong(text.to_owned());
        let whole: u128 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| too_long())?
        };
        // Nobody counts parts of a nanosecond.
        let fraction = &fraction[..fraction.len().min(18)];
        let part = fraction.parse::<u128>().unwrap_or(0) * nanoseconds / 10_u128.pow(fraction.len() as u32);
        total = whole
            .checked_mul(*nanoseconds)
            .and_then(|whole| total.checked_add(whole)?.checked_add(part))
            .filter(|total| *total <= LONGEST)
            .ok_or_else(too_long)?;
        rest = after;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative(text.to_owned()));
    }
    Ok(Duration::from_nanos(u64::try_from(total).unwrap_or(u64::MAX)))
}

/// A deadline: `None` and empty mean that there is none. It begins with a whole number of hours, minutes or seconds.
pub fn parse_deadline(text: &str) -> Result<Option<Duration>, DurationError> {
    if text.is_empty() || text == "None" {
        return Ok(None);
    }
    let (number, rest) = digits(text);
    if number.is_empty() || !rest.starts_with(['h', 'm', 's']) {
        return Err(DurationError::Malformed(text.to_owned()));
    }
    parse_duration(text).map(Some)
}

/// A duration in the shortest form, to the second where it is longer than one: `1h30m`, `90ms`, `0s`.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 && !duration.is_zero() {
        return match duration.as_millis() {
            0 => format!("{}ns", duration.as_nanos()),
            milliseconds => format!("{milliseconds}ms"),
        };
    }
    let mut text = String::new();
    for (value, unit) in [
        (seconds / 3600, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ] {
        if value > 0 {
            let _ = write!(text, "{value}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}
