//! Replaces what differs from run to run by placeholders: `<age>`, `<time>`, `<uid>`, `<rv>`, `<port>`, `<id>`, ….
//!
//! A replaced cell of a table keeps the cell's width where it can, so that columns still stand in line.

use std::path::Path;

/// What the administrators of the two kinds of servers are called.
const ADMINISTRATORS: [&str; 2] = ["lockgate-admin", "admin"];

/// The letters of generated names: no vowels, and no digits that look like letters.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

const UID: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
const TIME: &str = "9999-99-99T99:99:99";
const DATE: &str = "AAA, 99 AAA 9999 99:99:99 +9999";
/// What stands before resource versions: in YAML, in JSON, in JSON that is quoted, and in what `describe` prints.
const VERSIONS: [&str; 4] = [
    "resourceVersion: \"",
    "resourceVersion\": \"",
    "resourceVersion\\\":\\\"",
    "Resource Version:    ",
];

pub(crate) struct Normaliser {
    directory: String,
}

impl Normaliser {
    /// `directory` is where the commands run.
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.display().to_string(),
        }
    }

    pub(crate) fn normalise(&self, output: &str) -> String {
        let output = output
            .replace(&self.directory, "<dir>")
            .replace(ADMINISTRATORS[0], ADMINISTRATORS[1]);
        output
            .split('\n')
            .map(|text| line(&without_namespace(text)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// From 1.34 on kubectl says from which namespace it deleted something.
fn without_namespace(text: &str) -> String {
    const FROM: &str = "\" deleted from ";
    let Some((object, rest)) = text.split_once(FROM) else {
        return text.to_owned();
    };
    match rest.split_once(" namespace") {
        Some((_, rest)) => format!("{object}\" deleted{rest}"),
        None => text.to_owned(),
    }
}

fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let Some(found) = find(&out, rest) else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        out += &rest[..found.kept];
        out += found.placeholder;
        let replaced = found.length - found.kept;
        rest = &rest[found.length..];
        let gap = rest.len() - rest.trim_start_matches(' ').len();
        if gap >= 2 && gap < rest.len() {
            out += &" ".repeat((replaced + gap).saturating_sub(found.placeholder.len()).max(1));
            rest = &rest[gap..];
        }
    }
    out
}

/// A replacement at the start of a text: of `length` bytes the first `kept` stay, and the others become the placeholder.
struct Found {
    length: usize,
    kept: usize,
    placeholder: &'static str,
}

fn find(before: &str, text: &str) -> Option<Found> {
    let whole = |length, placeholder| Found {
        length,
        kept: 0,
        placeholder,
    };
    let after_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
    if after_word {
        return generated(text);
    }
    if let Some(length) = shape(text, UID) {
        return Some(whole(length, "<uid>"));
    }
    if let Some(length) = time(text) {
        return Some(whole(length, "<time>"));
    }
    if let Some(length) = shape(text, DATE) {
        return Some(whole(length, "<date>"));
    }
    if let Some(length) = age(before, text) {
        return Some(whole(length, "<age>"));
    }
    if let Some(length) = token(text) {
        return Some(whole(length, "<token>"));
    }
    prefixed(text, "127.0.0.1:", "<port>", |c| c.is_ascii_digit())
        .or_else(|| prefixed(text, "pod-template-hash=", "<hash>", |c| GENERATED.contains(c)))
        .or_else(|| prefixed(text, "kubectl-edit-", "<id>", |c| c.is_ascii_digit()))
        .or_else(|| prefixed(text, "X509SHA256=", "<fingerprint>", |c| c.is_ascii_hexdigit()))
        .or_else(|| {
            VERSIONS
                .iter()
                .find_map(|p| prefixed(text, p, "<rv>", |c| c.is_ascii_digit()))
        })
}

/// The length of `pattern` if the text starts so: `9` stands for a digit, `h` for a hexadecimal one, `A` for a letter.
fn shape(text: &str, pattern: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    let fits = pattern.bytes().all(|expected| {
        bytes.next().is_some_and(|byte| match expected {
            b'9' => byte.is_ascii_digit(),
            b'h' => byte.is_ascii_hexdigit(),
            b'A' => byte.is_ascii_alphabetic(),
            other => byte == other,
        })
    });
    fits.then_some(pattern.len())
}

fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.len() - text.trim_start_matches(of).len()
}

fn prefixed(text: &str, prefix: &str, placeholder: &'static str, of: impl Fn(char) -> bool) -> Option<Found> {
    let length = run(text.strip_prefix(prefix)?, of);
    (length > 0).then_some(Found {
        length: prefix.len() + length,
        kept: prefix.len(),
        placeholder,
    })
}

/// A time in the form of RFC 3339, in whole seconds or with a fraction.
fn time(text: &str) -> Option<usize> {
    let mut length = shape(text, TIME)?;
    if text[length..].starts_with('.') {
        length += 1 + run(&text[length + 1..], |c| c.is_ascii_digit());
    }
    text[length..].starts_with('Z').then_some(length + 1)
}

/// An age such as `5s` or `2m3s` that fills a cell of a table, or is told in words. After a colon it is a quantity.
fn age(before: &str, text: &str) -> Option<usize> {
    if before.trim_end().ends_with(':') {
        return None;
    }
    let starts =
        before.is_empty() || before.ends_with("  ") || before.ends_with(" over ") || before.ends_with('(');
    let mut length = 0;
    while let digits @ 1.. = run(&text[length..], |c| c.is_ascii_digit()) {
        let unit = text[length + digits..]
            .chars()
            .next()
            .filter(|c| "smhd".contains(*c))?;
        length += digits + unit.len_utf8();
    }
    let rest = &text[length..];
    let ends = rest.is_empty() || ["  ", " ago", " (x", ")"].iter().any(|end| rest.starts_with(end));
    (length > 0 && starts && ends).then_some(length)
}

/// A signed token: three parts of base64, of which the first is a JSON object.
fn token(text: &str) -> Option<usize> {
    let length = run(text, |c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let token = &text[..length];
    (token.starts_with("eyJ") && token.matches('.').count() == 2).then_some(length)
}

/// The generated end of a name: of a pod (`-7c5ddbdf54-x2x8v`), a replica set (`-7c5ddbdf54`), one of `generateName`
/// (`-x2x8v`), or an event (`.187f3c2a5b9d0e1f`).
fn generated(text: &str) -> Option<Found> {
    let word = |text: &str| run(text, |c| c.is_ascii_alphanumeric());
    if let Some(rest) = text.strip_prefix('.') {
        let length = word(rest);
        let hex = length == 16 && rest[..length].bytes().all(|b| b.is_ascii_hexdigit());
        return hex.then_some(Found {
            length: 17,
            kept: 1,
            placeholder: "<id>",
        });
    }
    let rest = text.strip_prefix('-')?;
    let length = word(rest);
    let safe = |part: &str| part.chars().all(|c| GENERATED.contains(c));
    if !safe(&rest[..length]) || rest[length..].starts_with('.') {
        return None;
    }
    let pod = rest[length..]
        .strip_prefix('-')
        .map_or("", |rest| &rest[..word(rest)]);
    let (length, placeholder) = match length {
        8..=10 if pod.len() == 5 && safe(pod) => (length + 6, "<hash>-<id>"),
        8..=10 => (length, "<hash>"),
        5 => (5, "<id>"),
        _ => return None,
    };
    Some(Found {
        length: length + 1,
        kept: 1,
        placeholder,
    })
}

#[test]
fn only_what_must_differ_is_replaced() {
    let table = [
        ("default   Active   3s", "default   Active   <age>"),
        ("web    1/1     12s   nginx", "web    1/1     <age> nginx"),
        ("3s          Normal   Started", "<age>       Normal   Started"),
        (
            "  Normal  Pulled  2m3s (x2 over 4m)  kubelet",
            "  Normal  Pulled  <age> (x2 over <age>)  kubelet",
        ),
        ("restarted 3s ago", "restarted 3s ago"),
        ("      cpu:     500m", "      cpu:     500m"),
        (
            "configmap \"c\" deleted from shop namespace",
            "configmap \"c\" deleted",
        ),
        (
            "stored to \"/scratch/work/kubectl-edit-12345.yaml\"",
            "stored to \"<dir>/kubectl-edit-<id>.yaml\"",
        ),
        ("  Resource Version:    214", "  Resource Version:    <rv>"),
        ("    timeout=1s period=10s", "    timeout=1s period=10s"),
        ("pod/web-7c5ddbdf54-x2x8v created", "pod/web-<hash>-<id> created"),
        ("replicaset.apps/web-7c5ddbdf54", "replicaset.apps/web-<hash>"),
        ("  uid: 0b1f7a26-7a0e-4b43-8a3e-3a6b7d1c9f10", "  uid: <uid>"),
        (
            "  creationTimestamp: \"2025-11-15T10:50:00Z\"",
            "  creationTimestamp: \"<time>\"",
        ),
        (
            "    renewTime: 2025-11-15T10:50:00.123456Z",
            "    renewTime: <time>",
        ),
        (
            "Start Time:   Sat, 15 Nov 2025 10:50:00 +0000",
            "Start Time:   <date>",
        ),
        ("  resourceVersion: \"42\"", "  resourceVersion: \"<rv>\""),
        (
            "    \"resourceVersion\": \"42\",",
            "    \"resourceVersion\": \"<rv>\",",
        ),
        ("https://127.0.0.1:43139/api", "https://127.0.0.1:<port>/api"),
        ("Username   lockgate-admin", "Username   admin"),
        ("file /scratch/work/a.yaml", "file <dir>/a.yaml"),
        (
            "a-b-config kube-system 10.0.0.1",
            "a-b-config kube-system 10.0.0.1",
        ),
        ("eyJhbGciOi.eyJpc3Mi.c2ln", "<token>"),
        ("web.187f3c2a5b9d0e1f", "web.<id>"),
    ];
    let normaliser = Normaliser::new(Path::new("/scratch/work"));
    for (output, expected) in table {
        assert_eq!(normaliser.normalise(output), expected);
    }
}
