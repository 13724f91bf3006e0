//! Numbers of clusters that may also be percentages.

use super::IntOrString;

/// The parts of a percent that a percentage is counted in, so that no binary fraction ever rounds it.
const PARTS: i64 = 1_000_000_000;
/// More digits than any percentage needs, and few enough that nothing overflows.
const MAX_DIGITS: usize = 9;

/// A number of clusters, or a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many.
    Count(i64),
    /// So many billionths of a percent.
    Percent(i64),
}

impl Threshold {
    /// The share of a population, rounded up; a number is itself.
    pub fn of(self, population: usize) -> i128 {
        match self {
            Self::Count(count) => count.into(),
            Self::Percent(parts) => {
                let whole = 100 * i128::from(PARTS);
                let share = i128::from(parts) * population as i128;
                share.div_euclid(whole) + i128::from(share.rem_euclid(whole) > 0)
            }
        }
    }
}

/// A text that is no percentage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError(pub String);

impl std::fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(text) = self;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return write!(f, "{text:?} is a text: write the number {text} without quotes");
        }
        write!(
            f,
            "{text:?} is neither a number nor a percentage: write a number such as 3, or a text such as \"25%\""
        )
    }
}

impl std::error::Error for ThresholdError {}

/// What a threshold means: a number as it is, or a decimal number of percent. A number in quotes is neither.
pub fn parse_threshold(value: &IntOrString) -> Result<Threshold, ThresholdError> {
    match value {
        IntOrString::Int(count) => Ok(Threshold::Count(*count)),
        IntOrString::Text(text) => text
            .strip_suffix('%')
            .and_then(percent)
            .map(Threshold::Percent)
            .ok_or_else(|| ThresholdError(text.clone())),
    }
}

/// A decimal number in billionths.
fn percent(text: &str) -> Option<i64> {
    let (negative, number) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.len() <= MAX_DIGITS && part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let value = |part: &str| part.parse::<i64>().ok().or(part.is_empty().then_some(0));
    let parts = value(whole)? * PARTS + value(&format!("{fraction:0<MAX_DIGITS$}"))?;
    Some(if negative { -parts } else { parts })
}
