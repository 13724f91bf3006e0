//! Whether a schedule of a cron job can be read.

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds {
        min: 0,
        max: 59,
        names: &[],
    },
    Bounds {
        min: 0,
        max: 23,
        names: &[],
    },
    Bounds {
        min: 1,
        max: 31,
        names: &[],
    },
    Bounds {
        min: 1,
        max: 12,
        names: &MONTHS,
    },
    Bounds {
        min: 0,
        max: 6,
        names: &DAYS,
    },
];

/// Reads a schedule of five fields or a word such as `@daily`; says what is wrong with it.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        rest = rest.split_once(' ').map_or("", |(_, rest)| rest).trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(word: &str) -> Result<(), String> {
    const WORDS: [&str; 7] = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if WORDS.contains(&word) {
        return Ok(());
    }
    match word.strip_prefix("@every ") {
        Some(text) if is_duration(text) => Ok(()),
        Some(text) => Err(format!(
            "failed to parse duration {word}: time: invalid duration {text:?}"
        )),
        None => Err(format!("unrecognized descriptor: {word}")),
    }
}

/// `1h30m`: numbers, each with a unit.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut any = false;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        if number.parse::<f64>().is_err() || !matches!(unit, "ns" | "us" | "µs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        any = true;
        rest = tail;
    }
    any
}

fn range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = expression.split('/').collect();
    let ends: Vec<&str> = parts.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [one] => {
            let one = number(one, bounds)?;
            (one, one)
        }
        [low, high] => (number(low, bounds)?, number(high, bounds)?),
        [low, ..] => {
            number(low, bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
        [] => (0, 0),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.max;
            }
            integer(step)?
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    if start < bounds.min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({}): {expression}",
            bounds.min
        ));
    }
    if end > bounds.max {
        return Err(format!(
            "end of range ({end}) above maximum ({}): {expression}",
            bounds.max
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {expression}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let named = bounds
        .names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    match named.and_then(|at| u64::try_from(at).ok()) {
        Some(at) => Ok(at + bounds.min),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for good in [
            "*/5 * * * *",
            "@daily",
            "@every 1h30m",
            "0 0 1,15 JAN-dec mon",
            "1-59/2 * ? * 0",
            "5/10 * * * *",
        ] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, says) in [
            ("bad", "expected exactly 5 fields, found 1: [bad]"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(bad), Err(says.to_owned()), "{bad}");
        }
    }
}
