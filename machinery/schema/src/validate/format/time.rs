//! Dates, times and durations.

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (digits(&bytes[..4]), digits(&bytes[5..7]), digits(&bytes[8..]))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn digits(bytes: &[u8]) -> Option<u32> {
    bytes.iter().try_fold(0, |value, b| {
        b.is_ascii_digit().then(|| value * 10 + u32::from(b - b'0'))
    })
}

/// A date, `t`, a time of day with an optional fraction, and a zone. Leap seconds are not accepted.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.as_bytes().split_at_checked(8) else {
        return false;
    };
    if clock[2] != b':' || clock[5] != b':' {
        return false;
    }
    let in_range = |at: usize, max: u32| digits(&clock[at..at + 2]).is_some_and(|value| value <= max);
    if !in_range(0, 23) || !in_range(3, 59) || !in_range(6, 59) {
        return false;
    }
    // Any one character may start the fraction, so a zone is looked for first.
    is_zone(rest) || {
        let Some(separator) = std::str::from_utf8(rest)
            .ok()
            .and_then(|rest| rest.chars().next())
        else {
            return false;
        };
        let fraction = &rest[separator.len_utf8()..];
        let end = fraction
            .iter()
            .position(|b| !b.is_ascii_digit())
            .unwrap_or(fraction.len());
        end > 0 && is_zone(&fraction[end..])
    }
}

fn is_zone(bytes: &[u8]) -> bool {
    match bytes {
        b"z" => true,
        [b'+' | b'-', zone @ ..] => {
            zone.len() == 5 && zone[2] == b':' && digits(&zone[..2]).is_some() && digits(&zone[3..]).is_some()
        }
        _ => false,
    }
}

/// `1h30m`, or anything in which a number with a unit can be found (`3 days`).
pub(super) fn is_duration(text: &str) -> bool {
    is_plain_duration(text) || has_worded_duration(text)
}

fn is_plain_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Ok(amount) = rest[..end].trim_end_matches('.').parse::<f64>() else {
            return false;
        };
        rest = &rest[end..];
        let units = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("µs", 1e-6),
            ("μs", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("m", 60.0),
            ("h", 3600.0),
        ];
        let Some((unit, factor)) = units.iter().find(|(unit, _)| rest.starts_with(unit)) else {
            return false;
        };
        rest = &rest[unit.len()..];
        seconds += amount * factor;
    }
    seconds < 9_223_372_036.854_776
}

fn has_worded_duration(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == 'µ';
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let number = at;
        while at < chars.len() && chars[at].is_ascii_digit() {
            at += 1;
        }
        if at - number > 18 {
            return false;
        }
        while at < chars.len() && matches!(chars[at], ' ' | '\t' | '\n' | '\u{c}' | '\r') {
            at += 1;
        }
        let unit = at;
        while at < chars.len() && letter(chars[at]) {
            at += 1;
        }
        let unit: String = chars[unit..at].iter().collect::<String>().to_lowercase();
        let exact = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
        let prefixes = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
        if exact.contains(&unit.as_str()) || prefixes.iter().any(|prefix| unit.starts_with(prefix)) {
            return true;
        }
    }
    false
}
