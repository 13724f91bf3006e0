//! Times as Go reads and prints them: RFC 3339 in seconds, and with exactly six digits of a second.
//!
//! Go's parser is laxer than the standard in some places (an hour of one digit, a comma before the fraction, an
//! offset of 24:60), and its errors name the rest of the text at which it gave up; both are kept.

/// The two layouts of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Seconds; a fraction in the input is dropped.
    Seconds,
    /// Exactly six digits of a second.
    Micros,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// An instant in UTC: seconds since 1970 and nanoseconds within the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Seconds of the instant Go's zero time stands for, the start of the year 1.
pub(crate) const ZERO_SECONDS: i64 = -62_135_596_800;
/// The first second of the year 0, before which Go's text has a sign and cannot be read back.
pub(crate) const FIRST_SECONDS: i64 = -62_167_219_200;
/// The last second of the year 9999.
pub(crate) const LAST_SECONDS: i64 = 253_402_300_799;

impl Instant {
    /// Go's zero time, which is written as `null`.
    pub(crate) fn is_zero(self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }

    /// The instant in the layout.
    pub(crate) fn format(self, layout: Layout) -> String {
        let days = self.seconds.div_euclid(86_400);
        let rest = self.seconds.rem_euclid(86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let micros = match layout {
            Layout::Seconds => String::new(),
            Layout::Micros => format!(".{:06}", self.nanos / 1000),
        };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{micros}Z")
    }
}

/// Reads a time, or gives the text of Go's error.
pub(crate) fn parse(layout: Layout, text: &str) -> Result<Instant, String> {
    Parser {
        layout,
        all: text,
        rest: text.as_bytes(),
    }
    .run()
}

struct Parser<'a> {
    layout: Layout,
    all: &'a str,
    rest: &'a [u8],
}

impl Parser<'_> {
    fn run(mut self) -> Result<Instant, String> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", true)?;
        self.in_range((1..=12).contains(&month), "month")?;
        self.literal("-")?;
        let day = self.number("02", true)?;
        self.literal("T")?;
        let hour = self.number("15", false)?;
        self.in_range(hour < 24, "hour")?;
        self.literal(":")?;
        let minute = self.number("04", true)?;
        self.in_range(minute < 60, "minute")?;
        self.literal(":")?;
        let second = self.number("05", true)?;
        self.in_range(second < 60, "second")?;
        let nanos = match self.layout {
            Layout::Seconds => self.loose_fraction(),
            Layout::Micros => self.micros()?,
        };
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(self.message(&format!(": extra text: {}", quote(self.rest))));
        }
        if day < 1 || day > days_in(month, year) {
            return Err(self.message(": day out of range"));
        }
        let seconds =
            days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Instant { seconds, nanos })
    }

    fn year(&mut self) -> Result<i64, String> {
        match self.rest.first_chunk::<4>() {
            Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = &self.rest[4..];
                Ok(digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
            }
            _ => Err(self.cannot(self.rest, "2006")),
        }
    }

    fn literal(&mut self, want: &str) -> Result<(), String> {
        match self.rest.split_first() {
            Some((first, rest)) if *first == want.as_bytes()[0] => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.cannot(self.rest, want)),
        }
    }

    fn number(&mut self, layout: &str, two_digits: bool) -> Result<i64, String> {
        let (value, rest) =
            two_digit_number(self.rest, two_digits).ok_or_else(|| self.cannot(self.rest, layout))?;
        self.rest = rest;
        Ok(value)
    }

    /// A fraction that the layout does not have is read and has no effect on the text that is written.
    fn loose_fraction(&mut self) -> u32 {
        if !matches!(self.rest, [b'.' | b',', digit, ..] if digit.is_ascii_digit()) {
            return 0;
        }
        let digits = self.rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let nanos = fraction(&self.rest[1..=digits]);
        self.rest = &self.rest[1 + digits..];
        nanos
    }

    fn micros(&mut self) -> Result<u32, String> {
        match self.rest.first_chunk::<7>() {
            Some([b'.' | b',', digits @ ..]) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = &self.rest[7..];
                Ok(fraction(digits))
            }
            _ => Err(self.cannot(self.rest, ".000000")),
        }
    }

    fn offset(&mut self) -> Result<i64, String> {
        if let Some((b'Z', rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(0);
        }
        let held = self.rest;
        let Some([sign, h1, h2, b':', m1, m2]) = self.rest.first_chunk::<6>() else {
            return Err(self.cannot(held, "Z07:00"));
        };
        self.rest = &held[6..];
        let hours = two_digit_number(&[*h1, *h2], true).map(|n| n.0);
        let minutes = hours.and_then(|_| two_digit_number(&[*m1, *m2], true).map(|n| n.0));
        // Out of range wins over malformed, and allows the odd 24 hours and 60 minutes.
        self.in_range(hours.unwrap_or(0) <= 24, "time zone offset hour")?;
        self.in_range(minutes.unwrap_or(0) <= 60, "time zone offset minute")?;
        let sign = match sign {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(self.cannot(held, "Z07:00")),
        };
        match (hours, minutes) {
            (Some(hours), Some(minutes)) => Ok(sign * (hours * 3600 + minutes * 60)),
            _ => Err(self.cannot(held, "Z07:00")),
        }
    }

    fn in_range(&self, holds: bool, what: &str) -> Result<(), String> {
        if holds {
            Ok(())
        } else {
            Err(self.message(&format!(": {what} out of range")))
        }
    }

    fn cannot(&self, rest: &[u8], layout: &str) -> String {
        let (all, whole) = (quote(self.all.as_bytes()), self.layout.text());
        format!(
            "parsing time {all} as \"{whole}\": cannot parse {} as \"{layout}\"",
            quote(rest)
        )
    }

    fn message(&self, message: &str) -> String {
        format!("parsing time {}{message}", quote(self.all.as_bytes()))
    }
}

fn two_digit_number(text: &[u8], fixed: bool) -> Option<(i64, &[u8])> {
    match text {
        [a, b, rest @ ..] if a.is_ascii_digit() && b.is_ascii_digit() => {
            Some((i64::from(a - b'0') * 10 + i64::from(b - b'0'), rest))
        }
        [a, rest @ ..] if a.is_ascii_digit() && !fixed => Some((i64::from(a - b'0'), rest)),
        _ => None,
    }
}

fn fraction(digits: &[u8]) -> u32 {
    (0..9).fold(0, |n, at| {
        n * 10 + digits.get(at).map_or(0, |d| u32::from(d - b'0'))
    })
}

/// Text in quotes as Go's time package does it: everything beyond printable ASCII byte by byte in hex.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn days_in(month: i64, year: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01, counted in years that start in March so that the leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bounds_are_the_years_they_say() {
        let at = |seconds| Instant { seconds, nanos: 0 }.format(Layout::Seconds);
        assert_eq!(at(ZERO_SECONDS), "0001-01-01T00:00:00Z");
        assert_eq!(at(FIRST_SECONDS), "0000-01-01T00:00:00Z");
        assert_eq!(at(LAST_SECONDS), "9999-12-31T23:59:59Z");
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(seconds in FIRST_SECONDS..=LAST_SECONDS, micros in 0u32..1_000_000) {
            let instant = Instant { seconds, nanos: micros * 1000 };
            prop_assert_eq!(parse(Layout::Micros, &instant.format(Layout::Micros)), Ok(instant));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*", near in "[0-9]{4}-[0-9]{1,2}-[0-9]{2}[T ][0-9:.,Z+é-]{0,20}") {
            let _ = parse(Layout::Seconds, &text);
            let _ = parse(Layout::Seconds, &near);
            let _ = parse(Layout::Micros, &near);
        }
    }
}
