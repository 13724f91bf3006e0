//! Times as people read them: how long ago something happened, in two or three significant figures.
//!
//! The current time is always given by the caller. A time that lies slightly in the future (less than two
//! seconds: clocks differ) counts as now; one further ahead prints `<invalid>`.

use jiff::{SignedDuration, Timestamp};
use machinery_value::Value;

/// What stands for a time that was never set.
pub const UNKNOWN: &str = "<unknown>";
/// What stands for a time that cannot be read, or that lies in the future.
pub const INVALID: &str = "<invalid>";

/// The zero time of the API: it is written out by some clients and means "not set".
const ZERO: &str = "0001-01-01T00:00:00Z";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
/// The longest time that can be told apart: 2^63 nanoseconds. Anything longer prints as this.
const LONGEST: i64 = i64::MAX / 1_000_000_000;

/// Prints a duration: `5s`, `2m5s`, `15m`, `3h20m`, `20h`, `2d3h`, `8d`, `2y30d`, `9y`.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().clamp(-LONGEST, LONGEST);
    match seconds {
        ..-1 => INVALID.to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Two figures with their units; the second is left out when it is zero.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

/// How long before `now` the time was; `<unknown>` when there is none.
pub fn since(time: Option<Timestamp>, now: Timestamp) -> String {
    match time {
        Some(time) => human_duration(now.duration_since(time)),
        None => UNKNOWN.to_owned(),
    }
}

/// Reads a time or a time with microseconds out of a built-in object. Missing, null, zero and unreadable
/// times (which cannot have passed validation) all count as not set.
pub fn time_of(value: &Value) -> Option<Timestamp> {
    value.as_str().filter(|text| *text != ZERO).and_then(parse)
}

/// The cell of a `date` column of a custom resource, where the text may be anything.
pub fn date_cell(text: &str, now: Timestamp) -> String {
    if text.is_empty() || text == "null" || text == ZERO {
        return UNKNOWN.to_owned();
    }
    parse(text).map_or_else(|| INVALID.to_owned(), |time| since(Some(time), now))
}

/// Reads RFC 3339 and nothing more lenient: a `T` in the middle, seconds, and `Z` or an offset in `±hh:mm`.
fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    if bytes.len() <= shape.len() || !text.is_ascii() {
        return None;
    }
    let fits = shape.iter().zip(bytes).all(|(want, got)| match want {
        b'0' => got.is_ascii_digit(),
        _ => want == got,
    });
    // A leap second is refused, not rounded.
    if !fits || &bytes[17..19] == b"60" {
        return None;
    }
    let rest = &text[shape.len()..];
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return None;
            }
            zone
        }
        None => rest,
    };
    let offset_fits = match zone.as_bytes() {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    };
    offset_fits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_print_in_two_or_three_figures() {
        let cases: &[(i64, &str)] = &[
            (-3, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (70, "70s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 20 * MINUTE + 59, "3h20m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (51 * HOUR, "2d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 30 * DAY, "2y30d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (100 * YEAR, "100y"),
            (i64::MAX, "292y"),
            (i64::MIN, "<invalid>"),
        ];
        for (seconds, want) in cases {
            assert_eq!(
                human_duration(SignedDuration::from_secs(*seconds)),
                *want,
                "{seconds}"
            );
        }
        assert_eq!(human_duration(SignedDuration::from_millis(-1999)), "0s");
        assert_eq!(human_duration(SignedDuration::from_millis(119_999)), "119s");
    }

    #[test]
    fn dates_of_custom_resources_may_be_anything() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let cases = [
            ("2026-01-01T23:59:55Z", "5s"),
            ("2026-01-01T23:59:55.999999Z", "4s"),
            ("2026-01-02T02:59:50+03:00", "10s"),
            ("2026-01-02T00:00:03Z", "<invalid>"),
            ("", "<unknown>"),
            ("null", "<unknown>"),
            ("0001-01-01T00:00:00Z", "<unknown>"),
            ("1600-01-01T00:00:00Z", "292y"),
            ("2026-01-01", "<invalid>"),
            ("2026-01-01 23:59:55Z", "<invalid>"),
            ("2026-01-01t23:59:55z", "<invalid>"),
            ("2026-01-01T23:59:55", "<invalid>"),
            ("2026-01-01T23:59:55.Z", "<invalid>"),
            ("2026-01-01T23:59:60Z", "<invalid>"),
            ("2026-13-01T23:59:55Z", "<invalid>"),
            ("2026-01-01T23:59:55Z[UTC]", "<invalid>"),
            ("2026-01-01T23:59:5é", "<invalid>"),
            ("yesterday", "<invalid>"),
        ];
        for (text, want) in cases {
            assert_eq!(date_cell(text, now), want, "{text}");
        }
    }

    #[test]
    fn a_time_that_is_not_set_is_unknown() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        for value in [json!(null), json!("0001-01-01T00:00:00Z"), json!(""), json!(7)] {
            assert_eq!(since(time_of(&value), now), UNKNOWN, "{value}");
        }
        assert_eq!(since(time_of(&json!("2026-01-01T23:00:00.000001Z")), now), "59m");
    }
}
