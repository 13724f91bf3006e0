//! Addresses of all sorts.

use std::net::Ipv6Addr;

/// Dotted decimals; leading zeros are tolerated, as the server does for the sake of old objects.
fn parse_ipv4(text: &str) -> bool {
    let mut count = 0;
    text.split('.').all(|part| {
        count += 1;
        let short = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        short
            && part.trim_start_matches('0').len() <= 3
            && part.parse::<u32>().is_ok_and(|value| value <= 255)
    }) && count == 4
}

pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.')
        && if text.contains(':') {
            text.parse::<Ipv6Addr>().is_ok()
        } else {
            parse_ipv4(text)
        }
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let max = if parse_ipv4(address) {
        32
    } else if is_ipv6(address) {
        128
    } else {
        return false;
    };
    !length.is_empty()
        && length.bytes().all(|b| b.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|length| length <= max)
}

/// Six, eight or twenty bytes, in pairs with `:` or `-`, or in fours with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, group) = match text.as_bytes().get(2) {
        Some(b':') => (':', 2),
        Some(b'-') => ('-', 2),
        _ => ('.', 4),
    };
    let mut groups = 0;
    let well_formed = text.split(separator).all(|part| {
        groups += 1;
        part.len() == group && part.bytes().all(|b| b.is_ascii_hexdigit())
    });
    well_formed && matches!(groups * group / 2, 6 | 8 | 20)
}

/// An absolute URI or an absolute path, as an HTTP request line may hold.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        // What follows a scheme without a slash is opaque.
        return scheme;
    }
    let path = match rest.strip_prefix("//").filter(|_| scheme) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return false;
            }
            path
        }
        None => rest,
    };
    escapes_are_whole(path)
}

/// Whether there is a scheme, and what follows it; nothing if the text starts with a colon.
fn split_scheme(text: &str) -> Option<(bool, &str)> {
    for (index, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((true, &text[index + 1..])),
            _ => break,
        }
    }
    Some((false, text))
}

fn is_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
            if !user.bytes().all(allowed) || !escapes_are_whole(user) {
                return false;
            }
            host
        }
        None => authority,
    };
    let port = if host.starts_with('[') {
        match host.rfind(']') {
            Some(end) => &host[end + 1..],
            None => return false,
        }
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let allowed = |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]<>\"%".contains(&b);
    (port.is_empty() || port.starts_with(':') && port[1..].bytes().all(|b| b.is_ascii_digit()))
        && host.bytes().all(allowed)
        && escapes_are_whole(host)
}

fn escapes_are_whole(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'%')
        .all(|(at, _)| {
            bytes
                .get(at + 1..at + 3)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        })
}

/// `a@b`, or `Name <a@b>`.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    if let Some(open) = text.rfind('<') {
        let Some(address) = text[open + 1..].strip_suffix('>') else {
            return false;
        };
        let name = text[..open].trim_end_matches([' ', '\t']);
        let quoted = name.len() > 1 && name.starts_with('"') && name.ends_with('"');
        let words = name
            .chars()
            .all(|c| is_atom_char(c) || matches!(c, ' ' | '\t' | '.'));
        return (quoted || words) && is_address(address);
    }
    is_address(text)
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inside| inside.parse::<std::net::IpAddr>().is_ok());
    (quoted || is_dot_atom(local)) && (literal || is_dot_atom(domain))
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.chars().all(is_atom_char))
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii() && !c.is_control()
}
