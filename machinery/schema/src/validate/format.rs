//! The string formats that the server enforces in custom resources.
//!
//! All other formats (among them `int32` and `int64`) are documentation.

mod net;
mod time;

use std::sync::LazyLock;

use regex::Regex;

/// A format that restricts strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are the formats of the same names")]
pub enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

const NAMES: [(&str, Format); 26] = [
    ("bsonobjectid", Format::BsonObjectId),
    ("byte", Format::Byte),
    ("cidr", Format::Cidr),
    ("creditcard", Format::CreditCard),
    ("date", Format::Date),
    ("datetime", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hexcolor", Format::HexColor),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("k8slongname", Format::LongName),
    ("k8sshortname", Format::ShortName),
    ("mac", Format::Mac),
    ("password", Format::Password),
    ("rgbcolor", Format::RgbColor),
    ("ssn", Format::Ssn),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
];

static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let edge = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let alone = format!("{edge}((-?{edge}{{0,62}})?)");
    let qualified = format!(r"({edge}(({inner}{{0,61}}{edge})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}}");
    Regex::new(&format!("^({alone}|{qualified})$")).ok()
});

static CREDIT_CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let families = [
        "4[0-9]{12}(?:[0-9]{3})?",
        "5[1-5][0-9]{14}",
        "6(?:011|5[0-9][0-9])[0-9]{12}",
        "3[47][0-9]{13}",
        "3(?:0[0-5]|[68][0-9])[0-9]{11}",
        "(?:2131|1800|35[0-9]{3})[0-9]{11}",
    ];
    Regex::new(&format!("^(?:{})$", families.join("|"))).ok()
});

impl Format {
    /// The format of this name, if it is enforced. Dashes in names do not count.
    pub fn known(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(|c| *c != '-').collect();
        NAMES
            .iter()
            .find(|(known, _)| *known == plain)
            .map(|(_, format)| *format)
    }

    /// The name, without dashes.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, format)| *format == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether a string has this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Byte => is_base64(text),
            Self::Cidr => net::is_cidr(text),
            Self::CreditCard => is_credit_card(text),
            Self::Date => time::is_date(text),
            Self::DateTime => time::is_date_time(text),
            Self::Duration => time::is_duration(text),
            Self::Email => net::is_email(text),
            Self::HexColor => is_hex_color(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => net::is_ipv4(text),
            Self::Ipv6 => net::is_ipv6(text),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::LongName => text.len() <= 253 && text.split('.').all(is_name_segment),
            Self::Mac => net::is_mac(text),
            Self::Password => true,
            Self::RgbColor => is_rgb_color(text),
            Self::ShortName => text.len() <= 63 && is_name_segment(text),
            Self::Ssn => is_ssn(text),
            Self::Uri => net::is_request_uri(text),
            Self::Uuid => is_uuid(text, None, false),
            Self::Uuid3 => is_uuid(text, Some(b'3'), false),
            Self::Uuid4 => is_uuid(text, Some(b'4'), true),
            Self::Uuid5 => is_uuid(text, Some(b'5'), true),
        }
    }
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_name_segment(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if edge(*first) && edge(*last))
        && bytes.iter().all(|b| edge(*b) || *b == b'-')
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split(',').collect();
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{c}' | '\r');
    parts.len() == 3
        && parts.iter().all(|part| {
            let part = part.trim_matches(space);
            let plain = part == "0" || !part.starts_with('0');
            plain && part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u8>().is_ok()
        })
}

fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(index, b)| match index {
            3 | 6 => *b == b'-' || *b == b' ',
            _ => b.is_ascii_digit(),
        })
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(|b| !matches!(b, b'-' | b' ' | b'\t' | b'\n' | 0xc | b'\r'))
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let [first @ .., last] = digits.as_slice() else {
        return false;
    };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let sum: u32 = first
        .iter()
        .enumerate()
        .map(|(i, d)| (i as u32 + 1) * u32::from(d - b'0'))
        .sum();
    let check = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { 1 } else { 3 } * u32::from(d - b'0'))
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(&digits))
    {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, d)| {
            let value = u32::from(d - b'0') * if i % 2 == 1 { 2 } else { 1 };
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Dashes are optional, each on its own.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((head, tail)) = rest.split_at_checked(length) else {
            return false;
        };
        let fits = match group {
            2 => version.is_none_or(|version| head[0] == version),
            3 => !variant || matches!(head[0], b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
            _ => true,
        };
        if !fits || !head.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}
