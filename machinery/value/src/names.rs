//! Names as Kubernetes checks them, with the words it uses for what is wrong.
//!
//! Every check gives all that is wrong with the value, and nothing for a good one. The words go to clients as
//! they are.

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

/// The greatest length of a DNS label, of the name part of a qualified name, and of a label's value.
pub const MAX_LABEL: usize = 63;

/// The greatest length of a DNS subdomain.
pub const MAX_SUBDOMAIN: usize = 253;

/// A subdomain as in RFC 1123: the name of most objects.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_SUBDOMAIN);
    if !is_dns1123_subdomain(value) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN,
            &["example.com"],
        ));
    }
    errors
}

/// A label as in RFC 1123: the name of a namespace.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_LABEL);
    if !is_dns1123_label(value) {
        if is_dns1123_subdomain(value) {
            errors.push("must not contain dots".to_owned());
        } else {
            errors.push(regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    errors
}

/// A label as in RFC 1035: the name of a service.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_LABEL);
    if !(is_dns1123_label(value) && value.starts_with(|first: char| first.is_ascii_lowercase())) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            DNS1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// Anything that can be one segment of a URL's path: the name of RBAC objects.
pub fn path_segment(value: &str) -> Vec<String> {
    if let "." | ".." = value {
        return vec![format!("may not be '{value}'")];
    }
    path_segment_prefix(value)
}

/// The start of a path segment: what `generateName` may be where a name is a path segment.
pub fn path_segment_prefix(value: &str) -> Vec<String> {
    let bad = ['/', '%'].into_iter().filter(|bad| value.contains(*bad));
    bad.map(|bad| format!("may not contain '{bad}'")).collect()
}

/// A qualified name, `[prefix/]name`: the key of a label or an annotation, a finalizer.
pub fn qualified_name(value: &str) -> Vec<String> {
    const WHAT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            let error = regex_error(WHAT, QUALIFIED_NAME, EXAMPLES);
            return vec![format!(
                "a valid label key {error} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(
                dns1123_subdomain(prefix)
                    .into_iter()
                    .map(|error| format!("prefix part {error}")),
            );
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(
        too_many_bytes(name, MAX_LABEL)
            .into_iter()
            .map(|error| format!("name part {error}")),
    );
    if !is_qualified_part(name) {
        errors.push(format!(
            "name part {}",
            regex_error(WHAT, QUALIFIED_NAME, EXAMPLES)
        ));
    }
    errors
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = too_many_bytes(value, MAX_LABEL);
    if !value.is_empty() && !is_qualified_part(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A key in the data of a config map or a secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_SUBDOMAIN);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if value.is_empty() || !value.bytes().all(good) {
        errors.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." | ".." => errors.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// A `generateName` as it is checked: its trailing dash is fine, because a suffix will follow.
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => prefix.to_owned(),
    }
}

fn is_dns1123_label(value: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(value, alphanumeric, |byte| alphanumeric(byte) || byte == b'-')
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn is_qualified_part(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_framed(value, |byte| byte.is_ascii_alphanumeric(), inner)
}

/// Whether the first and the last byte are `edge`, and all are `inner`.
fn is_framed(value: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match value.as_bytes() {
        [] => false,
        bytes @ ([only] | [only, ..]) => {
            edge(*only)
                && bytes.last().is_some_and(|last| edge(*last))
                && bytes.iter().all(|byte| inner(*byte))
        }
    }
}

fn too_long(value: &str, max: usize) -> Vec<String> {
    longer(value, max, "characters")
}

/// The rules of labels say bytes where all others say characters; both count bytes.
fn too_many_bytes(value: &str, max: usize) -> Vec<String> {
    longer(value, max, "bytes")
}

fn longer(value: &str, max: usize, unit: &str) -> Vec<String> {
    if value.len() > max {
        vec![format!("must be no more than {max} {unit}")]
    } else {
        Vec::new()
    }
}

fn regex_error(what: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!(
        "{what} (e.g. {}regex used for validation is '{regex}')",
        examples.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Vec<String>;

    #[test]
    fn good_and_bad_names() {
        let long = |n: usize| "a".repeat(n);
        let cases: [(Check, Vec<String>, Vec<String>); 6] = [
            (
                dns1123_subdomain,
                vec!["a".into(), "0.a-b.c".into(), long(253)],
                vec![
                    "".into(),
                    "A".into(),
                    "a.".into(),
                    ".a".into(),
                    "a..b".into(),
                    "-a".into(),
                    "a_b".into(),
                    long(254),
                ],
            ),
            (
                dns1123_label,
                vec!["a".into(), "0-b".into(), long(63)],
                vec!["".into(), "a.b".into(), "a-".into(), "é".into(), long(64)],
            ),
            (
                dns1035_label,
                vec!["a0-b".into()],
                vec!["".into(), "0a".into(), "-a".into(), "a-".into(), long(64)],
            ),
            (
                path_segment,
                vec!["system:node".into(), "a b".into(), "...".into()],
                vec![".".into(), "..".into(), "a/b".into(), "a%b".into()],
            ),
            (
                qualified_name,
                vec![
                    "a".into(),
                    "a.b/C_d.e".into(),
                    long(63),
                    format!("x/{}", long(63)),
                ],
                vec![
                    "".into(),
                    "/a".into(),
                    "a/".into(),
                    "a/b/c".into(),
                    "A/b".into(),
                    "-a".into(),
                    long(64),
                ],
            ),
            (
                label_value,
                vec!["".into(), "a".into(), "A.b_c-1".into()],
                vec!["-".into(), "a b".into(), "a/b".into(), long(64)],
            ),
        ];
        for (check, good, bad) in cases {
            for name in good {
                assert_eq!(check(&name), Vec::<String>::new(), "{name}");
            }
            for name in bad {
                assert!(!check(&name).is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn words_are_those_of_kubernetes() {
        assert_eq!(
            dns1123_subdomain("Bad_Name"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns1123_label("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
              and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            qualified_name("/-"),
            [
                "prefix part must be non-empty",
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ]
        );
        assert_eq!(qualified_name("")[0], "name part must be non-empty");
        assert_eq!(
            qualified_name("a/b/c"),
            [
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
              an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
              '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
              'example.com/MyName')"
            ]
        );
        assert_eq!(
            label_value("a b"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
              for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
        assert_eq!(
            dns1123_label(&"a".repeat(64)),
            ["must be no more than 63 characters"]
        );
        assert_eq!(
            path_segment("a/%"),
            ["may not contain '/'", "may not contain '%'"]
        );
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert_eq!(config_key("a/b").len(), 1);
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert_eq!(mask_trailing_dash("web-"), "wea");
        assert_eq!(mask_trailing_dash("-"), "-");
        assert!(dns1123_subdomain(&mask_trailing_dash("web-")).is_empty());
        assert!(!dns1123_subdomain(&mask_trailing_dash("-")).is_empty());
    }
}
