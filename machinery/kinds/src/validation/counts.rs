//! Numbers that may also be percentages, such as `maxSurge`.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;

/// A number that is not negative, or a percentage.
pub(super) fn number_or_percent(value: &Value, path: &FieldPath, report: &mut Report) {
    match value.as_str() {
        Some(text) => report.messages(path, text, rules::percent(text)),
        None => report.nonnegative(path, value),
    }
}

/// A percentage is not above 100%.
pub(super) fn at_most_all(value: &Value, path: &FieldPath, report: &mut Report) {
    if percent(value).is_some_and(|percent| percent > 100) {
        report.invalid(path, value, "must not be greater than 100%");
    }
}

/// The number, whether or not it is a percentage.
pub(super) fn value(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or_default()
}

fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}
