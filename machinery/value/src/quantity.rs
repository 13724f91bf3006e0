//! Resource quantities: fixed-point numbers with a suffix, such as `500m`, `1Gi` or `12e6`.
//!
//! A quantity is kept in billionths, exactly; what is finer is rounded away from zero. It is written with the
//! kind of suffix it was read with, in the form Go gives it: the greatest suffix that needs no fraction.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Billionths in a unit.
const NANO: i128 = 1_000_000_000;

/// The greatest amount that a quantity with a binary suffix may have; more is cut down to it.
const MAX_BINARY: i128 = i64::MAX as i128;

/// How many decimal digits surely fit an `i64`.
const SAFE_DIGITS: usize = 18;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `1500m`, `2k`, `3M`.
    DecimalSi,
    /// `1Ki`, `1536Mi`.
    BinarySi,
    /// `12e6`.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number is malformed, or greater than a quantity can be.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A resource quantity. Two are equal if their amounts are, however they are written.
#[derive(Clone, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text as read, where Go holds it to be canonical and so repeats it.
    written: Option<Box<str>>,
}

impl Quantity {
    /// Nothing at all.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
        written: None,
    };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = Parts::split(text)?;
        let (suffix, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        let digits = parts.whole.len().max(1) + parts.fraction.len();
        let (mut nanos, plain) = match suffix {
            Suffix::Ten(exponent) => {
                let nanos = decimal_nanos(&parts, i64::from(exponent))?;
                let plain = digits <= SAFE_DIGITS && i64::from(exponent) - parts.fraction.len() as i64 >= -9;
                (nanos, plain && parts.is_canonical_decimal(exponent))
            }
            Suffix::Two(exponent) => {
                let nanos = binary_nanos(&parts, exponent)?;
                let room = 15 - digits as i64 - i64::from(exponent) * 3 / 10 - 1;
                let plain = parts.fraction.is_empty() && room >= 0;
                (nanos, plain && parts.last_digits() % 8 != 0)
            }
        };
        let mut format = format;
        if format == Format::BinarySi {
            nanos = nanos.min(MAX_BINARY * NANO);
            if nanos > 0 && nanos < NANO {
                format = Format::DecimalSi;
            }
        }
        if parts.negative {
            nanos = -nanos;
        }
        let written = (plain || text == "0").then(|| text.into());
        Ok(Self {
            nanos,
            format,
            written,
        })
    }

    /// So many whole units.
    pub fn from_units(units: i64, format: Format) -> Self {
        Self {
            nanos: i128::from(units) * NANO,
            format,
            written: None,
        }
    }

    /// So many thousandths.
    pub fn from_milli(milli: i64, format: Format) -> Self {
        Self {
            nanos: i128::from(milli) * (NANO / 1000),
            format,
            written: None,
        }
    }

    /// How the quantity is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// The amount in units, rounded away from zero; what an `i64` cannot hold becomes the nearest it can.
    pub fn units(&self) -> i64 {
        saturate(divide_away(self.nanos, NANO))
    }

    /// The amount in thousandths, rounded and bounded as [`Self::units`].
    pub fn milli(&self) -> i64 {
        saturate(divide_away(self.nanos, NANO / 1000))
    }

    /// The sum, or none if it is greater than a quantity can be. Zero takes the other's format.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        self.combine(other, self.nanos.checked_add(other.nanos)?)
    }

    /// The difference, or none if it is greater than a quantity can be. Zero takes the other's format.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        self.combine(other, self.nanos.checked_sub(other.nanos)?)
    }

    fn combine(&self, other: &Self, nanos: i128) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Self {
            nanos,
            format,
            written: None,
        })
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = &self.written {
            return f.write_str(written);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANO == 0;
        if self.format == Format::BinarySi && whole && self.nanos.abs() >= 1024 * NANO {
            return write_binary(f, self.nanos / NANO);
        }
        write_decimal(f, self.nanos, self.format)
    }
}

fn write_binary(f: &mut fmt::Formatter<'_>, mut amount: i128) -> fmt::Result {
    let mut suffixes = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter();
    let mut suffix = "";
    while amount % 1024 == 0 {
        let Some(next) = suffixes.next() else { break };
        suffix = next;
        amount /= 1024;
    }
    write!(f, "{amount}{suffix}")
}

fn write_decimal(f: &mut fmt::Formatter<'_>, mut mantissa: i128, format: Format) -> fmt::Result {
    let mut exponent = -9;
    while mantissa % 1000 == 0 {
        mantissa /= 1000;
        exponent += 3;
    }
    let suffix = match exponent {
        0 => "",
        _ if format == Format::DecimalExponent => return write!(f, "{mantissa}e{exponent}"),
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        // There is no suffix for more.
        _ => return write!(f, "{mantissa}e{exponent}"),
    };
    write!(f, "{mantissa}{suffix}")
}

/// A quantity taken apart.
struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let (_, after) = split_digits(letters.strip_prefix(['-', '+']).unwrap_or(letters));
        if after.is_empty() {
            Ok(Self {
                negative,
                whole: whole.trim_start_matches('0'),
                fraction,
                suffix,
            })
        } else {
            Err(QuantityError::Format)
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole
            .bytes()
            .chain(self.fraction.bytes())
            .map(|digit| digit - b'0')
    }

    /// The number that the last digits make; enough of them to see what it is modulo 8.
    fn last_digits(&self) -> u32 {
        self.digits()
            .fold(0, |number, digit| (number * 10 + u32::from(digit)) % 1000)
    }

    /// Whether Go takes the text for canonical. It does not notice a sign, leading zeros or a fraction.
    fn is_canonical_decimal(&self, exponent: i32) -> bool {
        let scale = i64::from(exponent) - self.fraction.len() as i64;
        scale % 3 == 0 && !self.whole.is_empty() && !(self.last_digits() == 0 && self.digits().count() >= 3)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

enum Suffix {
    /// Times ten to this.
    Ten(i32),
    /// Times two to this.
    Two(u32),
}

fn interpret(suffix: &str) -> Option<(Suffix, Format)> {
    let decimal = |exponent| Some((Suffix::Ten(exponent), Format::DecimalSi));
    let binary = |exponent| Some((Suffix::Two(exponent), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Suffix::Ten(exponent), Format::DecimalExponent))
        }
    }
}

/// The absolute amount of `parts` times ten to `exponent`, in billionths.
fn decimal_nanos(parts: &Parts<'_>, exponent: i64) -> Result<i128, QuantityError> {
    let shift = exponent - parts.fraction.len() as i64 + 9;
    let total = parts.digits().count() as i64;
    // Digits that are worth less than a billionth only tell whether to round.
    let kept = if shift < 0 { (total + shift).max(0) } else { total };
    let mut nanos: i128 = 0;
    let mut rest = false;
    for (place, digit) in (0..total).zip(parts.digits()) {
        if place < kept {
            nanos = nanos
                .checked_mul(10)
                .and_then(|n| n.checked_add(digit.into()))
                .ok_or(QuantityError::Number)?;
        } else {
            rest |= digit != 0;
        }
    }
    if nanos != 0 && shift > 0 {
        let power = u32::try_from(shift)
            .ok()
            .and_then(|shift| 10_i128.checked_pow(shift));
        nanos = power
            .and_then(|power| nanos.checked_mul(power))
            .ok_or(QuantityError::Number)?;
    }
    Ok(nanos + i128::from(rest))
}

/// The absolute amount of `parts` times two to `exponent`, in billionths.
fn binary_nanos(parts: &Parts<'_>, exponent: u32) -> Result<i128, QuantityError> {
    let scale = 1_i128 << exponent;
    // More than this is cut down anyway, so that an overflow is the same as the greatest amount.
    let too_much = MAX_BINARY * NANO;
    let whole = parts.whole.bytes().try_fold(0_i128, |whole, digit| {
        whole
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))
            .filter(|whole| *whole <= MAX_BINARY)
    });
    let Some(units) = whole
        .and_then(|whole| whole.checked_mul(scale))
        .filter(|units| *units <= MAX_BINARY)
    else {
        return Ok(too_much);
    };
    // Of the fraction, 2^60 times 10^-18 is still exact in an i128; what is finer only rounds.
    let (near, far) = parts.fraction.split_at(parts.fraction.len().min(SAFE_DIGITS));
    let numerator: i128 = if near.is_empty() {
        0
    } else {
        near.parse().map_err(|_| QuantityError::Number)?
    };
    let denominator = 10_i128.pow(near.len() as u32);
    let scaled = numerator * scale;
    let (fraction_units, remainder) = (scaled / denominator, scaled % denominator);
    let fine = remainder * NANO;
    let mut nanos = fraction_units * NANO + fine / denominator;
    if fine % denominator != 0 || far.bytes().any(|digit| digit != b'0') {
        nanos += 1;
    }
    Ok((units * NANO + nanos).min(too_much))
}

fn divide_away(amount: i128, by: i128) -> i128 {
    let quotient = amount / by;
    if amount % by == 0 {
        quotient
    } else {
        quotient + amount.signum()
    }
}

fn saturate(amount: i128) -> i64 {
    amount.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
