//! The forms of short texts, with the server's words for what is wrong.

use machinery_value::names;

pub(super) use names::{
    config_key, dns1035_label as dns_1035_label, dns1123_label as dns_label,
    dns1123_subdomain as dns_subdomain,
};

const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
     of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used \
     for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
     for validation is '[0-9]+%')";

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// `*.` and a subdomain.
pub(super) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 253 {
        messages.push(too_long(253));
    }
    if !text
        .strip_prefix("*.")
        .is_some_and(|rest| dns_subdomain(rest).is_empty())
    {
        messages.push(WILDCARD.to_owned());
    }
    messages
}

/// The rules of labels say bytes where all others say characters; both count bytes.
fn in_bytes(message: String) -> String {
    match message.strip_suffix(" characters") {
        Some(start) => format!("{start} bytes"),
        None => message,
    }
}

/// A label key: a name, after an optional domain and slash.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let messages = names::qualified_name(text).into_iter();
    messages.map(in_bytes).collect()
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Vec<String> {
    names::label_value(text).into_iter().map(in_bytes).collect()
}

/// A segment of a URL path, as the names of roles must be.
pub(super) fn path_segment(text: &str, prefix: bool) -> Vec<String> {
    if prefix {
        names::path_segment_prefix(text)
    } else {
        names::path_segment(text)
    }
}

/// The name of a port.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 15 {
        messages.push(too_long(15));
    }
    if text.is_empty()
        || !text
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
    {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|c| c.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

/// The name of an environment variable: printable, without `=`.
pub(super) fn env_name(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.is_empty() {
        messages.push("environment variable name must be non-empty".to_owned());
    }
    if text.bytes().any(|c| !(b' '..=b'~').contains(&c) || c == b'=') {
        messages.push("a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned());
    }
    messages
}

/// `25%`.
pub(super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        Vec::new()
    } else {
        vec![PERCENT.to_owned()]
    }
}

/// An IP address: IPv4 in dotted decimal or IPv6.
pub(super) fn ip(text: &str) -> Vec<String> {
    if text.parse::<std::net::IpAddr>().is_ok() {
        Vec::new()
    } else {
        vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
    }
}

/// An address that an endpoint may have.
pub(super) fn endpoint_ip(text: &str) -> Vec<String> {
    let Ok(address) = text.parse::<std::net::IpAddr>() else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let mut messages = Vec::new();
    if address.is_unspecified() {
        messages.push(format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        messages.push("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned());
    }
    let (link_local, multicast) = match address {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        std::net::IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] == 0xff02),
    };
    if link_local {
        messages.push("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned());
    }
    if multicast {
        messages.push("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned());
    }
    messages
}

/// An IP prefix such as`10.0.0.0/8`, as address and length.
pub(super) fn parse_cidr(text: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    (length <= max).then_some((address, length))
}

/// An IP prefix.
pub(super) fn cidr(text: &str) -> Vec<String> {
    if parse_cidr(text).is_some() {
        Vec::new()
    } else {
        vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
    }
}
